package check

import (
	"slices"

	"github.com/relock-go/relock/test/torture/history"
)

// passing finds out which calls were given the lock within their process, without
// Redis: anonymous ones in one process, with tokens that follow each other, a
// microsecond apart. They hold by the lease of the first. So does who joins a hold of
// its owner: Redis does not look at its clock for that.
func (s *story) passing(held []*call) {
	type turn struct {
		worker int
		digits int64 // of the grant's owner
	}
	// Another primary's tokens may lie between: of a failover, in which both serve.
	turns, grants := map[turn]*call{}, map[int64]*call{}
	byToken := slices.Clone(held)
	slices.SortStableFunc(byToken, func(a, b *call) int { return compare(a.token, b.token) })
	for _, c := range byToken {
		c.since = c.began
		if c.owner != "" { // also one that only the history names: a ticket goes on with the grant of a hold
			if d := grants[c.token]; d != nil && d.sameOwner(c) {
				c.since = min(c.began, d.since)
			}
			grants[c.token] = c
		}
		if !c.unnamed() {
			continue
		}
		at := turn{c.worker, c.token % us}
		gap := us
		if c.together {
			gap = reach // such a call gives a lock back when it must wait for another one: the history has not seen those turns
		}
		if d := turns[at]; d != nil && c.token-d.token <= gap {
			c.since = min(c.since, d.since)
		}
		turns[at] = c
	}
}

// passedOn says that a hold came from one that a fault had taken from its
// process, which did not know it yet, before the other was granted the lock.
func (s *story) passedOn(c, other *call) bool {
	return slices.ContainsFunc(s.faults, func(f *fault) bool {
		return f.allowsOverlap() && f.t <= other.acquired && c.acquired <= f.limit(c.ttl) && (c.since < c.began && c.since <= f.until || s.leftTo(c, f))
	})
}

// leftTo says that a call may have been given what another of its process had asked for
// before the fault, which gave up when its grant was on its way.
func (s *story) leftTo(c *call, f *fault) bool {
	return c.unnamed() && slices.ContainsFunc(s.calls, func(d *call) bool {
		return d.unnamed() && d.worker == c.worker && d.acquired == 0 && d.failed >= f.t && d.began <= f.until
	})
}

// cameBack says that a call may have joined a grant of its owner that had ended:
// a failover lost the release, and the lease went on.
func (s *story) cameBack(gone int64, c *call) bool {
	return c.owner != "" && c.began <= gone+int64(c.ttl) && slices.ContainsFunc(s.faults, func(f *fault) bool {
		return f.kind == history.Failover && f.until >= gone && f.t <= c.acquired
	})
}
