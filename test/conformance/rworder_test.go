package conformance_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// TestTCK_W19_ReaderWriterReaderFairFifo holds for a lock that is not fair as
// well: a writer at the head of the queue holds back new readers of both.
func TestTCK_W19_ReaderWriterReaderFairFifo(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		r1, w, r2 := g.thread("r1"), g.thread("w"), g.thread("r2")
		g.ok(r1.RLock(r1.ctx))
		writes := w.begin(w.Lock)
		g.queue("w")
		reads := r2.begin(r2.RLock)
		g.queue("w", "r2")
		writes.waits()
		reads.waits()
		g.held("r1 r1")
		g.ok(r1.RUnlock())
		g.ok(writes.ends())
		reads.waits()
		g.held("w w1")
		g.queue("r2")
		g.ok(w.Unlock())
		g.ok(reads.ends())
		g.held("r2 r1")
		g.ok(r2.RUnlock())
	})
}

// TestTCK_W20_ReadTryLockDoesNotBarge: their tryLock() barges, their tryLock(0)
// does not; here there is the second alone.
func TestTCK_W20_ReadTryLockDoesNotBarge(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		r1, w, r2, r3 := g.thread("r1"), g.thread("w"), g.thread("r2"), g.thread("r3")
		g.ok(r1.RLock(r1.ctx))
		writes := w.begin(w.Lock)
		g.queue("w")
		reads := r2.begin(r2.RLock)
		g.queue("w", "r2")
		g.tries(false)(r3.TryRLock(r3.ctx, 0))
		g.tries(false)(r3.TryRLock(r3.ctx, 20*time.Millisecond))
		g.queue("w", "r2")
		g.held("r1 r1")
		g.ok(r1.RUnlock())
		g.ok(writes.ends())
		g.ok(w.Unlock())
		g.ok(reads.ends())
		g.tries(true)(r3.TryRLock(r3.ctx, 0))
		g.ok(r3.RUnlock())
		g.ok(r2.RUnlock())
	})
}

func TestTCK_W21_ReadHoldingWriteLock(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me := g.thread("me")
		g.ok(me.Lock(me.ctx))
		g.tries(true)(me.TryRLock(me.ctx, 0))
		g.held("me w2")
		g.ok(me.RUnlock())
		g.held("me w1")
		g.ok(me.Unlock())
		g.held()
	})
}

// beingAwaited has a writer work on while two others wait for it.
func beingAwaited(t *testing.T, side func(*thread) *relock.Lock, work func(g *ground, me *thread)) {
	t.Helper()
	inBothModes(t, func(t *testing.T, g *ground) {
		me, t1, t2 := g.thread("me"), g.thread("t1"), g.thread("t2")
		g.ok(me.Lock(me.ctx))
		a1 := t1.begin(side(t1).Lock)
		g.queue("t1")
		a2 := t2.begin(side(t2).Lock)
		g.queue("t1", "t2")
		work(g, me)
		g.queue("t1", "t2")
		a1.waits()
		a2.waits()
		g.held("me w1")
		g.ok(me.Unlock())
		g.ok(a1.ends())
		g.ok(side(t1).Unlock())
		g.ok(a2.ends())
		g.ok(side(t2).Unlock())
		g.held()
	})
}

func readOn(g *ground, me *thread) {
	g.tries(true)(me.TryRLock(me.ctx, 0))
	g.ok(me.RUnlock())
	g.ok(me.RLock(me.ctx))
	g.held("me w2")
	g.ok(me.RUnlock())
}

func TestTCK_W22_ReadHoldingWriteLockBeforeReaders(t *testing.T) {
	beingAwaited(t, func(th *thread) *relock.Lock { return th.RLocker() }, readOn)
}

func TestTCK_W23_ReadHoldingWriteLockBeforeWriters(t *testing.T) {
	beingAwaited(t, func(th *thread) *relock.Lock { return th.WLocker() }, readOn)
}

func TestTCK_W24_WriteHoldingWriteLockBeforeWriters(t *testing.T) {
	beingAwaited(t, func(th *thread) *relock.Lock { return th.WLocker() }, func(g *ground, me *thread) {
		g.tries(true)(me.TryLock(me.ctx, 0))
		g.held("me w2")
		g.ok(me.Unlock())
		g.ok(me.Lock(me.ctx))
		g.held("me w2")
		g.ok(me.Unlock())
	})
}

// rwInterrupts interrupts a queued call under a writer; the same call then works
// on the free lock.
func rwInterrupts(t *testing.T, side func(*thread) *relock.Lock, want string, lock func(l *relock.Lock, ctx context.Context) error) {
	t.Helper()
	inBothModes(t, func(t *testing.T, g *ground) {
		me, other := g.thread("me"), g.thread("other")
		g.ok(me.Lock(me.ctx))
		a := other.begin(func(ctx context.Context) error { return lock(side(other), ctx) })
		g.queue("other")
		a.waits()
		a.interrupt()
		g.is(a.ends(), context.Canceled)
		g.queue()
		g.held("me w1")
		g.ok(me.Unlock())
		g.held()
		g.ok(lock(side(other), other.ctx))
		g.held(want)
		g.ok(side(other).Unlock())
		done, cancel := context.WithCancel(other.ctx)
		cancel()
		g.is(lock(side(other), done), context.Canceled)
		g.held()
	})
}

func forever(l *relock.Lock, ctx context.Context) error { return l.Lock(ctx) } //nolint:revive // a method expression has the receiver first

func forAMinute(l *relock.Lock, ctx context.Context) error { //nolint:revive // as above
	return timed(l.TryLock(ctx, time.Minute))
}

func TestTCK_W25_W29_WriteLockInterruptibly(t *testing.T) {
	rwInterrupts(t, func(th *thread) *relock.Lock { return th.WLocker() }, "other w1", forever)
}

func TestTCK_W26_W30_ReadLockInterruptibly(t *testing.T) {
	rwInterrupts(t, func(th *thread) *relock.Lock { return th.RLocker() }, "other r1", forever)
}

func TestTCK_W27_WriteTryLockInterruptible(t *testing.T) {
	rwInterrupts(t, func(th *thread) *relock.Lock { return th.WLocker() }, "other w1", forAMinute)
}

func TestTCK_W28_ReadTryLockInterruptible(t *testing.T) {
	rwInterrupts(t, func(th *thread) *relock.Lock { return th.RLocker() }, "other r1", forAMinute)
}

// TestTCK_W60_SecondHandleIsTheSameLock, as L39.
func TestTCK_W60_SecondHandleIsTheSameLock(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me := g.thread("me")
		g.ok(me.RLock(me.ctx))
		for _, c := range g.clients {
			again := c.NewRWLock(me.RLocker().Name(), g.opts...)
			g.is(again.RUnlock(), relock.ErrNotHeld)
			g.tries(false)(again.TryLock(t.Context(), 0))
			g.tries(true)(again.TryRLock(me.ctx, 0))
			g.held("me r2")
			g.ok(again.RUnlock())
		}
		g.ok(me.RUnlock())
	})
}
