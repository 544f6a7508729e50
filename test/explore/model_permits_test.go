package explore_test

import (
	"fmt"
	"strings"

	"github.com/relock-go/relock/internal/room"
)

// kind is that of the lock in a run.
func (r *modelRun) kind() string {
	return []string{"plain", "fair", "rw", "fair rw", "semaphore"}[r.steps[0]%5]
}

// actor is an actor of the run: of a semaphore, one that asks it for permits; in half of
// those of a fair lock none has a name, so that there are runs.
func (r *modelRun) actor(i int) modelRequest {
	a := modelActors[i]
	if r.branches() {
		a.owner = r.family(i)
		a.named = !strings.HasPrefix(a.owner, "~")
	}
	switch {
	case r.kind() == "fair" && r.steps[0]/5%2 == 0 && !r.branches():
		a.named, a.owner = false, fmt.Sprintf("~anonymous:%d", i)
	case r.kind() == "semaphore":
		a.mode, a.weight, a.permits, a.block = "s", int64(1+i%3), int64(3+i%2), 1
		a = r.as(a, a.nonce)
	}
	return a
}

// as is a request for the permits that a nonce or a ticket is known by, if it is.
func (r *modelRun) as(a modelRequest, of string) modelRequest {
	if known, ok := r.known[of]; ok {
		a.weight, a.permits = known.weight, known.permits
	}
	return a
}

// fits says whether a request may hold beside those who do.
func (m *modelLock) fits(r modelRequest) bool {
	by := m.nearest(r.owner)
	if (by == nil || by.owner != r.owner) && r.named && m.remains(r.owner) {
		m.census["refused for what is left"]++
		return false
	}
	if r.named && by != nil && len(room.Lineage(r.owner)) > 1 {
		return by.allows(r.owner, r.mode, m.lacks != "branches of one flow exclude each other")
	}
	switch r.mode {
	case "s":
		return m.used()+r.weight <= r.permits
	case "r":
		return m.holder == ""
	}
	if m.lacks == "a writer waits for readers" {
		return m.holder == ""
	}
	return m.blocked() == 0
}

// used is how many permits the grants that live use.
func (m *modelLock) used() (sum int64) {
	of := map[string]bool{}
	for owner, g := range m.grants {
		if root := g.root(owner); len(m.grantOf(owner).sessions) > 0 && !of[root] {
			of[root] = true
			sum += g.weight
		}
	}
	return sum
}

// opens is when a request may hold that does not now because a lease ends, or 0.
func (m *modelLock) opens(r modelRequest) (first int64) {
	enters := r.named && len(room.Lineage(r.owner)) > 1 && m.nearest(r.owner) != nil
	if r.mode != "s" && !enters || m.leased() == 0 {
		return m.blocked()
	}
	for _, g := range m.grants {
		for _, s := range g.sessions {
			if s.expiry > m.now && (first == 0 || s.expiry < first) {
				first = s.expiry
			}
		}
	}
	return first
}

// miscounted says how the sum of permits differs from what the grants use that count.
func (s stored) miscounted() string {
	if !s.several {
		return ""
	}
	sum := int64(0)
	of := map[string]bool{}
	for _, g := range s.grants {
		if g.low >= s.since && !of[g.by] {
			of[g.by] = true
			sum += g.weight
		}
	}
	if sum != s.used {
		return fmt.Sprintf("%d permits are used, and redis counts %d", sum, s.used)
	}
	return ""
}
