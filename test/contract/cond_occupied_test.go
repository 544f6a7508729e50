package contract_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A waiter is signalled while its handle is occupied by the lost hold of another caller.
// Its own Unlock said lost, ended nothing of its own, and the other's ended its hold.
// Fails without the fix: a hold is put on its handle once nobody's Unlock is still to come.
func TestWaitReturnsToItsHandleAfterTheUnlockOfALostHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, elsewhere := x.Lock("l"), x.Lock("l")
		occupyWhileItWaits(x, l, elsewhere, func() {}, func(s *rig.Sleep, mine *relock.Hold) {
			s.Waits()
			rig.Must(t, mine.Err())
			rig.WantIs(t, l.Unlock(), relock.ErrLost) // the other's
			s.Woken()
			rig.Must(t, mine.Err())
			rig.Must(t, l.Unlock())
			rig.WantIs(t, mine.Err(), relock.ErrNotHeld)
			x.Free(l)
		})
	})
}

// Fails when the lock is kept for as long as nobody unlocks the lost hold, or its signal is
// lost with it.
func TestWaitGivesUpALockThatItsHandleCannotHave(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, elsewhere, third := x.Lock("l"), x.Lock("l"), x.Lock("l")
		var next *rig.Sleep
		behind := func() {
			rig.MustAcquire(t, third)
			next = x.Sleeps(t.Context(), third.NewCond("c"), 0)
			next.Waits()
		}
		occupyWhileItWaits(x, l, elsewhere, behind, func(s *rig.Sleep, mine *relock.Hold) {
			virtual.Sleep(29 * time.Second)
			s.Waits()
			next.Waits()
			s.Ended(relock.ErrLost)
			rig.WantIs(t, mine.Err(), relock.ErrLost)
			next.Woken() // by the signal that nobody else has used
			rig.Must(t, third.Unlock())
			x.Free(elsewhere)
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
			rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		})
	})
}

// occupyWhileItWaits has a lost hold on the handle of a waiter that has been signalled.
func occupyWhileItWaits(x *rig.Lab, l, elsewhere *relock.Lock, behind func(), then func(s *rig.Sleep, mine *relock.Hold)) {
	t := x.T
	t.Helper()
	mine := rig.MustAcquire(t, l)
	s := x.Sleeps(mine.Context(t.Context()), l.NewCond("c"), 0)
	s.Waits()
	behind()
	rig.Must(t, l.Lock(t.Context()))
	_, err := elsewhere.ForceUnlock(t.Context())
	rig.Must(t, err)
	by := rig.MustAcquire(t, elsewhere)
	rig.Must(t, elsewhere.NewCond("c").Signal(by.Context(t.Context())))
	rig.End(t, by)
	then(s, mine)
}

// Fails when a wait whose owner's only hold was detached, before its call returned, says that it holds.
func TestAHoldThatIsDetachedBeforeItsWaitReturnsIsLostToTheWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, elsewhere := x.Lock("l"), x.Lock("l")
		mine, err := l.Acquire(x.By("me"))
		rig.Must(t, err)
		s := x.Sleeps(mine.Context(x.By("me")), l.NewCond("c"), 0)
		s.Waits()
		rig.Must(t, l.Lock(t.Context()))
		_, err = elsewhere.ForceUnlock(t.Context())
		rig.Must(t, err)
		by := rig.MustAcquire(t, elsewhere)
		rig.Must(t, elsewhere.NewCond("c").Signal(by.Context(t.Context())))
		rig.End(t, by)
		s.Waits() // for the Unlock of the lost hold
		ticket, err := mine.Detach(t.Context(), time.Minute)
		rig.Must(t, err)
		s.Ended(relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.End(t, resume(t, x.Client(), ticket))
		x.Free(elsewhere)
	})
}

// The lock was granted to the waiter again while another call of its handle held: that one had
// not heard that it had lost the lock. Its Unlock ended the hold of the waiter.
func TestWaitThatIsGrantedTheLockAgainLeavesAHoldOfItsHandleLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, elsewhere := x.Lock("l"), x.Lock("l")
		mine := rig.MustAcquire(t, l)
		s := x.Sleeps(mine.Context(t.Context()), l.NewCond("c"), 0)
		s.Waits()
		virtual.Sleep(6 * time.Second)
		rig.Must(t, l.Lock(t.Context()))
		lost := l.Lost()
		virtual.Sleep(11 * time.Second) // its next renewal is 9 s later
		rig.Must(t, x.Redis.FlushAll(t.Context()).Err())
		virtual.Sleep(5 * time.Second)
		if !rig.IsShut(lost) {
			t.Error("two holds of one handle live")
		}
		s.Waits()
		x.Refuses(elsewhere)
		rig.WantIs(t, l.Unlock(), relock.ErrLost) // by the other call
		s.Woken()
		rig.Must(t, mine.Err())
		x.Refuses(elsewhere)
		rig.Must(t, l.Unlock())
		rig.WantIs(t, mine.Err(), relock.ErrNotHeld)
		x.Free(elsewhere)
	})
}

// A nested call is slow to return. Meanwhile its owner waits on a condition, and another owner takes the lock by the same
// handle. Fails when the slow call takes the handle's newer grant for a loss of its own: the wait would end with it.
func TestASlowNestedCallLeavesAWaitOfItsOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		rig.Must(t, l.Lock(x.By("me")))
		var wait rig.Going
		h, err := rig.AcquireAround(x.By("me"), l, "me", func() {
			wait = rig.Beside(func() error { _, err := l.NewCond("c").WaitFor(x.By("me"), time.Second); return err })
			synctest.Wait()
			virtual.Sleep(time.Millisecond)
			rig.Must(t, l.Lock(x.By("you")))
		})
		if err == nil {
			t.Errorf("the slow call returned a hold whose state is %v", h.Err())
		}
		wantHolds(t, l, 1)
		rig.Must(t, l.Unlock())
		rig.Must(t, <-wait)
		rig.Must(t, l.Unlock())
		x.Free(x.Lock("a"))
	})
}

// An owner has two holds, each on a handle of its own, and waits on a condition. When the wait is over, the handle of the
// first hold is occupied, and that hold is released meanwhile. Fails when the wait goes on for a lease and loses the
// second hold.
func TestAWaitDoesNotWaitForTheHandleOfAHoldThatHasEnded(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, me := x.Client(), x.By("me")
		first, second := c.NewLock("a"), c.NewLock("a")
		h1, h2 := acquire(t, first, me), acquire(t, second, me)
		wait := rig.Beside(func() error { _, err := second.NewCond("c").WaitFor(me, time.Second); return err })
		synctest.Wait()
		occupy(x, first)
		virtual.Sleep(2 * time.Second)
		wait.Pending(t, "a wait whose handle is occupied")
		rig.Must(t, h1.Release())
		virtual.Sleep(time.Millisecond)
		rig.Must(t, rig.Returned(t, wait))
		rig.Must(t, h2.Release())
		rig.WantIs(t, first.Unlock(), relock.ErrLost)
		x.Free(x.Lock("a"))
	})
}

// As above, but the wait has that hold only. Fails when the wait returns nil: its owner holds nothing.
func TestAWaitWhoseOnlyHoldEndsBesideAnOccupiedHandleIsLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, me := x.Client(), x.By("me")
		l := c.NewLock("a")
		h := acquire(t, l, me)
		wait := rig.Beside(func() error { _, err := l.NewCond("c").WaitFor(me, time.Second); return err })
		synctest.Wait()
		occupy(x, l)
		virtual.Sleep(2 * time.Second)
		rig.Must(t, h.Release())
		virtual.Sleep(time.Millisecond)
		rig.WantIs(t, rig.Returned(t, wait), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		x.Free(x.Lock("a"))
	})
}

// As above, on a fair lock and without an owner. Behind the waiter another call of its client waits for the lock, and
// gets it as the waiter's hold is released. Fails when the wait ends as one that holds the lock again, by the error of its
// context: the other call holds.
func TestAWaitWhoseLockWasPassedOnBesideAnOccupiedHandleIsLost(t *testing.T) {
	for range 30 { // which of the two goes on first is left to chance
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c := x.Client()
			l := c.NewLock("a", relock.Fair())
			h, err := l.Acquire(t.Context())
			rig.Must(t, err)
			wait := rig.Beside(func() error { _, err := l.NewCond("c").WaitFor(h.Context(t.Context()), time.Second); return err })
			synctest.Wait()
			occupy(x, l)
			between := x.Take(x.Client().NewLock("a", relock.Fair()))
			virtual.Sleep(1500 * time.Millisecond) // the wait is over, and its owner is queued again
			next := x.Begin(c.NewLock("a", relock.Fair()))
			next.Waits()
			rig.End(t, between)
			virtual.Sleep(time.Millisecond)
			rig.Must(t, h.Release())
			rig.WantIs(t, rig.Returned(t, wait), relock.ErrLost)
			rig.End(t, next.Holds())
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
		})
	}
}

// occupy leaves a lost hold of another owner on the handle.
func occupy(x *rig.Lab, l *relock.Lock) {
	rig.Must(x.T, l.Lock(x.By("you")))
	_, err := x.Eye.NewLock("a").ForceUnlock(x.T.Context())
	rig.Must(x.T, err)
}
