package explore_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// morning lets everybody who holds unlock until nobody does, and then looks who sleeps on.
func (d *dorm) morning() {
	d.say("-- faults end")
	for _, s := range d.all {
		s.Link.OnCommand(nil)
		if s.heal != nil {
			s.heal()
			s.heal = nil
		}
	}
	d.soothe()
	for _, s := range d.all {
		if !s.dead && s.nap != nil {
			d.missed(s)
		}
	}
	for _, s := range d.all {
		if s.stop != nil && s.nap != nil && !s.dead {
			s.stop()
		}
	}
	d.soothe()
	for _, s := range d.all {
		if !s.dead && s.state != "idle" {
			d.violate("p%d %s for ever", s.index, s.state)
		}
	}
}

// missed judges one who sleeps on: each signal that was sent since has woken somebody else.
func (d *dorm) missed(s *sleeper) {
	sent, woken := 0, map[*nap]bool{}
	for _, those := range d.sent {
		if !slices.Contains(those, s.nap) {
			continue
		}
		sent++
		for _, n := range those {
			if n.over {
				woken[n] = true
			}
		}
	}
	if sent > len(woken) {
		d.violate("p%d sleeps on: of %d signals since it began, %d have woken anybody", s.index, sent, len(woken))
	}
}

// soothe lets time pass while whoever holds unlocks.
func (d *dorm) soothe() {
	for quiet := 0; quiet < 40 && d.wrong == ""; quiet++ {
		d.collect()
		for _, s := range d.all {
			if !s.dead && s.state == "holds" {
				s.unlock()
				quiet = 0
			}
		}
		virtual.Sleep(condTTL / 3)
	}
}

// exploreConditions is one run.
func exploreConditions(t *testing.T, seed uint64, seen map[string]int, trace func(string, ...any)) (wrong string) {
	t.Helper()
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		d := &dorm{x: x, rng: rand.New(rand.NewPCG(seed, 1)), seen: seen, trace: trace} //nolint:gosec // schedules
		d.trouble = seed%4 > 0
		ctx, cancel := context.WithCancel(context.Background())
		for i := range 5 + d.rng.IntN(3) {
			s := &sleeper{Actor: x.Actor(), d: d, index: i, state: "idle"}
			s.ctx = relock.WithOwner(ctx, s.name())
			s.l = s.NewLock("l", relock.TTL(condTTL))
			s.c = s.l.NewCond("c")
			d.all = append(d.all, s)
		}
		for range 100 {
			d.happen()
			d.collect()
			if d.wrong != "" {
				break
			}
		}
		if d.wrong == "" {
			d.morning()
		}
		cancel()
		for _, s := range d.all {
			_ = s.Close()
			if s.calls != nil {
				_ = waited(s.calls)
			}
		}
		wrong = d.wrong
		virtual.Sleep(time.Minute)
	})
	return wrong
}

func TestExplorationOfConditionsFindsNothing(t *testing.T) {
	limit := envDuration(t, "RELOCK_CONDITIONS_FOR", 0)
	schedules := envInt(t, "RELOCK_CONDITIONS_SCHEDULES", 100)
	first := uint64(envInt(t, "RELOCK_CONDITIONS_SEED", 1)) //nolint:gosec // as it is given
	seen, n, began := map[string]int{}, 0, time.Now()
	for seed := first; limit > 0 && time.Since(began) < limit || limit == 0 && n < schedules; seed++ {
		n++
		if wrong := exploreConditions(t, seed, seen, nil); wrong != "" {
			exploreConditions(t, seed, map[string]int{}, t.Logf)
			t.Fatalf("seed %d: %s", seed, wrong)
		}
	}
	t.Logf("%d schedules in %v: %v", n, time.Since(began).Round(time.Millisecond), seen)
	if n >= 100 && seen["signals that somebody waited for"] < n {
		t.Errorf("%d signals that somebody waited for in %d schedules: they show little", seen["signals that somebody waited for"], n)
	}
}

// foundByConditions are rules that this explorer misses.
var foundByConditions = map[string]found{
	"condition: a signal outlives its receiver in the queue":  {142, 400},
	"condition: a signal outlives its receiver that holds":    {83, 400},
	"condition: a signal leaves the others where they are":    {0, 100},
	"condition: who leaves its condition is missed by nobody": {16, 100},
}

func TestExplorerOfConditionsFindsWhatIsBroken(t *testing.T) {
	for m, at := range rules(t, foundByConditions) {
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			defer rig.SwapScripts(broken(t, m))()
			at.by(t, func(number uint64) string { return exploreConditions(t, 1000+number, map[string]int{}, nil) })
		})
	}
}

// waited returns what a call has come to.
func waited(calls rig.Going) error { return <-calls }
