package check

import (
	"slices"
	"time"

	"github.com/relock-go/relock/torture/history"
)

// A span is a time in which a hold was certainly valid in one mode.
type span struct {
	c        *call
	from, to int64
	read     bool
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
				all = append(all, span{c, from, c.downgraded, c.read})
			}
			all = append(all, span{c, max(from, c.downgraded), end, true})
			continue
		}
		all = append(all, span{c, from, end, c.read})
	}
	slices.SortFunc(all, func(a, b span) int { return compare(a.from, b.from) })
	return all
}

// overlaps finds two valid holds that exclude each other at one instant. A hold
// counts from the return of the call that made it to the first of: its loss was
// seen, its release began, its known trust ended, its process was to be killed.
// All four errors make it shorter, so every overlap found is one.
func (k *checker) overlaps(s *story) {
	var writing, reading []span
	for _, b := range s.spans() {
		writing, reading = alive(writing, b.from), alive(reading, b.from)
		for _, a := range writing {
			k.overlap(s, a, b)
		}
		if b.read {
			reading = append(reading, b)
			continue
		}
		for _, a := range reading {
			k.overlap(s, a, b)
		}
		writing = append(writing, b)
	}
}

// alive keeps the spans that go on after an instant.
func alive(spans []span, at int64) []span {
	return slices.DeleteFunc(spans, func(a span) bool { return a.to <= at })
}

func (k *checker) overlap(s *story, a, b span) {
	if a.c == b.c || a.c.sameOwner(b.c) {
		return
	}
	from, to := b.from, min(a.to, b.to)
	if from >= to {
		return
	}
	if f := s.excuse(from, to, max(a.c.ttl, b.c.ttl)); f != nil {
		k.report.overlap(s, f)
		elder := a.c
		if b.c.token < elder.token {
			elder = b.c // its answer came later
		}
		elder.met = true
		if f.kind == history.Failover {
			s.part(a.c, b.c)
		}
		k.report.LongestOverlap = max(k.report.LongestOverlap, time.Duration(to-from))
		return
	}
	k.violation(s, LeaseOverlap, from, to, "%s and %s were both valid for %v", a.c, b.c, time.Duration(to-from))
}
