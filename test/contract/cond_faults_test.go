package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A condParty is a process, its handle on the lock and its condition.
type condParty struct {
	*rig.Actor
	l *relock.Lock
	c *relock.Cond
}

// parties are processes that have one condition of one lock.
func parties(x *rig.Lab, n int, opts ...relock.LockOption) []condParty {
	all := make([]condParty, n)
	for i := range all {
		a := x.Actor()
		l := a.NewLock("l", opts...)
		all[i] = condParty{a, l, l.NewCond("c")}
	}
	return all
}

// sleeps has the party wait, and returns once it does.
func (p condParty) sleeps(x *rig.Lab) *rig.Sleep {
	x.T.Helper()
	rig.Must(x.T, p.l.Lock(x.T.Context()))
	s := x.Sleeps(x.T.Context(), p.c, 0)
	s.Waits()
	return s
}

// signals has the party signal under the lock, and hold it still.
func (p condParty) signals(x *rig.Lab) {
	x.T.Helper()
	rig.Must(x.T, p.l.Lock(x.T.Context()))
	rig.Must(x.T, p.c.Signal(x.T.Context()))
}

// deaths are the places at which the first of two waiters dies.
var deaths = map[string]func(x *rig.Lab, dies func(), signaller condParty){
	"before the signal": func(x *rig.Lab, dies func(), signaller condParty) {
		dies()
		virtual.Sleep(31 * time.Second)
		signaller.signals(x)
		rig.Must(x.T, signaller.l.Unlock())
	},
	"after the signal, in the queue": func(x *rig.Lab, dies func(), signaller condParty) {
		signaller.signals(x)
		dies()
		virtual.Sleep(31 * time.Second)
		rig.Must(x.T, signaller.l.Unlock())
	},
	"before it hears that it holds": func(x *rig.Lab, dies func(), signaller condParty) {
		signaller.signals(x)
		dies()
		rig.Must(x.T, signaller.l.Unlock())
	},
	"while it holds": func(x *rig.Lab, dies func(), signaller condParty) {
		signaller.signals(x)
		rig.Must(x.T, signaller.l.Unlock())
		synctest.Wait()
		dies()
	},
}

// Wherever the first of two waiters dies, the signal is the second one's.
func TestSignalThatMeetsADeadWaiterGoesToTheNext(t *testing.T) {
	for name, at := range deaths {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				p := parties(x, 3)
				p[0].sleeps(x)
				second := p[1].sleeps(x)
				at(x, func() { p[0].Link.Hole() }, p[2])
				before := x.Now()
				second.Woken()
				if took := x.Now() - before; took > 45*time.Second {
					t.Errorf("the signal was heard %v after its receiver was gone", took)
				}
				onCondition(t, p[1].c, 0)
				rig.Must(t, p[1].l.Unlock())
			})
		})
	}
}

// A signal that is passed on keeps the place in the queue that it had.
func TestSignalThatIsPassedOnKeepsItsPlace(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 4, relock.Fair())
		p[0].sleeps(x)
		second := p[1].sleeps(x)
		p[2].signals(x)
		p[0].Link.Hole()
		late := x.Begin(p[3].l)
		late.Waits()
		virtual.Sleep(31 * time.Second)
		rig.Must(t, p[2].l.Unlock())
		second.Woken()
		late.Waits()
		rig.Must(t, p[1].l.Unlock())
		rig.End(t, late.Returns())
	})
}

// Whichever of a signal and a cancel Redis hears first is true of the waiter.
func TestSignalAndCancelHaveOneWinner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		first, second := p[0].sleeps(x), p[1].sleeps(x)
		p[2].signals(x)
		first.Stop() // too late
		synctest.Wait()
		rig.Must(t, p[2].l.Unlock())
		first.Woken()
		second.Waits()
		second.Stop() // before the signal
		synctest.Wait()
		rig.Must(t, p[0].c.Signal(t.Context())) // nobody is there for it
		rig.Must(t, p[0].l.Unlock())
		second.Ended(context.Canceled)
		rig.Must(t, p[1].l.Unlock())
		rig.WantBare(t, x.Redis, "l")
	})
}

func TestSignalByAHolderWhoseLeaseHasEndedMovesNobody(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		waits := p[0].sleeps(x)
		rig.Must(t, p[1].l.Lock(t.Context()))
		heal := p[1].Link.Cut()
		virtual.Sleep(31 * time.Second)
		heal()
		rig.WantIs(t, p[1].c.Signal(t.Context()), relock.ErrNotHeld, relock.ErrLost)
		rig.WantIs(t, p[1].c.Wait(t.Context()), relock.ErrNotHeld)
		onCondition(t, p[0].c, 1)
		waits.Waits()
		rig.WantIs(t, p[1].l.Unlock(), relock.ErrLost)
		rig.Must(t, p[1].l.Lock(t.Context()))
		_, err := p[0].l.ForceUnlock(t.Context()) // of which p1 need not have heard
		rig.Must(t, err)
		onCondition(t, p[0].c, 1)
		waits.Waits()
	})
}

func TestWaiterThatWasSignalledHoldsWhenItsSignallerDies(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		waits := p[0].sleeps(x)
		p[1].signals(x)
		p[1].Link.Hole()
		waits.Woken()
		if x.Now() > 45*time.Second {
			t.Errorf("it held after %v", x.Now())
		}
	})
}

// Every reply of the three statements is lost once, before and after Redis has had it.
func TestLostRepliesLoseNoSignalAndNoHold(t *testing.T) {
	for _, verdict := range []redistest.Verdict{redistest.CutReply, redistest.SwallowReply, redistest.CutBefore, redistest.Lose} {
		rig.Play(t, func(t *testing.T, x *rig.Lab) {
			p := parties(x, 3)
			rig.Must(t, p[0].l.Lock(t.Context()))
			p[0].Fate("await", 1, verdict)
			first := x.Sleeps(t.Context(), p[0].c, 0)
			second := p[1].sleeps(x) // holds once the first waits
			p[2].Fate("signal", 1, verdict)
			p[2].signals(x)
			onCondition(t, p[2].c, 1)
			rig.Must(t, p[2].l.Unlock())
			first.Woken()
			second.Waits()
			rig.Must(t, p[0].l.Unlock())
			p[1].Fate("abandon", 1, verdict)
			second.Stop()
			second.Ended(context.Canceled)
			rig.Must(t, p[1].l.Unlock())
			virtual.Sleep(time.Minute)
			rig.WantBare(t, x.Redis, "l")
		})
	}
}

// A copy of a statement that arrives late changes nothing: the waiter goes on holding,
// and nobody else is signalled.
func TestLateCopiesOfAWaitAndASignalChangeNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		late := make(chan struct{})
		p[0].Fate("await", 1, redistest.Duplicate(late))
		p[2].Fate("signal", 1, redistest.Duplicate(late))
		first, second := p[0].sleeps(x), p[1].sleeps(x)
		p[2].signals(x)
		rig.Must(t, p[2].l.Unlock())
		first.Woken()
		close(late)
		virtual.Sleep(time.Second)
		x.Holders(p[0].l, x.Info(p[0].l).Holders[0].Owner, 1)
		second.Waits()
		onCondition(t, p[1].c, 1)
		rig.Must(t, p[0].l.Unlock())
	})
}

// A waiter that Redis has forgotten, in a failover or because it was frozen, wakes up: a
// signal may have gone with it.
func TestForgottenWaiterWakesUpWithAllItsHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		l := a.NewLock("l")
		ctx := x.By("me")
		rig.Must(t, l.Lock(ctx))
		rig.Must(t, l.Lock(ctx))
		s := x.Sleeps(ctx, l.NewCond("c"), 0)
		s.Waits()
		x.Server.FlushAll()
		s.Woken()
		x.Holders(l, "me", 2)
		rig.Must(t, l.Unlock())
		x.Holders(l, "me", 1)
		rig.Must(t, l.Unlock())
		x.Free(l)
	})
}

// A signal that is lost in a failover, as its waiter is not, is made up for: who sees that
// the server may be another one wakes up.
func TestSignalThatAFailoverLosesIsMadeUpFor(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		waits := p[0].sleeps(x)
		rig.Must(t, p[1].l.Lock(t.Context()))
		restore := x.Keep("l")
		rig.Must(t, p[1].c.Signal(t.Context()))
		restore()
		x.Server.KillSubscribers()
		virtual.Sleep(time.Second)
		waits.Waits()
		rig.Must(t, p[1].l.Unlock())
		waits.Woken()
		rig.Must(t, p[0].l.Unlock())
	})
}

// Only where the lock cannot be had again is it lost, and then it is to be unlocked.
func TestWaitIsLostWhereTheLockCannotBeHadAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 1)
		h := rig.MustAcquire(t, p[0].l)
		inner := h.Context(t.Context())
		s := x.Sleeps(t.Context(), p[0].c, time.Minute)
		heal := p[0].Link.Cut()
		virtual.Sleep(40 * time.Second)
		s.Waits()
		if inner.Err() != nil || rig.IsShut(h.Lost()) {
			t.Error("its context or Lost has ended while it waits")
		}
		s.Ended(relock.ErrLost)
		if took := x.Now(); took > 3*time.Minute {
			t.Errorf("it gave up after %v", took)
		}
		rig.WantIs(t, context.Cause(inner), relock.ErrLost)
		rig.WantIs(t, h.Err(), relock.ErrLost)
		heal()
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.Must(t, p[0].l.Lock(t.Context()))
		rig.Must(t, p[0].l.Unlock())
	})
}

// ForceUnlock ends who holds, and leaves those who wait on conditions.
func TestForceUnlockLeavesWaitersOnConditions(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		first, second := p[0].sleeps(x), p[1].sleeps(x)
		p[2].signals(x)
		_, err := p[2].l.ForceUnlock(t.Context())
		rig.Must(t, err)
		first.Woken()
		_, err = p[2].l.ForceUnlock(t.Context())
		rig.Must(t, err)
		second.Woken() // it was signalled, and was forced out before it had unlocked
		rig.WantIs(t, p[0].l.Unlock(), relock.ErrLost)
		rig.Must(t, p[1].l.Unlock())
	})
}
