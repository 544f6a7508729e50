package explore_test

import "fmt"

// kind is that of the lock in a run.
func (r *modelRun) kind() string {
	return []string{"plain", "fair", "rw", "fair rw", "semaphore"}[r.steps[0]%5]
}

// actor is an actor of the run: of a semaphore, one that asks it for permits; in half of
// those of a fair lock none has a name, so that there are runs.
func (r *modelRun) actor(i int) modelRequest {
	a := modelActors[i]
	switch {
	case r.kind() == "fair" && r.steps[0]/5%2 == 0:
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
func (m *modelLock) fits(mode string, weight, permits int64) bool {
	switch mode {
	case "s":
		return m.used()+weight <= permits
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
	for owner, g := range m.grants {
		if len(m.grantOf(owner).sessions) > 0 {
			sum += g.weight
		}
	}
	return sum
}

// opens is when a request may hold that does not now because a lease ends, or 0.
func (m *modelLock) opens(mode string) (first int64) {
	if mode != "s" || m.leased() == 0 {
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
	for _, g := range s.grants {
		if g.low >= s.since {
			sum += g.weight
		}
	}
	if sum != s.used {
		return fmt.Sprintf("%d permits are used, and redis counts %d", sum, s.used)
	}
	return ""
}
