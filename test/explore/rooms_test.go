package explore_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// rest is what is owed at the end: once nothing is lost any more everybody who waits is
// served, and then nothing is left.
func (h *hall) rest() {
	h.calm = true
	for _, x := range h.holds {
		if m := x.c.m; x.owes && !m.dead {
			h.later(m, time.Millisecond, x.unlock)
		}
	}
	by := h.now + 60*time.Second
	for n := 0; h.wrong == ""; n++ {
		switch {
		case n > 20_000 || h.now > by:
			h.violate("it goes on for ever: %s", h.left())
		case len(h.air) > 0 && h.landed():
		case !h.pass():
			if left := h.left(); left != "" {
				h.violate("left at the end: %s", left)
			}
			return
		}
	}
}

// landed has the first roomFlight arrive that can.
func (h *hall) landed() bool {
	for i, f := range h.air {
		if f.to == nil || f.to.still <= h.now {
			h.now += 50 * time.Microsecond
			h.land(i)
			return true
		}
	}
	return false
}

// left is what there should not be any more.
func (h *hall) left() string {
	var all []string
	for _, m := range h.members {
		for i, c := range m.calls {
			if !c.ended && !m.dead {
				all = append(all, fmt.Sprintf("%s's call %d waits since %v", m.id, i, c.began))
			}
		}
		if !m.dead && m.owed != 0 {
			all = append(all, fmt.Sprintf("%s owes %d unlocks", m.id, m.owed))
		}
		if !m.dead && (len(m.known) > 0 || !m.room.Empty()) {
			all = append(all, fmt.Sprintf("%s keeps %d nonces, its room is empty: %v", m.id, len(m.known), m.room.Empty()))
		}
	}
	h.now += 3 * h.setup.ttl
	h.lock.begin(h.server())
	if h.lock.blocked() > 0 {
		all = append(all, "the lock is held")
	}
	h.lock.release(h.members[0].id, "nobody", "", 0, true, false)
	if l := &h.lock; l.held() || len(l.queue) > 0 || l.several || l.branches || l.changed() {
		all = append(all, fmt.Sprintf("redis keeps %d holders, %d waiters, %v, %v", len(l.grants), len(l.queue), l.stirred, l.ousts))
	}
	return strings.Join(all, "; ")
}

func exploreRooms(seed uint64, steps int, say func(format string, args ...any)) *hall {
	h := newHall(seed, steps)
	h.say = say
	return h.explore()
}

// explore makes the steps of a schedule, and sees to its end.
func (h *hall) explore() *hall {
	h.tell("%v", h.setup)
	for i := 0; i < h.setup.steps && h.wrong == ""; i++ {
		h.step()
		h.judge()
	}
	if h.wrong == "" {
		h.rest()
	}
	return h
}

// TestExplorationOfRoomsFindsNothing runs a number of schedules, or as many as fit into
// RELOCK_ROOMS_FOR. What it finds is shown whole: a schedule is its seed.
func TestExplorationOfRoomsFindsNothing(t *testing.T) {
	limit := envDuration(t, "RELOCK_ROOMS_FOR", 0)
	schedules := envInt(t, "RELOCK_ROOMS_SCHEDULES", 10_000)
	first := uint64(envInt(t, "RELOCK_ROOMS_SEED", 1)) //nolint:gosec // as it is given
	seen, n, steps, began := map[string]int{}, 0, 0, time.Now()
	for seed := first; limit > 0 && time.Since(began) < limit || limit == 0 && n < schedules; seed++ {
		h := exploreRooms(seed, 0, nil)
		n, steps = n+1, steps+h.setup.steps
		for what, times := range h.seen {
			seen[what] += times
		}
		if h.wrong != "" {
			showRooms(t, seed, h.setup.steps)
			break
		}
	}
	took := time.Since(began)
	t.Logf("%d schedules of %d steps in %v: %.0f a second", n, steps, took.Round(time.Millisecond), float64(n)/took.Seconds())
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%9d %s", seen[what], what)
	}
	for what, least := range leastOfRooms {
		if n >= 1000 && seen[what] < least*n/1000 {
			t.Errorf("%s: seen %d times in %d schedules, want %d: they show little", what, seen[what], n, least*n/1000)
		}
	}
}

// leastOfRooms is what a thousand schedules have to see at least.
var leastOfRooms = map[string]int{
	"holds": 2000, "grants by message": 1000, "grants for nobody": 2, "holds and places that were handed on": 100, "holds that were joined": 40,
	"losses": 50, "re-entries": 60, "requests without an answer": 800, "unlocks without a command": 100, "kept grants that were taken again": 8,
	"a crash": 100, "a close": 150, "a copy": 400, "a loss on the way": 500, "a client that stands still": 300, "a cancelled call": 1000,
	"calls whose handle is barred": 25, "holds that were given back": 40, "unlocks that end another hold of the handle": 25,
	"scripts that find a branch inside": 500, "branches that outlive a hold of their ancestor": 50, "ends of an ancestor's hold that were heard": 40,
}

// showRooms runs the fewest steps of a schedule that break a rule, and tells of each.
func showRooms(t *testing.T, seed uint64, most int) {
	t.Helper()
	for steps := 1; steps <= most; steps++ {
		if exploreRooms(seed, steps, nil).wrong == "" {
			continue
		}
		var trace []string
		h := exploreRooms(seed, steps, func(format string, args ...any) { trace = append(trace, fmt.Sprintf(format, args...)) })
		t.Errorf("seed %d: %s\n%s", seed, h.wrong, strings.Join(trace, "\n"))
		return
	}
}
