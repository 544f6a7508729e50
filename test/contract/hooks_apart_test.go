package contract_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The context of an inner hold descends from that of an outer one, and both end while the machine sleeps.
// Fails when the watchdog, which ends the inner context, calls the outer hold's hook: that blocks here.
func TestALostHookOfAnOuterHoldStopsNoRenewal(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		block := make(chan struct{})
		defer close(block)
		c := x.Client(relock.Trace(relock.Hooks{Lost: func(e relock.Event) {
			if e.Name == "outer" {
				<-block
			}
		}}))
		outer := rig.MustAcquire(t, c.NewLock("outer"))
		inner := rig.MustAcquire(t, c.NewLock("inner", relock.TTL(6*time.Second)))
		ctx := inner.Context(outer.Context(t.Context()))
		x.Suspend(time.Minute)
		other := rig.MustAcquire(t, c.NewLock("other", relock.TTL(3*time.Second)))
		virtual.Sleep(20 * time.Second)
		rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
		rig.Must(t, other.Err())
		rig.Must(t, other.Release())
	})
}

// Fails when the end of an inner hold waits for the hook of an outer one, whose context it ends, and which has ended.
func TestALostHookOfAnOuterHoldDelaysNoRelease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		told := make(chan struct{})
		c := x.Client(relock.Trace(relock.Hooks{Lost: func(e relock.Event) {
			close(told)
			<-x.T.Context().Done()
		}}))
		outer := rig.MustAcquire(t, c.NewLock("outer", relock.NoWatchdog(), relock.TTL(time.Minute)))
		inner := rig.MustAcquire(t, c.NewLock("inner", relock.TTL(time.Hour)))
		_ = inner.Context(outer.Context(t.Context()))
		x.Suspend(2 * time.Minute)
		rig.Must(t, inner.Release())
		x.Frees("inner")
		<-told
	})
}

// The answer to a statement finds that a hold of its owner has ended. The hook that is told takes the lock for the owner.
// Fails when the hook is called with the turn, which its own call then waits for.
func TestALostHookMayTakeTheLockForItsOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var side *relock.Lock
		took := make(chan error, 10)
		c, link := x.Linked(relock.Trace(relock.Hooks{Lost: func(relock.Event) {
			ctx, cancel := context.WithTimeout(x.By("me"), 10*time.Second)
			defer cancel()
			took <- side.Lock(ctx)
		}}))
		side = c.NewRWLock("a").RLocker()
		short := acquire(t, c.NewRWLock("a", relock.TTL(3*time.Second), relock.MaxHold(time.Second)).RLocker(), x.By("me"))
		long := acquire(t, c.NewRWLock("a", relock.TTL(time.Minute)).RLocker(), x.By("me"))
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.ScriptSent(cmd.Args) == "hold" {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		third := rig.Beside(func() error { return side.Lock(x.By("me")) })
		synctest.Wait()
		x.Suspend(4 * time.Second)
		close(gate)
		rig.Must(t, <-third)
		rig.Must(t, <-took)
		rig.WantIs(t, short.Release(), relock.ErrLost)
		rig.Must(t, long.Release())
	})
}

// A Downgrade finds that a read hold of its owner has ended. The hook that is told takes the read lock for the owner.
// Fails when the hook is called with the turn, which its own call then waits for.
func TestALostHookMayTakeTheLockForTheOwnerOfADowngrade(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var rw *relock.RWLock
		took := make(chan error, 10)
		c, link := x.Linked(relock.Trace(relock.Hooks{Lost: func(relock.Event) {
			ctx, cancel := context.WithTimeout(x.By("me"), 10*time.Second)
			defer cancel()
			took <- rw.RLock(ctx)
		}}))
		rw = c.NewRWLock("a", relock.TTL(time.Minute))
		rig.Must(t, rw.Lock(x.By("me")))
		short := acquire(t, c.NewRWLock("a", relock.TTL(3*time.Second), relock.NoWatchdog()).RLocker(), x.By("me"))
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.ScriptSent(cmd.Args) == "downgrade" {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		downgrade := rig.Beside(func() error { return rw.Downgrade(x.By("me")) })
		synctest.Wait()
		x.Suspend(4 * time.Second)
		close(gate)
		rig.Must(t, <-downgrade)
		rig.Must(t, <-took)
		rig.WantIs(t, short.Release(), relock.ErrLost)
		rig.Must(t, rw.RUnlock())
		rig.Must(t, rw.RUnlock())
	})
}

// All primaries are out of reach for longer than the lease, and the hook that is told of the loss of one of the locks
// blocks. Fails when the loss of the whole waits for the hook.
func TestALostHookOfAPartDelaysNoLossOfAQuorum(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		block := make(chan struct{})
		defer close(block)
		p := newPrimaries(x, 3)
		q, links := p.process(relock.Trace(relock.Hooks{Lost: func(relock.Event) { <-block }}))
		holds, ctxs := make([]*relock.QuorumHold, 8), make([]context.Context, 8) // who finds a loss is chance
		for i := range holds {
			h, err := q.NewLock(fmt.Sprint("a", i), relock.TTL(10*time.Second)).Acquire(t.Context())
			rig.Must(t, err)
			holds[i], ctxs[i] = h, h.Context(t.Context())
		}
		for _, link := range links {
			defer link.Hole()()
		}
		virtual.Sleep(11 * time.Second)
		for i, h := range holds {
			if !rig.IsShut(h.Lost()) || !rig.IsShut(ctxs[i].Done()) {
				t.Error("the hold is not lost, or its context goes on")
			}
			rig.WantIs(t, h.Err(), relock.ErrLost)
		}
	})
}

// Fails when a heartbeat that tells one waiter of its loss calls the hook before it has told the others.
func TestALostHookOfAWaiterKeepsNoOtherWaiting(t *testing.T) {
	for name, refuse := range map[string]func(x *rig.Lab){
		"the heartbeat is refused": func(x *rig.Lab) {
			x.Server.FailNext(1000, "NOPERM this user has no permissions", func(args []string) bool { return strings.HasPrefix(args[0], "eval") })
		},
		"the name is another kind of lock now": func(x *rig.Lab) {
			x.Server.FlushAll()
			rig.Must(x.T, x.Eye.NewRWLock("l").Lock(x.T.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				block := make(chan struct{})
				defer close(block)
				c := x.Client(relock.Trace(relock.Hooks{Lost: func(relock.Event) { <-block }}))
				l := c.NewLock("l", relock.Fair())
				s := x.Sleeps(rig.MustAcquire(t, l).Context(t.Context()), l.NewCond("c"), 0)
				s.Waits()
				rig.MustAcquire(t, x.Lock("l", relock.Fair()))
				waits := x.Begin(l)
				waits.Waits()
				refuse(x)
				virtual.Sleep(time.Minute)
				if !rig.IsShut(waits.Done) || waits.Err == nil {
					t.Error("the waiting call hears nothing")
				}
			})
		})
	}
}

// Fails when the limit of a release, which is the library's own, looks like the end of the caller's context.
func TestAnUnconfirmedReleaseIsNoEndOfAContext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		h := rig.MustAcquire(t, c.NewLock("l"))
		rw := c.NewRWLock("rw")
		rig.Must(t, rw.RLock(x.By("me")))
		rig.Must(t, rw.RLock(x.By("me")))
		heal := link.Hole()
		for _, err := range []error{h.Release(), rw.RUnlock()} {
			rig.WantIs(t, err, relock.ErrUnconfirmed)
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("%v: it matches the end of a context", err)
			}
		}
		heal()
		rig.Must(t, rw.RUnlock())
	})
}

// A Wait has its lock back, and waits for its handle, when another goroutine of its owner waits again.
// Fails when the first puts a hold on its handle that its owner does not have: the next holder's grant then loses it.
func TestAWaitReturnsNoHoldWhileItsOwnerWaitsAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l, beside, elsewhere := c.NewLock("l"), c.NewLock("l"), x.Lock("l")
		mine, err := l.Acquire(x.By("me"))
		rig.Must(t, err)
		first := x.Sleeps(x.By("me"), l.NewCond("c"), 0)
		first.Waits()
		rig.Must(t, l.Lock(x.By("other")))
		_, err = elsewhere.ForceUnlock(t.Context())
		rig.Must(t, err)
		by := rig.MustAcquire(t, elsewhere)
		rig.Must(t, elsewhere.NewCond("c").Signal(by.Context(t.Context())))
		rig.End(t, by)
		synctest.Wait()
		first.Waits() // for the handle, on which the lost hold of the other owner is
		second := x.Sleeps(x.By("me"), beside.NewCond("d"), 0)
		second.Waits()
		rig.WantIs(t, l.Unlock(), relock.ErrLost) // the other owner's
		synctest.Wait()
		rig.Must(t, l.Lock(x.By("third")))
		rig.Must(t, l.Unlock())
		by = rig.MustAcquire(t, elsewhere)
		rig.Must(t, elsewhere.NewCond("d").Signal(by.Context(t.Context())))
		rig.End(t, by)
		second.Woken()
		rig.Must(t, mine.Err())
		rig.Must(t, l.Unlock())
	})
}

// Detach ends the context of the hold, below which its own context is, so nobody sees a cancel that comes later.
// Fails when the call waits for as long as Redis is silent.
func TestADetachUnderItsHoldsContextEndsWithTheLease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		h := rig.MustAcquire(t, c.NewLock("l", relock.TTL(20*time.Second)))
		ctx, cancel := context.WithCancel(h.Context(t.Context()))
		heal := link.Hole()
		defer heal()
		detached := rig.Beside(func() error {
			_, err := h.Detach(ctx, time.Minute)
			return err
		})
		virtual.Sleep(time.Second)
		cancel()
		virtual.Sleep(20 * time.Second)
		select {
		case err := <-detached:
			rig.WantIs(t, err, relock.ErrUnconfirmed)
		default:
			t.Error("the call goes on though the lease has ended")
		}
	})
}

// Fails when a signal that Close interrupts looks like an outage of Redis.
func TestASignalThatCloseInterruptsSaysSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("l")
		rig.Must(t, l.Lock(x.By("me")))
		defer link.Hole()()
		signals := rig.Beside(func() error { return l.NewCond("c").Signal(x.By("me")) })
		virtual.Sleep(time.Second)
		rig.Must(t, c.Close())
		err := rig.Returned(t, signals)
		rig.WantIs(t, err, relock.ErrLost, relock.ErrClosed)
		if errors.Is(err, relock.ErrUnavailable) {
			t.Errorf("%v: it matches ErrUnavailable", err)
		}
	})
}

// Fails when the end of the library's own patience looks like a cancel by the caller.
func TestAWaitThatRedisDoesNotAnswerIsNotCancelled(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("l")
		h := rig.MustAcquire(t, l)
		defer link.Hole()()
		_, err := l.NewCond("c").WaitFor(h.Context(t.Context()), time.Second)
		rig.WantIs(t, err, relock.ErrLost)
		if errors.Is(err, context.Canceled) {
			t.Errorf("%v: it matches context.Canceled", err)
		}
	})
}
