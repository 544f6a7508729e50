package check

import (
	"slices"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

const (
	warmup  = int64(2 * time.Second) // of a worker: until its inbox certainly hears
	settled = int64(5 * time.Second) // after a disconnect: the same
)

// order checks a fair lock. A call stands in the queue for certain when its
// Waiting hook has run. Who calls later, and excludes it, must not hold before it.
//
// The hook also runs before the queue is entered while the client's inbox is not
// up: so it proves nothing in a worker's first seconds or after a disconnect.
func (k *checker) order(s *story) {
	if !s.fair() {
		return
	}
	held := s.held()
	js := s.joiners(held) // who joins a hold of its owner does so ahead of the queue
	held = slices.DeleteFunc(held, func(c *call) bool { return !c.certain() })
	k.starved(s, held, js)
	// What is held first was granted first, where two exclude each other. So it is
	// enough to look, for each that waited, at those that held while it did.
	for _, a := range held {
		if a.queued == 0 || a.queued >= a.acquired || k.unsure(s, a) {
			continue
		}
		k.report.Orders++
		i, _ := slices.BinarySearchFunc(held, a.queued, func(c *call, t int64) int { return compare(c.acquired, t) })
		for ; i < len(held) && held[i].acquired < a.acquired; i++ {
			b := held[i]
			if b.awaits == "" && b.began > a.queued && a.before(b) && !a.sameOwner(b) && !js.joined(b, b) && !s.turnLost(k, a, b) {
				k.violation(s, Overtaken, a.queued, a.acquired, "%s called after %s had queued, and held before it", b, a)
				break
			}
		}
	}
}

// before says that the first, who queued before the other called, is to be granted before it:
// they exclude each other, or tokens tell in what order a semaphore let them in.
func (c *call) before(later *call) bool {
	if c.of < whole {
		return later.token < c.token
	}
	return c.excludes(later)
}

// givesUp is how long before a call returns without a hold it may have left the queue.
const givesUp = int64(500 * time.Millisecond)

// starved looks in the same way at those that waited and gave up.
func (k *checker) starved(s *story, held []*call, js joiners) {
	for _, a := range s.calls {
		if a.queued == 0 || a.failed-givesUp <= a.queued || k.unsure(s, a) {
			continue
		}
		i, _ := slices.BinarySearchFunc(held, a.queued, func(c *call, t int64) int { return compare(c.acquired, t) })
		for ; i < len(held) && held[i].acquired < a.failed-givesUp; i++ {
			b := held[i]
			if b.awaits == "" && b.began > a.queued && a.before(b) && !a.sameOwner(b) && !js.joined(b, b) && !s.turnLost(k, a, b) {
				k.violation(s, Overtaken, a.queued, a.failed, "%s called after %s had queued, and held before it gave up", b, a)
				break
			}
		}
	}
}

// unsure says that a call's Queued may have come before its place in the queue: also where it stands in line behind a
// call of its owner that Redis has not answered yet.
func (k *checker) unsure(s *story, c *call) bool {
	ahead := func(other *call) bool {
		return other != c && other.worker == c.worker && other.sameOwner(c) && other.began <= c.queued && !other.answered(c.queued)
	}
	if c.queued < k.first[c.worker]+warmup || c.owner != "" && slices.ContainsFunc(s.calls, ahead) {
		return true
	}
	return k.touched(s, c.worker, c.began-settled, c.queued, (*fault).disconnects)
}

// answered says that by then the call had a place, a hold, or an error.
func (c *call) answered(by int64) bool {
	return slices.ContainsFunc([]int64{c.queued, c.acquired, c.failed}, func(t int64) bool { return t > 0 && t <= by })
}

// touched says that a fault that fits befell a worker, its link or the lock's servers in between.
func (k *checker) touched(s *story, worker int, from, to int64, fits func(*fault) bool) bool {
	hit := func(f *fault) bool { return f.t <= to && f.until >= from && fits(f) }
	return slices.ContainsFunc(s.faults, hit) || slices.ContainsFunc(k.byWorker[worker], hit)
}

// turnLost says that the waiter may have missed its turn by a fault: its entry
// or its inbox was gone, or it was silent for so long that its lease may have ended.
// A semaphore lets both in: then what told the first of it may yet be lost while the
// second holds, as long as the grant's lease lasts. It cannot be once the first holds.
func (s *story) turnLost(k *checker, a, b *call) bool {
	until := b.acquired
	if a.of < whole {
		until += int64(a.ttl)
		if a.acquired > 0 {
			until = min(until, a.acquired)
		}
	}
	from := a.began - int64(a.ttl)
	return s.silent(from, until, a.ttl/2) || k.touched(s, a.worker, from, until, func(f *fault) bool {
		return f.disconnects() || f.lasted() >= a.ttl/2 || f.kind == history.StopServer
	})
}

// silent says that the lock's server did not answer for so long, whatever the reason: as a
// release shows that was not confirmed.
func (s *story) silent(from, to int64, least time.Duration) bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool {
		return c.unanswered && c.releasing <= to && c.released >= from && c.released-c.releasing >= int64(least)
	})
}
