package check

import (
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// A reign is a time in which a lock may be taken in Redis, known by its latest end.
type reign struct {
	from, to int64
	weight   int64 // of a semaphore's hold, or all of it: a dead head of the queue keeps everybody out
}

// wakes looks for calls that went on waiting while nobody can have held the
// lock. What a fault may have taken, for one ttl after it, is not counted.
func (k *checker) wakes(s *story) {
	reigns := s.taken(k.reigns(s))
	latest := make([]int64, len(reigns)+1) // latest[i]: when the first i are all over
	for i, r := range reigns {
		latest[i+1] = max(latest[i], r.to)
	}
	covers := k.covers(s)
	if slices.ContainsFunc(s.calls, (*call).ticket) {
		covers = k.coversOfAll(s, false) // a ticket goes on without its process
	}
	for _, c := range s.calls {
		end := k.waitedUntil(c)
		i, _ := slices.BinarySearchFunc(reigns, end, func(r reign, t int64) int { return compare(r.from, t) })
		if c.awaits != "" || c.together || c.ticket() || s.behindItsHandle(c, end) { // these wait for something else
			continue
		}
		// A hold of the call itself begins at its end, so it is not among these.
		from := max(c.began, latest[i])
		if end <= from {
			continue
		}
		k.report.Waits++
		k.woke(s, from, end, covers, c)
	}
	for _, e := range s.frees {
		k.report.Probes++
		k.woke(s, e.T, e.Until, covers, nil)
	}
}

// behindItsHandle says that a call waited through a handle that goroutines share,
// and of which one had lost its hold and not unlocked it yet. The lock is not what
// it waited for.
func (s *story) behindItsHandle(c *call, end int64) bool {
	return strings.Contains(s.name, "/shared") && slices.ContainsFunc(s.calls, func(d *call) bool {
		return d != c && d.worker == c.worker && d.acquired != 0 && !d.confirmed && d.end() < end && (d.released == 0 || d.released > c.began)
	})
}

// waitedUntil is when the call no longer waited. One that never returned waited
// for as long as its process lived.
func (k *checker) waitedUntil(c *call) int64 {
	if t := c.over(); t != never {
		return t
	}
	return k.last[c.worker]
}

func (k *checker) woke(s *story, from, to int64, covers []reign, c *call) {
	bound := int64(s.ttl/3 + k.opts.WakeSlack)
	from, to = uncovered(from, to, covers)
	k.report.LongestWake = max(k.report.LongestWake, time.Duration(to-from))
	if to-from <= bound {
		return
	}
	who := "a waiter"
	if c != nil {
		who = c.String()
	}
	k.violation(s, LostWakeup, from, to, "%s waited for %v while nobody can have held the lock; the bound is %v", who, time.Duration(to-from), time.Duration(bound))
}

// reigns are the holds, and what may hold unseen: a lease that nobody gave back
// goes on in Redis for a ttl at most. They are in the order of their beginning.
func (k *checker) reigns(s *story) []reign {
	var all []reign
	for _, c := range s.calls {
		switch {
		case c.acquired != 0 && c.confirmed:
			all = append(all, reign{c.acquired, c.left(), c.weight})
		case c.acquired != 0:
			all = append(all, reign{c.acquired, max(c.until, c.lost, c.released, c.died) + int64(c.ttl), c.weight})
		case c.ticket() && c.failed == 0:
			all = append(all, reign{c.began, c.began + 2*int64(c.ttl), c.weight})
		case c.died != 0:
			all = append(all, reign{c.began, c.died + int64(c.ttl), c.of})
		}
	}
	slices.SortFunc(all, func(a, b reign) int { return compare(a.from, b.from) })
	return all
}

// covers are the times for which faults answer, joined, in order.
func (k *checker) covers(s *story) []reign {
	ttl := int64(s.ttl)
	var all []reign
	for _, f := range s.faults {
		all = append(all, reign{from: f.t, to: f.answersFor(ttl) + f.by})
	}
	for _, c := range s.calls {
		// A call of a worker that is silent may be granted the lock and not know.
		for _, f := range between(k.byWorker[c.worker], k.longest, c.began, k.waitedUntil(c)) {
			if f.kind == history.NoSubscribe {
				continue // its commands pass: it can ask
			}
			all = append(all, reign{from: f.t, to: f.answersFor(ttl)})
		}
	}
	return join(all)
}

// join brings times into their order, and those together that touch.
func join(all []reign) []reign {
	slices.SortFunc(all, func(a, b reign) int { return compare(a.from, b.from) })
	joined := all[:0]
	for _, r := range all {
		if n := len(joined); n > 0 && r.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, r.to)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// between are the faults of a sorted list that touch a time.
func between(fs []*fault, longest, from, to int64) []*fault {
	i, _ := slices.BinarySearchFunc(fs, from-longest, func(f *fault, t int64) int { return compare(f.t, t) })
	var hit []*fault
	for ; i < len(fs) && fs[i].t <= to; i++ {
		if fs[i].until >= from {
			hit = append(hit, fs[i])
		}
	}
	return hit
}

// uncovered is the longest part of a time that no cover touches.
func uncovered(from, to int64, covers []reign) (int64, int64) {
	best, at := reign{from: from, to: from}, from
	i, _ := slices.BinarySearchFunc(covers, from, func(r reign, t int64) int { return compare(r.to, t) })
	for ; i < len(covers) && covers[i].from < to; i++ {
		if covers[i].from-at > best.to-best.from {
			best = reign{from: at, to: covers[i].from}
		}
		at = max(at, covers[i].to)
	}
	if to-at > best.to-best.from {
		best = reign{from: at, to: to}
	}
	return best.from, best.to
}
