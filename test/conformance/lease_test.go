package conformance_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/virtual"
)

// acquiredAt waits for a call, and asserts when it got its hold: between after
// and within of it.
func (a *attempt) acquiredAt(since time.Time, after, within time.Duration) {
	a.g.t.Helper()
	limit := time.NewTimer(after + within + time.Second)
	defer limit.Stop()
	var err error
	select {
	case err = <-a.result:
	case <-limit.C:
		a.g.t.Fatal("the call has not returned")
	}
	if took := time.Since(since); err != nil || took < after || took > after+within {
		a.g.t.Errorf("returned %v after %v, want nil between %v and %v", err, took, after, after+within)
	}
}

// TestDeadReaderBlocksWritersUntilItsOwnLeaseEnds, no shorter and no longer,
// though another reader renews meanwhile, and a writer was told of that one.
func TestDeadReaderBlocksWritersUntilItsOwnLeaseEnds(t *testing.T) {
	for _, opts := range [][]relock.LockOption{nil, {relock.Fair()}} {
		inVirtualTime(t, func(t *testing.T, g *ground) {
			c, link := g.over()
			dead, live, w := g.threadOf(c, "dead"), g.thread("live"), g.thread("w")
			g.ok(live.RLock(live.ctx))
			virtual.Sleep(7 * time.Millisecond)
			began := time.Now()
			g.ok(dead.RLock(dead.ctx))
			virtual.Sleep(time.Second)
			link.Cut()
			writes := w.begin(w.Lock)
			virtual.Sleep(25*time.Second + 3*time.Millisecond)
			g.held("dead r1", "live r1")
			g.ok(live.RUnlock())
			writes.waits()
			g.held("dead r1")
			writes.acquiredAt(began, 30*time.Second, 10*time.Millisecond)
			g.held("w w1")
			g.ok(w.Unlock())
		}, opts...)
	}
}

// TestLivingReaderOutlastsADeadOne: the dead one's lease ends alone.
func TestLivingReaderOutlastsADeadOne(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		c, link := g.over()
		dead, live, w := g.threadOf(c, "dead"), g.thread("live"), g.thread("w")
		g.ok(live.RLock(live.ctx))
		g.ok(dead.RLock(dead.ctx))
		virtual.Sleep(time.Second)
		link.Cut()
		writes := w.begin(w.Lock)
		virtual.Sleep(31 * time.Second)
		g.held("live r1")
		virtual.Sleep(5 * time.Minute)
		writes.waits()
		g.held("live r1")
		g.ok(live.RUnlock())
		g.ok(writes.ends())
		g.ok(w.Unlock())
	})
}

// TestReadHoldsOfADeadProcessEndThoughTheirOwnerReadsElsewhere.
func TestReadHoldsOfADeadProcessEndThoughTheirOwnerReadsElsewhere(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		c, link := g.over()
		dead, live := g.threadOf(c, "me"), g.thread("me")
		g.ok(dead.RLock(dead.ctx))
		g.ok(live.RLock(live.ctx))
		g.held("me r2")
		link.Cut()
		virtual.Sleep(31 * time.Second)
		g.held("me r1")
		g.ok(live.RUnlock())
		g.held()
	})
}

// TestWriteHoldOfADeadProcessEndsThoughItsOwnerReadsElsewhere is a defect that
// was: the read hold kept others out as the write hold had.
func TestWriteHoldOfADeadProcessEndsThoughItsOwnerReadsElsewhere(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		c, link := g.over()
		dead, live, r := g.threadOf(c, "me"), g.thread("me"), g.thread("r")
		g.ok(dead.Lock(dead.ctx))
		virtual.Sleep(time.Second)
		g.ok(live.RLock(live.ctx))
		link.Cut()
		reads := r.begin(r.RLock)
		began := time.Now()
		reads.acquiredAt(began, 15*time.Second, 30*time.Second)
		g.held("me r1", "r r1")
		g.ok(live.RUnlock())
		g.ok(r.RUnlock())
	})
}

// TestNestedReadUnlockLeavesTheWriteHoldRenewed for several leases.
func TestNestedReadUnlockLeavesTheWriteHoldRenewed(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		me, r := g.thread("me"), g.thread("r")
		h, err := me.WLocker().Acquire(me.ctx)
		g.ok(err)
		g.ok(me.RLock(me.ctx))
		g.ok(me.RUnlock())
		for range 9 {
			virtual.Sleep(10*time.Second + time.Millisecond)
			g.ok(h.Err())
			g.held("me w1")
			g.tries(false)(r.TryRLock(r.ctx, 0))
		}
		g.ok(me.Unlock())
	})
}

// TestReadersPassADeadWriterWhenItsEntryEnds, and do not wait for the reader
// whom the writer waited for, who goes on.
func TestReadersPassADeadWriterWhenItsEntryEnds(t *testing.T) {
	for _, opts := range [][]relock.LockOption{nil, {relock.Fair()}} {
		inVirtualTime(t, func(t *testing.T, g *ground) {
			c, link := g.over()
			me, r1, r2 := g.thread("me"), g.thread("r1"), g.thread("r2")
			w := c.NewRWLock(g.name, append(opts, relock.TTL(2*time.Second))...)
			g.ok(me.RLock(me.ctx))
			began := time.Now()
			dead := g.threadOf(c, "w")
			dead.begin(w.Lock)
			g.queue("w")
			synctest.Wait()
			link.Cut()
			a1 := r1.begin(r1.RLock)
			g.queue("w", "r1")
			a2 := r2.begin(r2.RLock)
			g.queue("w", "r1", "r2")
			a1.acquiredAt(began, 2*time.Second, 150*time.Millisecond)
			a2.acquiredAt(began, 2*time.Second, 150*time.Millisecond)
			g.held("me r1", "r1 r1", "r2 r1")
			for _, th := range []*thread{me, r1, r2} {
				g.ok(th.RUnlock())
			}
		}, opts...)
	}
}

// TestThousandReadersFollowOneWriter: one call lets 256 in, the rest is asked for
// again. In virtual time, whose server is slow, it is 300.
func TestThousandReadersFollowOneWriter(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		g.crowd(func(w *thread) { g.ok(w.Unlock()) })
	})
}

// TestThousandReadersFollowADowngrade, likewise.
func TestThousandReadersFollowADowngrade(t *testing.T) {
	onBothServers(t, func(t *testing.T, g *ground) {
		g.crowd(func(w *thread) {
			g.ok(w.Downgrade(w.ctx))
			g.ok(w.RUnlock())
		})
	})
}

// crowd has readers queue behind a writer, which then makes room for them.
func (g *ground) crowd(giveWay func(w *thread)) {
	g.t.Helper()
	readers := 1000
	if g.virtual != nil {
		readers = 300
	}
	w := g.thread("w")
	g.ok(w.Lock(w.ctx))
	var calls []*attempt
	var locks []*relock.RWLock
	for i := range readers {
		th := &thread{g: g, ctx: g.t.Context()}
		l := g.clients[i%2].NewRWLock(g.name, g.opts...)
		locks = append(locks, l)
		calls = append(calls, th.begin(l.RLock))
	}
	g.until(func() (bool, string) {
		info, err := g.view().Info(g.t.Context())
		g.ok(err)
		return info.Waiters == readers, fmt.Sprintf("%d waiters", info.Waiters)
	})
	began := time.Now()
	giveWay(w)
	for _, a := range calls {
		g.ok(a.ends())
	}
	if took := time.Since(began); g.virtual != nil && took > 10*time.Millisecond {
		g.t.Errorf("it took %v until the last was let in", took)
	}
	info, err := g.view().Info(g.t.Context())
	g.ok(err)
	if len(info.Holders) != readers || info.Waiters != 0 {
		g.t.Errorf("%d readers, %d waiters", len(info.Holders), info.Waiters)
	}
	g.split(readers, func(i int) error { return locks[i].RUnlock() })
	g.held()
}

// TestReadersOfADeadWriterAreAllLetIn, though more stand there than one call lets in.
func TestReadersOfADeadWriterAreAllLetIn(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, g *ground) {
		const readers = 300
		c, link := g.over()
		w := c.NewRWLock(g.name, relock.TTL(time.Second))
		g.ok(w.Lock(t.Context()))
		link.Cut()
		began := time.Now()
		var calls []*attempt
		var locks []*relock.RWLock
		for i := range readers {
			th := &thread{g: g, ctx: t.Context()}
			locks = append(locks, g.clients[i%2].NewRWLock(g.name))
			calls = append(calls, th.begin(locks[i].RLock))
		}
		for _, a := range calls {
			a.acquiredAt(began, time.Second, 200*time.Millisecond)
		}
		g.split(readers, func(i int) error { return locks[i].RUnlock() })
	})
}

func TestForceUnlockEndsEveryReader(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		r1, r2, w := g.thread("r1"), g.thread("r2"), g.thread("w")
		h1, err := r1.RLocker().Acquire(r1.ctx)
		g.ok(err)
		h2, err := r2.RLocker().Acquire(r2.ctx)
		g.ok(err)
		g.ok(r2.RLock(r2.ctx))
		writes := w.begin(w.Lock)
		g.queue("w")
		g.tries(true)(g.view().ForceUnlock(t.Context()))
		g.ok(writes.ends())
		g.held("w w1")
		<-h1.Lost()
		<-h2.Lost()
		g.is(r1.RUnlock(), relock.ErrLost)
		g.is(r2.RUnlock(), relock.ErrLost)
		g.is(r2.RUnlock(), relock.ErrLost)
		g.is(r2.RUnlock(), relock.ErrNotHeld)
		g.held("w w1")
		g.ok(w.Unlock())
		g.tries(false)(g.view().ForceUnlock(t.Context()))
	})
}

// TestQueueOfReadersHasAnEnd is a defect that was: where the last waiters became
// readers their entries were the whole queue, which came back without a TTL,
// and stayed for ever if they died before their first renewal.
func TestQueueOfReadersHasAnEnd(t *testing.T) {
	onBothServers(t, func(t *testing.T, g *ground) {
		queue := key.For("relock", g.name).Queue
		ends := func() {
			t.Helper()
			if ttl := g.rdb.PTTL(t.Context(), queue).Val(); ttl <= 0 {
				t.Errorf("the readers' key has TTL %v", ttl)
			}
		}
		me, r, other := g.thread("me"), g.thread("r"), g.thread("other")
		g.ok(me.Lock(me.ctx))
		reads := r.begin(r.RLock)
		g.queue("r")
		read := other.begin(other.RLock)
		g.queue("r", "other")
		g.ok(me.Unlock())
		g.ok(reads.ends())
		g.ok(read.ends())
		ends()
		g.ok(r.RUnlock())
		g.ok(other.RUnlock())

		g.ok(me.Lock(me.ctx)) // and by a release that is a downgrade
		elsewhere := g.thread("me")
		g.ok(elsewhere.RLock(me.ctx))
		g.ok(me.Unlock())
		ends()
		g.ok(elsewhere.RUnlock())
	})
}
