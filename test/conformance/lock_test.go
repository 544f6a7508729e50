package conformance_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// depth is how often a case re-enters.
const depth = 5

func TestTCK_L01_Constructor(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		if th.excl.HoldCount() != 0 || th.excl.Token() != 0 || th.excl.Lost() != nil {
			t.Errorf("a new handle has %d holds, token %d", th.excl.HoldCount(), th.excl.Token())
		}
		if keys := g.rdb.Keys(t.Context(), "*"+g.name+"*").Val(); len(keys) != 0 {
			t.Errorf("a constructor has written %q", keys)
		}
		g.held()
		g.ok(th.excl.Lock(th.ctx))
		info, err := th.excl.Info(t.Context())
		g.ok(err)
		if want := map[bool]string{false: "plain", true: "fair"}[len(g.opts) > 0]; info.Kind != want {
			t.Errorf("kind %q, want %q", info.Kind, want)
		}
		g.ok(th.excl.Unlock())
	})
}

func TestTCK_L02_Lock(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		g.ok(th.excl.Lock(th.ctx))
		g.held("t w1")
		g.ok(th.excl.Unlock())
		g.held()
	})
}

func TestTCK_L03_UnlockIllegalState(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		g.is(th.excl.Unlock(), relock.ErrNotHeld)
		g.held()
	})
}

func TestTCK_L04_TryLock(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		g.tries(true)(th.excl.TryLock(th.ctx, 0))
		g.tries(true)(th.excl.TryLock(th.ctx, 0))
		g.held("t w2")
		g.ok(th.excl.Unlock())
		g.held("t w1")
		g.ok(th.excl.Unlock())
		g.held()
	})
}

func TestTCK_L05_TryLockWhenLocked(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, other, near := g.thread("me"), g.thread("other"), g.thread("near")
		g.ok(me.excl.Lock(me.ctx))
		g.tries(false)(other.excl.TryLock(other.ctx, 0))
		g.tries(false)(near.excl.TryLock(near.ctx, -time.Second))
		g.tries(false)(near.excl.TryLock(t.Context(), 0))
		g.queue()
		g.held("me w1")
		g.ok(me.excl.Unlock())
	})
}

func TestTCK_L06_TryLockTimeout(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		const wait = 50 * time.Millisecond
		me, other := g.thread("me"), g.thread("other")
		g.ok(me.excl.Lock(me.ctx))
		began := time.Now()
		g.tries(false)(other.excl.TryLock(other.ctx, wait))
		if took := time.Since(began); took < wait {
			t.Errorf("gave up after %v, want %v", took, wait)
		}
		g.queue()
		g.held("me w1")
		g.ok(me.excl.Unlock())
	})
}

// interrupts runs a case in which a queued call is interrupted, for any way to lock.
func interrupts(t *testing.T, lock func(l *relock.Lock, ctx context.Context) error) {
	t.Helper()
	inBothModes(t, func(t *testing.T, g *ground) {
		for _, me := range []*thread{g.thread("me"), g.thread("me")} {
			other := g.threadOf(g.clients[0], "other")
			g.ok(me.excl.Lock(me.ctx))
			a := other.begin(func(ctx context.Context) error { return lock(other.excl, ctx) })
			g.queue("other")
			a.waits()
			a.interrupt()
			g.is(a.ends(), context.Canceled)
			g.queue()
			g.held("me w1")
			g.ok(me.excl.Unlock())
			g.held()
			g.ok(lock(other.excl, other.ctx))
			g.held("other w1")
			g.ok(other.excl.Unlock())
		}
	})
}

func TestTCK_L07_TryLockInterruptible(t *testing.T) {
	interrupts(t, func(l *relock.Lock, ctx context.Context) error { return timed(l.TryLock(ctx, time.Minute)) })
}

func TestTCK_L08_LockInterruptibly(t *testing.T) {
	interrupts(t, func(l *relock.Lock, ctx context.Context) error { return l.Lock(ctx) })
}

func TestTCK_L09_GetHoldCount(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("t")
		for i := 1; i <= depth; i++ {
			g.ok(th.excl.Lock(th.ctx))
			if got := th.excl.HoldCount(); got != i {
				t.Errorf("%d holds, want %d", got, i)
			}
		}
		for i := depth - 1; i >= 0; i-- {
			g.ok(th.excl.Unlock())
			if got := th.excl.HoldCount(); got != i {
				t.Errorf("%d holds, want %d", got, i)
			}
		}
	})
}

func TestTCK_L10_IsLocked(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me, other := g.thread("me"), g.thread("other")
		g.ok(me.excl.Lock(me.ctx))
		g.ok(me.excl.Lock(me.ctx))
		g.held("me w2")
		g.ok(me.excl.Unlock())
		g.held("me w1")
		g.ok(me.excl.Unlock())
		g.held()
		g.ok(other.begin(other.excl.Lock).ends())
		g.held("other w1")
		g.ok(other.excl.Unlock())
		g.held()
	})
}

// TestTCK_L39_SecondHandleIsTheSameLock: a serialized lock of theirs comes back
// unlocked; what comes back here is a name, and names the same lock.
func TestTCK_L39_SecondHandleIsTheSameLock(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		me := g.thread("me")
		g.ok(me.excl.Lock(me.ctx))
		for _, c := range g.clients {
			again := c.NewLock(me.excl.Name(), g.opts...)
			if again.HoldCount() != 0 {
				t.Errorf("a new handle has %d holds", again.HoldCount())
			}
			g.tries(false)(again.TryLock(t.Context(), 0))
			g.tries(true)(again.TryLock(me.ctx, 0))
			g.held("me w2")
			g.ok(again.Unlock())
		}
		g.ok(me.excl.Unlock())
	})
}
