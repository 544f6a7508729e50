package check

import (
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// A span is a time in which a hold was certainly valid, with so many permits.
type span struct {
	c        *call
	from, to int64
	weight   int64
}

// spans are the certain times of all holds, by their beginning. A hold that was
// downgraded has two.
func (s *story) spans() []span {
	var all []span
	for _, c := range s.calls {
		if !c.certain() {
			continue
		}
		from, end := c.acquired, c.end()
		if c.downgraded != 0 && c.downgraded < end {
			if from < c.downgraded {
				all = append(all, span{c, from, c.downgraded, c.weight})
			}
			all = append(all, span{c, max(from, c.downgraded), end, 1})
			continue
		}
		all = append(all, span{c, from, end, c.weight})
	}
	slices.SortFunc(all, func(a, b span) int { return compare(a.from, b.from) })
	return all
}

// overlaps finds valid holds that use more permits at one instant than there are: of
// a lock, two that exclude each other. A hold
// counts from the return of the call that made it to the first of: its loss was
// seen, its release began, its known trust ended, its process was to be killed.
// All four errors make it shorter, so every overlap found is one.
func (k *checker) overlaps(s *story) {
	var holding []span
	for _, b := range s.spans() {
		holding = slices.DeleteFunc(holding, func(a span) bool { return a.to <= b.from })
		if to := overdrawn(holding, b); to > b.from {
			k.overlap(s, holding, b, to)
		}
		holding = append(holding, b)
	}
}

// overdrawn is until when others hold beside whom the last one does not fit. What one
// owner has of a lock counts once.
func overdrawn(others []span, last span) (until int64) {
	sum := last.weight
	for _, a := range others {
		sum += a.weight
	}
	if sum <= last.c.of {
		return 0
	}
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b span) int { return compare(b.to, a.to) })
	used, named := last.weight, map[string]int64{last.c.owner: last.weight}
	for _, a := range others {
		more := a.weight
		if a.c.owner != "" {
			more = max(0, a.weight-named[a.c.owner])
			named[a.c.owner] += more
		}
		if used += more; used > last.c.of && !a.c.sameOwner(last.c) {
			return min(a.to, last.to)
		}
	}
	return 0
}

func (k *checker) overlap(s *story, others []span, b span, to int64) {
	others = slices.DeleteFunc(slices.Clone(others), func(a span) bool { return a.c == b.c || a.c.sameOwner(b.c) })
	ttl := b.c.ttl
	for _, a := range others {
		ttl = max(ttl, a.c.ttl)
	}
	f := s.excuse(b.from, to, ttl)
	if f == nil {
		var names []string
		for _, a := range others {
			names = append(names, a.c.String())
		}
		k.violation(s, LeaseOverlap, b.from, to, "%s and %s were valid together for %v", b.c, strings.Join(names, ", "), time.Duration(to-b.from))
		return
	}
	k.report.overlap(s, f)
	k.report.LongestOverlap = max(k.report.LongestOverlap, time.Duration(to-b.from))
	for _, a := range others {
		if a.weight+b.weight <= b.c.of {
			continue
		}
		elder := a.c
		if b.c.token < elder.token {
			elder = b.c // its answer came later
		}
		elder.met = true
		if f.kind == history.Failover {
			s.part(a.c, b.c)
		}
	}
}
