//go:build unix

package main

import (
	"fmt"
	"syscall"
	"time"
)

const (
	counters   = 4
	increments = 25 // by each worker
)

func contention(s *stage) []check {
	var workers []*worker
	for i := range counters {
		workers = append(workers, s.start(string(rune('A'+i)), ""))
	}
	s.count(workers, "race", 0)
	s.line(time.Now(), "demo", fmt.Sprintf("without the lock, the counter kept %d of %d increments", s.counter(), counters*increments))
	s.reset()

	var c counting
	c.want = counters * increments
	c.seen = s.count(workers, "count", 8)
	afterCounting(s.ctx, s.link.rdb, counterKey(s.at.prefix))
	c.final = s.counter()
	s.line(time.Now(), "demo", fmt.Sprintf("with the lock, the counter kept %d of %d", c.final, c.want))
	return c.checks()
}

// count makes all workers count at the same time, and returns their increments.
func (s *stage) count(workers []*worker, how string, shown int) (seen []event) {
	s.bulk, s.shown = true, shown
	for _, w := range workers {
		s.send(w, fmt.Sprintf("%s %d", how, increments))
	}
	for _, w := range workers {
		s.await(w, finished)
		for _, e := range w.told {
			if e.What == counted {
				seen = append(seen, e)
			}
		}
		w.told = nil
	}
	s.bulk = false
	return seen
}

func (s *stage) counter() (value int64) {
	if s.err == nil {
		var err error
		if value, err = s.link.rdb.Get(s.ctx, counterKey(s.at.prefix)).Int64(); err != nil {
			s.fail(err)
		}
	}
	return value
}

func (s *stage) reset() {
	if s.err == nil {
		if err := s.link.rdb.Del(s.ctx, counterKey(s.at.prefix)).Err(); err != nil {
			s.fail(err)
		}
	}
}

func reentrancy(s *stage) []check {
	const depth = 3
	flow := s.start("workflow", "order-4711")
	other := s.start("other", "")
	var n nesting
	for range depth {
		n.tokens = append(n.tokens, s.do(flow, "lock", locked).Token)
		n.counts = append(n.counts, s.info().Holds)
		s.do(other, "try", refused)
		s.rest(150 * time.Millisecond)
	}
	s.do(other, "lock", waits)
	for level := depth; level > 0; level-- {
		s.rest(150 * time.Millisecond)
		n.left = time.Now()
		s.do(flow, "unlock", unlocked)
		if level > 1 {
			n.counts = append(n.counts, s.info().Holds)
		}
	}
	in := s.await(other, locked)
	n.entered, n.token = in.At, in.Token
	s.do(other, "unlock", unlocked)
	return n.checks()
}

func crash(s *stage) []check {
	holder := s.start("holder", "")
	waiter := s.start("waiter", "")
	var c takeover
	c.before = s.do(holder, "lock", locked).Token
	s.do(waiter, "lock", waits)
	s.rest(demoTTL / 2) // the lease was renewed once, and half the time to the next renewal has passed
	s.signal(holder, syscall.SIGKILL, "SIGKILL")
	s.await(holder, gone)
	// Read when nothing can renew the lease any more. The answer belongs to an instant between these two
	// times.
	c.asked = time.Now()
	c.lease = s.info().TTL
	c.answered = time.Now()
	stalled := s.watchStalls()
	in := s.await(waiter, locked)
	c.stalled = stalled()
	c.entered, c.after = in.At, in.Token
	s.do(waiter, "unlock", unlocked)
	return c.checks()
}

func pause(s *stage) []check {
	first := s.start("first", "")
	second := s.start("second", "")
	var p pausing
	p.before = s.do(first, "lock", locked).Token
	s.do(first, "store first", wrote)
	s.do(second, "lock", waits)
	s.rest(demoTTL / 4)
	s.signal(first, syscall.SIGSTOP, "SIGSTOP")
	in := s.await(second, locked)
	p.entered, p.after = in.At, in.Token
	s.do(second, "store second", wrote)
	s.rest(150 * time.Millisecond)
	// The first process finds these orders when it wakes up, before anybody can tell it anything.
	s.send(first, "ask")
	s.send(first, "store late")
	p.woken = s.signal(first, syscall.SIGCONT, "SIGCONT")
	p.asked = s.await(first, answered)
	p.late = s.await(first, wrote)
	s.await(first, lost)
	p.stored = s.stored()
	s.do(second, "unlock", unlocked)
	return p.checks()
}

func (s *stage) stored() (value string) {
	if s.err == nil {
		var err error
		if value, err = s.link.rdb.Get(s.ctx, storeKey(s.at.prefix)).Result(); err != nil {
			s.fail(err)
		}
	}
	return value
}

func fairness(s *stage) []check {
	at := map[string]*worker{}
	for _, name := range []string{"first", "A", "B", "C", "D"} {
		at[name] = s.start(name, "")
	}
	s.do(at["first"], "fair", locked)
	var q queueing
	join := func(name string, n int) {
		s.queue(at[name], "fair", n)
		q.queued = append(q.queued, name)
	}
	for i, name := range []string{"C", "A", "D", "B"} {
		join(name, i+1)
	}
	s.rest(150 * time.Millisecond)
	s.do(at["first"], "unlock", unlocked)
	// C holds until the first has come back, so that the first joins behind all others.
	join("first", 4)
	for _, name := range []string{"A", "D", "B"} {
		s.send(at[name], "unlock")
	}
	s.send(at["first"], "unlock")
	s.send(at["C"], "unlock")
	for _, name := range q.queued {
		q.visits = append(q.visits, s.visit(at[name]))
	}
	return q.checks()
}

// visit returns one stay in the lock, of a worker that was told to unlock.
func (s *stage) visit(w *worker) visit {
	in, out := s.await(w, locked), s.await(w, unlocks)
	s.await(w, unlocked)
	return visit{name: w.name, token: in.Token, in: in.At, out: out.At}
}

func sharing(s *stage) []check {
	r1, r2 := s.start("reader 1", ""), s.start("reader 2", "")
	writer, late := s.start("writer", ""), s.start("late", "")
	var f shares
	looked := s.watchHolders()
	one, two := s.do(r1, "read", locked), s.do(r2, "read", locked)
	f.together = s.readers()
	s.queue(writer, "write", 1)
	s.queue(late, "read", 2)
	s.rest(150 * time.Millisecond)
	s.send(r1, "unlock")
	f.first = visit{token: one.Token, in: one.At, out: s.await(r1, unlocks).At}
	s.await(r1, unlocked)
	s.rest(150 * time.Millisecond) // for a process that would enter too early
	s.send(r2, "unlock")
	f.second = visit{token: two.Token, in: two.At, out: s.await(r2, unlocks).At}
	in := s.await(writer, locked)
	s.rest(150 * time.Millisecond)
	s.send(writer, "downgrade")
	f.writer = visit{token: in.Token, in: in.At, out: s.await(writer, lowers).At}
	f.lowered = s.await(writer, lowered).Token
	joined := s.await(late, locked)
	f.late = visit{token: joined.Token, in: joined.At}
	f.joined = s.readers()
	f.looks, f.mixed = looked()
	s.do(late, "unlock", unlocked)
	s.do(writer, "unlock", unlocked)
	return f.checks()
}
