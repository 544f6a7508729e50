package check

import "slices"

// This file judges semaphores: their calls are of no owner, and each grant has a
// token of its own.

// permits looks for an order of a semaphore's grants in which each finds enough
// permits. Tokens say which came after which, so there is one to try: each grant as
// early as it can be, since that leaves most time to those after it, and each hold
// ended as early as it may have been. What a fault touched for which more may hold has
// no one order, and is left out.
func (k *checker) permits(s *story) {
	grants := slices.DeleteFunc(s.held(), func(c *call) bool {
		if !s.struck(c.began, c.end()) {
			return false
		}
		k.report.LeftOut++
		return true
	})
	slices.SortFunc(grants, func(a, b *call) int { return compare(a.token, b.token) })
	k.report.Permits += len(grants)
	var before []hours // of those granted before, by their ends
	now := int64(0)
	for _, c := range grants {
		now = max(now, c.began)
		before = slices.DeleteFunc(before, func(h hours) bool { return h.to <= now })
		for fits(before, c) > 0 {
			now = before[0].to
			before = before[1:]
		}
		if now > c.acquired {
			k.violation(s, NoOrder, c.acquired, now, "%s finds too few permits in every order that the tokens allow", c)
			now = c.acquired
		}
		if c.certain() {
			h := hours{max(now, c.end()), c.weight}
			i, _ := slices.BinarySearchFunc(before, h, func(a, b hours) int { return compare(a.to, b.to) })
			before = slices.Insert(before, i, h)
		}
	}
}

// hours is until when a hold uses so many permits.
type hours struct{ to, weight int64 }

// fits is how many permits a call finds too few.
func fits(before []hours, c *call) int64 {
	used := c.weight
	for _, h := range before {
		used += h.weight
	}
	return max(0, used-c.of)
}

// taken are the times in which waiters may find too few permits: of a lock, in which
// somebody may hold; of a semaphore, in which so many are used that its heaviest
// call does not fit, who may be the head of the queue and keep out all others.
func (s *story) taken(reigns []reign) []reign {
	if !s.semaphore() {
		return reigns
	}
	type step struct{ at, by int64 }
	var steps []step
	for _, r := range reigns {
		steps = append(steps, step{r.from, r.weight}, step{r.to, -r.weight})
	}
	slices.SortFunc(steps, func(a, b step) int { return compare(a.at, b.at) })
	room := int64(whole)
	for _, c := range s.calls {
		room = min(room, c.of-c.weight)
	}
	var full []reign
	used := int64(0)
	for i, step := range steps {
		if used > room {
			full = append(full, reign{from: steps[i-1].at, to: step.at})
		}
		used += step.by
	}
	return join(full)
}
