package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// TestTCKGap1_FairGrantsInOrderOfArrival, of named owners and of anonymous calls.
func TestTCKGap1_FairGrantsInOrderOfArrival(t *testing.T) {
	onGrounds(t, map[string][]relock.LockOption{"fair": {relock.Fair()}}, func(t *testing.T, g *ground) {
		const waiters = 8
		me := g.thread("me")
		g.ok(me.excl.Lock(me.ctx))
		served := make(chan int, waiters)
		var calls []*attempt
		for i := range waiters {
			th := g.thread(fmt.Sprint("t", i))
			if i%2 == 1 {
				th.ctx = t.Context() // of nobody in particular
			}
			calls = append(calls, th.begin(func(ctx context.Context) error {
				if err := th.excl.Lock(ctx); err != nil {
					return err
				}
				served <- i
				return th.excl.Unlock()
			}))
			g.until(func() (bool, string) {
				info, err := g.view().Info(t.Context())
				g.ok(err)
				return info.Waiters == i+1, fmt.Sprintf("%d waiters, want %d", info.Waiters, i+1)
			})
		}
		g.ok(me.excl.Unlock())
		for _, a := range calls {
			g.ok(a.ends())
		}
		for want := range waiters {
			if got := <-served; got != want {
				t.Errorf("waiter %d was served in place %d", got, want)
			}
		}
	})
}

// TestTCKGap2_FairTryLockDoesNotOvertake: attempts all through a queue's being
// served, and nobody gets the lock who does not stand in it.
func TestTCKGap2_FairTryLockDoesNotOvertake(t *testing.T) {
	onGrounds(t, map[string][]relock.LockOption{"fair": {relock.Fair()}}, func(t *testing.T, g *ground) {
		me := g.thread("me")
		g.ok(me.excl.Lock(me.ctx))
		var waiting atomic.Int32
		var calls []*attempt
		queue := []string{"t0", "t1", "t2", "t3", "t4", "t5"}
		for i, owner := range queue {
			th := g.thread(owner)
			waiting.Add(1)
			calls = append(calls, th.begin(func(ctx context.Context) error {
				if err := th.excl.Lock(ctx); err != nil {
					return err
				}
				waiting.Add(-1)
				return th.excl.Unlock()
			}))
			g.queue(queue[:i+1]...)
		}
		for _, th := range []*thread{g.thread("b0"), g.thread("b1")} {
			calls = append(calls, th.begin(func(ctx context.Context) error {
				if err := attemptUntilHeld(ctx, th.excl); err != nil {
					return err
				}
				if n := waiting.Load(); n != 0 {
					t.Errorf("an attempt overtook %d waiters", n)
				}
				return th.excl.Unlock()
			}))
		}
		g.ok(me.excl.Unlock())
		for _, a := range calls {
			g.ok(a.ends())
		}
	})
}

// attemptUntilHeld makes one attempt after the other.
func attemptUntilHeld(ctx context.Context, l *relock.Lock) error {
	for {
		if got, err := l.TryLock(ctx, 0); got || err != nil {
			return err
		}
		pauseFor(ctx, time.Millisecond)
	}
}

// pauseFor lets some time go by in a loop of attempts.
func pauseFor(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

func TestTCKGap3_UnlockByAnotherWhileHeld(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me := g.thread("me")
		g.ok(me.excl.Lock(me.ctx))
		for _, other := range []*thread{g.thread("far"), g.thread("near"), g.thread("me")} {
			g.is(other.excl.Unlock(), relock.ErrNotHeld)
			g.held("me w1")
		}
		g.ok(me.excl.Unlock())

		g.ok(me.Lock(me.ctx))
		for _, other := range []*thread{g.thread("far"), g.thread("near")} {
			g.is(other.Unlock(), relock.ErrNotHeld)
			g.is(other.RUnlock(), relock.ErrNotHeld)
			g.held("me w1")
		}
		g.ok(me.Unlock())
	})
}

// TestTCKGap4_Downgrade in the way of the JDK: lock, read lock, unlock. A reader
// at the head of the queue joins at once; one behind a writer goes on waiting.
func TestTCKGap4_Downgrade(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, r1, w, r2 := g.thread("me"), g.thread("r1"), g.thread("w"), g.thread("r2")
		g.ok(me.Lock(me.ctx))
		joins := r1.begin(r1.RLock)
		g.queue("r1")
		writes := w.begin(w.Lock)
		g.queue("r1", "w")
		reads := r2.begin(r2.RLock)
		g.queue("r1", "w", "r2")
		g.ok(me.RLock(me.ctx))
		joins.waits()
		g.held("me w2")
		g.ok(me.Unlock())
		g.ok(joins.ends())
		g.queue("w", "r2")
		g.held("me r1", "r1 r1")
		writes.waits()
		reads.waits()
		g.ok(me.RUnlock())
		writes.waits()
		g.ok(r1.RUnlock())
		g.ok(writes.ends())
		reads.waits()
		g.ok(w.Unlock())
		g.ok(reads.ends())
		g.ok(r2.RUnlock())
		g.held()
	})
}

// TestTCKGap4_NoUpgrade: the sole reader cannot write, in any way to ask.
func TestTCKGap4_NoUpgrade(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me := g.thread("me")
		g.ok(me.RLock(me.ctx))
		for _, th := range []*thread{me, g.thread("me"), g.thread("me")} {
			g.is(th.Lock(th.ctx), relock.ErrUpgrade)
			for _, wait := range []time.Duration{0, time.Minute} {
				got, err := th.TryLock(th.ctx, wait)
				if g.is(err, relock.ErrUpgrade); got {
					t.Error("a reader writes")
				}
			}
		}
		g.queue()
		g.held("me r1")
		g.ok(me.RUnlock())
	})
}

func TestTCKGap6_ReentrantReaderPassesQueuedWriter(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, w, r := g.thread("me"), g.thread("w"), g.thread("r")
		elsewhere := g.thread("me") // the same owner, in the other process
		g.ok(me.RLock(me.ctx))
		writes := w.begin(w.Lock)
		g.queue("w")
		g.ok(me.RLock(me.ctx))
		g.tries(true)(me.TryRLock(me.ctx, 0))
		g.ok(elsewhere.RLock(me.ctx))
		g.held("me r4")
		g.tries(false)(r.TryRLock(r.ctx, 0))
		writes.waits()
		for range 3 {
			g.ok(me.RUnlock())
		}
		writes.waits()
		g.ok(elsewhere.RUnlock())
		g.ok(writes.ends())
		g.ok(w.Unlock())
	})
}

// TestTCKGap6_ReadersGoOnWhenTheWriterAbandons, though others read all along.
func TestTCKGap6_ReadersGoOnWhenTheWriterAbandons(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, w, r1, r2 := g.thread("me"), g.thread("w"), g.thread("r1"), g.thread("r2")
		g.ok(me.RLock(me.ctx))
		writes := w.begin(w.Lock)
		g.queue("w")
		a1 := r1.begin(r1.RLock)
		g.queue("w", "r1")
		a2 := r2.begin(r2.RLock)
		g.queue("w", "r1", "r2")
		writes.interrupt()
		g.is(writes.ends(), context.Canceled)
		g.ok(a1.ends())
		g.ok(a2.ends())
		g.queue()
		g.held("me r1", "r1 r1", "r2 r1")
		for _, th := range []*thread{me, r1, r2} {
			g.ok(th.RUnlock())
		}
	})
}

// TestTCKGap7_HoldCountDoesNotOverflow: the 2^31st hold is refused, and the
// others are left as they were.
func TestTCKGap7_HoldCountDoesNotOverflow(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me := g.thread("me")
		for _, side := range []*relock.Lock{me.WLocker(), me.RLocker()} {
			h, err := side.Acquire(me.ctx)
			g.ok(err)
			rig.PretendHolds(h, math.MaxInt32-2)
			g.ok(side.Lock(me.ctx))
			info, err := side.Info(t.Context())
			g.ok(err)
			if !slices.ContainsFunc(info.Holders, func(h relock.Holder) bool { return h.Holds == math.MaxInt32 }) {
				t.Errorf("holders %+v, want one with 2^31-1", info.Holders)
			}
			err = side.Lock(me.ctx)
			g.is(err, relock.ErrTooManyHolds)
			if errors.Is(err, relock.ErrNotHeld) || side.HoldCount() != 2 {
				t.Errorf("%v; %d holds, want 2", err, side.HoldCount())
			}
			rig.PretendHolds(h, 0)
			g.ok(side.Unlock())
			g.ok(side.Unlock())
			g.held()
		}
	})
}
