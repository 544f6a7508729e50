package check

import (
	"slices"

	"github.com/relock-go/relock/test/torture/history"
)

// part notes that grants were made by two primaries: what each of them went on to
// grant and to end is beyond one order.
func (s *story) part(holds ...*call) {
	if s.parted == nil {
		s.parted = map[int64]bool{}
	}
	for _, c := range holds {
		s.parted[c.token] = true
	}
}

// partedUnseen notes the grants of two primaries that were not certainly valid
// at once, as the answer to one came late: a later grant was made before its end.
// So may be what a call was granted that was under way when data was lost: the
// same request, asked again, makes its hold anew, and that keeps its token.
func (s *story) partedUnseen(fs []*family) (found bool) {
	later := laterGrants(fs)
	for i, f := range fs {
		for _, h := range f.ops {
			if c := h.take.c; h.end != nil && later[i].contradicts(c) && slices.ContainsFunc(s.faults, func(f *fault) bool {
				underWay := c.began <= f.until && c.acquired >= f.t
				return f.tookFrom(c) && (f.kind == history.Failover || underWay)
			}) {
				s.part(c)
				found = true
			}
		}
	}
	return found
}

// tookFrom says that two may have held for the fault while the hold had not ended.
func (f *fault) tookFrom(c *call) bool {
	last := c.end()
	return f.allowsOverlap() && f.t <= last && c.since <= f.until && last <= f.limit(c.ttl)
}

// unwaited finds waits that a failover has lost, as docs/guarantees.md says: the new primary
// never heard that the lock was given up, and the wait ends under the token that it began with.
func (k *checker) unwaited(s *story, held []*call) {
	for _, c := range held {
		if c.parted == nil || c.token != c.parted.token {
			continue
		}
		if slices.ContainsFunc(s.faults, func(f *fault) bool {
			return f.kind == history.Failover && f.t <= c.acquired && f.until >= c.parted.releasing
		}) {
			s.part(c)
			k.report.Unwaited++
		}
	}
}
