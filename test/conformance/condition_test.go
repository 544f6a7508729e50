package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// A waiter is a thread on a condition of its lock.
type waiter struct {
	*thread
	lock *relock.Lock
	cond *relock.Cond
}

// onConditions runs a case for exclusive locks and for writers of a read/write lock.
func onConditions(t *testing.T, play func(g *ground, of func(owner string) waiter)) {
	t.Helper()
	inQueues(t, func(_ *testing.T, g *ground, side func(*thread) *relock.Lock) {
		play(g, func(owner string) waiter {
			th := g.thread(owner)
			return waiter{th, side(th), side(th).NewCond("c")}
		})
	})
}

// sleeps has a thread wait, with so many holds, in one of the forms of a wait.
func (w waiter) sleeps(form func(ctx context.Context, c *relock.Cond) error, holds int) *attempt {
	w.g.t.Helper()
	for range holds {
		w.g.ok(w.lock.Lock(w.ctx))
	}
	return w.begin(func(ctx context.Context) error { return form(ctx, w.cond) })
}

func plainly(ctx context.Context, c *relock.Cond) error { return c.Wait(ctx) }

// forms are those of Java: await, awaitNanos and await with a time, and awaitUntil.
var forms = map[string]func(ctx context.Context, c *relock.Cond) error{
	"await": plainly,
	"awaitTimed": func(ctx context.Context, c *relock.Cond) error {
		signalled, err := c.WaitFor(ctx, time.Hour)
		if err == nil && !signalled {
			return context.DeadlineExceeded
		}
		return err
	},
	"awaitUntil": func(ctx context.Context, c *relock.Cond) error {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		return c.Wait(ctx)
	},
}

// on waits until just these wait on the condition, in this order.
func (w waiter) on(want ...string) {
	w.g.t.Helper()
	w.g.until(func() (bool, string) {
		all, err := w.cond.Waiters(w.g.t.Context())
		w.g.ok(err)
		var got []string
		for _, one := range all {
			got = append(got, one.Owner)
		}
		return slices.Equal(got, want), fmt.Sprintf("on the condition are %q, want %q", got, want)
	})
}

func TestTCK_L16_W31_AwaitIllegalState(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		me := of("me")
		for _, form := range forms {
			g.is(form(me.ctx, me.cond), relock.ErrNotHeld)
		}
		me.on()
		g.held()
	})
}

func TestTCK_L17_W32_W33_SignalIllegalState(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		me, other := of("me"), of("other")
		sleeps := me.sleeps(plainly, 1)
		other.on("me")
		g.is(other.cond.Signal(other.ctx), relock.ErrNotHeld)
		g.is(other.cond.Broadcast(other.ctx), relock.ErrNotHeld)
		other.on("me")
		sleeps.interrupt()
		g.is(sleeps.ends(), context.Canceled)
		g.ok(me.lock.Unlock())
	})
}

func TestTCK_L27_W36_AwaitTimeout(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		me := of("me")
		g.ok(me.lock.Lock(me.ctx))
		began := time.Now()
		signalled, err := me.cond.WaitFor(me.ctx, 50*time.Millisecond)
		g.ok(err)
		if took := time.Since(began); signalled || took < 50*time.Millisecond {
			g.t.Errorf("signalled %v after %v", signalled, took)
		}
		g.held("me w1")
		ctx, cancel := context.WithTimeout(me.ctx, 50*time.Millisecond)
		defer cancel()
		g.is(me.cond.Wait(ctx), context.DeadlineExceeded)
		g.held("me w1")
		g.ok(me.lock.Unlock())
	})
}

func TestTCK_L30_W37_Await(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		me, other := of("me"), of("other")
		sleeps := me.sleeps(plainly, 1)
		other.on("me")
		g.held()
		g.ok(other.lock.Lock(other.ctx))
		g.ok(other.cond.Signal(other.ctx))
		other.on() // before it has woken up, and without a hold for asking
		g.queue("me")
		sleeps.waits()
		g.ok(other.lock.Unlock())
		g.ok(sleeps.ends())
		g.held("me w1")
		g.ok(me.lock.Unlock())
	})
}

func TestTCK_L34_W38_AwaitUninterruptibly(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		me, other := of("me"), of("other")
		ctx, cancel := context.WithCancel(me.ctx)
		cancel()
		sleeps := me.sleeps(func(_ context.Context, c *relock.Cond) error { return c.Wait(context.WithoutCancel(ctx)) }, 1)
		other.on("me")
		sleeps.interrupt()
		sleeps.waits()
		other.on("me")
		g.ok(other.lock.Lock(other.ctx))
		g.ok(other.cond.Signal(other.ctx))
		g.ok(other.lock.Unlock())
		g.ok(sleeps.ends())
		g.ok(me.lock.Unlock())
	})
}

func TestTCK_L35_W39_AwaitInterruptible(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		me, other := of("me"), of("other")
		for _, form := range forms {
			sleeps := me.sleeps(form, 1)
			other.on("me")
			g.ok(other.lock.Lock(other.ctx))
			sleeps.interrupt()
			other.on()
			sleeps.waits() // it returns holding
			g.ok(other.lock.Unlock())
			g.is(sleeps.ends(), context.Canceled)
			g.held("me w1")
			g.ok(me.lock.Unlock())
		}
	})
}

func TestTCK_L32_L36_W40_W58_SignalAll(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		a, b, other := of("a"), of("b"), of("other")
		for _, form := range forms {
			first := a.sleeps(form, 1)
			other.on("a")
			second := b.sleeps(form, 1)
			other.on("a", "b")
			g.ok(other.lock.Lock(other.ctx))
			g.ok(other.cond.Broadcast(other.ctx))
			other.on()
			g.queue("a", "b")
			g.ok(other.lock.Unlock())
			g.ok(first.ends())
			second.waits()
			g.ok(a.lock.Unlock())
			g.ok(second.ends())
			g.ok(b.lock.Unlock())
		}
	})
}

func TestTCK_L37_W41_SignalWakesFifo(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		a, b, other := of("a"), of("b"), of("other")
		first := a.sleeps(plainly, 1)
		other.on("a")
		second := b.sleeps(plainly, 1)
		other.on("a", "b")
		g.ok(other.lock.Lock(other.ctx))
		g.ok(other.cond.Signal(other.ctx))
		other.on("b")
		g.queue("a")
		g.ok(other.cond.Signal(other.ctx))
		other.on()
		g.queue("a", "b")
		g.ok(other.lock.Unlock())
		g.ok(first.ends())
		g.ok(a.lock.Unlock())
		g.ok(second.ends())
		g.ok(b.lock.Unlock())
	})
}

func TestTCK_L38_W42_AwaitLockCount(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		a, b, other := of("a"), of("b"), of("other")
		first := a.sleeps(plainly, 1)
		other.on("a")
		second := b.sleeps(plainly, 2)
		other.on("a", "b")
		g.ok(other.lock.Lock(other.ctx))
		g.ok(other.cond.Broadcast(other.ctx))
		g.ok(other.lock.Unlock())
		g.ok(first.ends())
		g.held("a w1")
		g.ok(a.lock.Unlock())
		g.ok(second.ends())
		g.held("b w2")
		g.ok(b.lock.Unlock())
		g.held("b w1")
		g.ok(b.lock.Unlock())
		g.held()
	})
}

// TestTCK_L41_Bug8187408: who waits without the lock disturbs nobody.
func TestTCK_L41_Bug8187408(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		names, rogue := []string{"a", "b", "c"}, of("rogue")
		var all []waiter
		var sleeps []*attempt
		for i, name := range names {
			all = append(all, of(name))
			sleeps = append(sleeps, all[i].sleeps(plainly, 1))
			for range 5 {
				g.is(rogue.cond.Wait(rogue.ctx), relock.ErrNotHeld)
				g.is(rogue.cond.Signal(rogue.ctx), relock.ErrNotHeld)
			}
			rogue.on(names[:i+1]...)
		}
		g.ok(rogue.lock.Lock(rogue.ctx))
		g.ok(rogue.cond.Broadcast(rogue.ctx))
		g.ok(rogue.lock.Unlock())
		for i, w := range all {
			g.ok(sleeps[i].ends())
			g.ok(w.lock.Unlock())
		}
	})
}

// TestTCKGap5_SignalAgainstInterrupt: of the two the first is true; an interrupt after the
// signal changes nothing, and a signal after the interrupt is the next one's.
func TestTCKGap5_SignalAgainstInterrupt(t *testing.T) {
	onConditions(t, func(g *ground, of func(string) waiter) {
		a, b, other := of("a"), of("b"), of("other")
		first := a.sleeps(plainly, 1)
		other.on("a")
		second := b.sleeps(plainly, 1)
		other.on("a", "b")
		g.ok(other.lock.Lock(other.ctx))
		first.interrupt()
		other.on("b")
		g.ok(other.cond.Signal(other.ctx))
		other.on()
		second.interrupt()
		g.ok(other.lock.Unlock())
		g.is(first.ends(), context.Canceled)
		g.ok(a.lock.Unlock())
		g.ok(second.ends())
		g.ok(b.lock.Unlock())
	})
}
