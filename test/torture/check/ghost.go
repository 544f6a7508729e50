package check

import (
	"slices"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// notAfter is how long after it was sent a request may still be granted.
const notAfter = 10 * time.Second

// A ghost is when a call may have had a hold that nobody knows of.
type ghost struct {
	reign
	token int64 // that the call was granted in the end; 0: none
}

// findGhosts finds when calls of named owners may have had a hold in Redis that
// nobody knows of. Such a call may have joined its owner's grant all the same, and
// kept that alive. It is one that made no hold, or one that waited while it lost what it
// had been granted and not been told of, to a fault or with its lease, and that was granted
// the lock once more.
func (k *checker) findGhosts(s *story) {
	s.ghosts = map[string][]ghost{}
	for _, c := range s.calls {
		if c.owner == "" || c.resumes != 0 && c.why == "lost" {
			continue
		}
		to := c.over()
		if c.acquired != 0 && !s.robbed(c) && !k.unheard(s, c) {
			continue
		}
		switch {
		case to == never:
		case c.acquired == 0 || k.delayed(c):
			to += int64(notAfter) + int64(c.ttl)
		case s.relieved(c):
			to += int64(c.ttl)
		}
		s.ghosts[c.owner] = append(s.ghosts[c.owner], ghost{reign{from: c.began, to: to}, c.token})
	}
}

// delayed says that a copy of a request of the call may have been under way when it
// returned: it makes its hold anew where the data is lost that told of it.
func (k *checker) delayed(c *call) bool {
	return slices.ContainsFunc(between(k.byWorker[c.worker], k.longest, c.began, c.over()), func(f *fault) bool { return f.kind == history.Delay })
}

// relieved says that a primary may have relieved another while the call waited: the one has
// granted it the lock, and the other has it in the queue until its lease there ends, and may
// grant it the lock as well.
func (s *story) relieved(c *call) bool {
	return slices.ContainsFunc(s.faults, func(f *fault) bool {
		return f.kind == history.Failover && f.t <= c.acquired && f.until >= c.began
	})
}

// robbed says that a fault that takes holds came while the call waited.
func (s *story) robbed(c *call) bool {
	return slices.ContainsFunc(s.faults, func(f *fault) bool {
		return f.allowsOverlap() && f.t <= c.acquired && f.until >= c.began
	})
}

// unheard says that the call waited for its lease, and did not hear all the while: its process
// or the server was stopped, or the link between them did not carry all.
func (k *checker) unheard(s *story, c *call) bool {
	if c.acquired-c.began < int64(c.ttl) {
		return false
	}
	silent := func(f *fault) bool { return f.t <= c.acquired && f.until >= c.began }
	return slices.ContainsFunc(s.faults, silent) || len(between(k.byWorker[c.worker], k.longest, c.began, c.acquired)) > 0
}

// haunted says that a ghost may have kept a call's grant between two times.
func (s *story) haunted(c *call, from, to int64) bool {
	return c.owner != "" && slices.ContainsFunc(s.ghosts[c.owner], func(g ghost) bool {
		return g.token != c.token && g.from <= to && g.to >= from
	})
}
