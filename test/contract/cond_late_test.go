package contract_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// byTwo has an owner hold a lock in the actor's process and in another.
func byTwo(x *rig.Lab, a *rig.Actor) (l *relock.Lock, h, other *relock.Hold) {
	x.T.Helper()
	l = a.NewLock("l", relock.Owner("me"))
	return l, rig.MustAcquire(x.T, l), rig.MustAcquire(x.T, x.Lock("l", relock.Owner("me")))
}

// The first copy of the statement arrives when it has been refused by another, and when what
// it was refused for is over: the owner has unlocked in its other process.
// Fails when it is carried out: its client was told that nothing has been given up, and holds on.
func TestLateCopyOfARefusedWaitGivesUpNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		gate := make(chan struct{})
		a.Fate("await", 1, redistest.Hold(gate))
		la, h, other := byTwo(x, a)
		waiter := x.Begin(x.Lock("l"))
		rig.WantIs(t, la.NewCond("c").Wait(t.Context()), relock.ErrOwnerMismatch)
		rig.End(t, other)
		close(gate)
		synctest.Wait()
		x.Holders(la, "me", 1)
		virtual.Sleep(time.Minute)
		rig.Must(t, h.Err())
		rig.End(t, h)
		rig.End(t, waiter.Holds())
	})
}

// Fails when the answer to a copy of a refused wait is that it waits, and when what is stated
// next has the number of the refusal: it changes nothing then.
func TestWaitThatIsRefusedWithoutAnAnswerIsRefusedAgain(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		a.Fate("await", 1, redistest.CutReply)
		la, h, other := byTwo(x, a)
		rig.End(t, rig.MustAcquire(t, la)) // it knows then that it is not alone
		rig.WantIs(t, la.NewCond("c").Wait(t.Context()), relock.ErrOwnerMismatch)
		rig.Must(t, h.Err())
		nested := rig.MustAcquire(t, la)
		x.Holders(la, "me", 3)
		rig.End(t, nested)
		rig.End(t, h)
		rig.End(t, other)
		x.Frees("l")
	})
}

// Fails when the session of a process that has died counts as one that holds.
func TestOwnerWhoseOtherProcessHasDiedCanWait(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		dead := x.Actor()
		here := x.Lock("l", relock.Owner("me"), relock.TTL(time.Minute), relock.NoWatchdog())
		h := rig.MustAcquire(t, here)
		rig.MustAcquire(t, dead.NewLock("l", relock.Owner("me"), relock.TTL(time.Second)))
		dead.Link.Cut()
		virtual.Sleep(2 * time.Second)
		x.Sleeps(t.Context(), here.NewCond("c"), time.Second).Ended(nil)
		rig.End(t, h)
	})
}

// Fails when the lock stays taken until the lease ends, and when the signal ends with who
// could not have the lock.
func TestWaitThatReplicasDoNotConfirmPassesItsSignalOn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _, f := follow(x, 1)
		l := c.NewLock("l", relock.Replicas(1, 100*time.Millisecond))
		h := rig.MustAcquire(t, l)
		first := x.Sleeps(t.Context(), l.NewCond("c"), 0)
		first.Waits()
		p := parties(x, 2)
		next := p[0].sleeps(x)
		p[1].signals(x)
		f.set(0, false)
		before := x.Now()
		rig.Must(t, p[1].l.Unlock())
		first.Ended(relock.ErrLost)
		next.Woken()
		if took := x.Now() - before; took > time.Second {
			t.Errorf("the next was woken after %v: a lease lasts 30 s", took)
		}
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.Must(t, p[0].l.Unlock())
		x.Free(p[0].l)
	})
}

// The owner of a waiter reads in another process when its turn comes: it cannot write.
// Fails when the signal that it was given ends with its wait.
func TestWaiterWhoseOwnerReadsPassesItsSignalOn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		me := x.By("me")
		first, next, signaller := x.Client().NewRWLock("l"), x.Client().NewRWLock("l"), x.Client().NewRWLock("l")
		rig.Must(t, first.Lock(me))
		one := x.Sleeps(me, first.WLocker().NewCond("c"), 0)
		one.Waits()
		rig.Must(t, next.Lock(t.Context()))
		two := x.Sleeps(t.Context(), next.WLocker().NewCond("c"), 0)
		two.Waits()

		rig.Must(t, signaller.Lock(t.Context()))
		reader := x.Client().NewRWLock("l")
		read := rig.Beside(func() error { return reader.RLock(me) })
		synctest.Wait()
		rig.Must(t, signaller.WLocker().NewCond("c").Signal(t.Context()))
		rig.Must(t, signaller.Unlock())
		rig.Must(t, <-read)
		one.Ended(relock.ErrLost)
		rig.Must(t, reader.RUnlock())
		two.Woken()
		rig.Must(t, next.Unlock())
		rig.WantIs(t, first.Unlock(), relock.ErrLost)
		x.Free(next.WLocker())
		rig.WantBare(t, x.Redis, "l")
	})
}

// The watchdog has taken up the renewal of a session just before that waits on a condition.
// Fails when it asks for the lock in its name then: before the wait is told, it holds still,
// and goes on holding when another does.
func TestARoundOfTheWatchdogMakesNoHolderOfWhoWaits(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		h := x.Take(p[0].l)
		other := x.Begin(p[1].l)
		other.Waits()
		p[0].Fate("await", 1, redistest.CutBefore) // its second copy comes 5 to 10 ms later
		s := x.Sleeps(h.Context(t.Context()), p[0].c, 0)
		rig.RenewAround(p[0].Client, false, func() {})
		synctest.Wait()
		virtual.Sleep(50 * time.Millisecond)
		s.Waits()
		rig.End(t, other.Holds())
		p[1].signals(x)
		rig.Must(t, p[1].l.Unlock())
		s.Woken()
		rig.End(t, h)
	})
}

// A waiter does not hear for a while, is signalled, and its time passes while others have the
// lock: it was told that nobody had signalled it, and the signal was nobody's.
// Fails without the fix: who is on its condition no more has been woken.
func TestWaiterThatWasSignalledWhileItDidNotHearIsWoken(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		rig.Must(t, p[0].l.Lock(t.Context()))
		first := x.Sleeps(t.Context(), p[0].c, time.Minute)
		first.Waits()
		p[1].signals(x)
		p[0].Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("subscribe") {
				return redistest.CutBefore
			}
			return redistest.Pass
		})
		p[0].Link.Cut()()
		synctest.Wait()
		other := rig.Beside(func() error { return p[2].l.Lock(t.Context()) })
		rig.StillWaits(t, other)
		rig.Must(t, p[1].l.Unlock()) // the first does not hear of it
		rig.Must(t, rig.Returned(t, other))
		x.Until(2 * time.Minute)
		first.Waits()
		rig.Must(t, p[2].l.Unlock())
		first.Woken()
		rig.Must(t, p[0].l.Unlock())
	})
}
