package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A wait gives up the lock and its handle here, and is forced to end before Redis hears of it. Another owner is granted
// the lock by the same handle. Fails when the lost hold comes back to the handle beside that owner's: its Unlock said
// lost, and the Unlock after the failed Wait ended its hold.
func TestAWaitThatWasRefusedReturnsOnceAnotherOwnerHasUnlockedItsHandle(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		warm(t, c)
		l, me, other, eye := c.NewLock("a"), x.By("me"), x.By("other"), x.Eye.NewLock("a")
		rig.Must(t, l.Lock(me))
		link.Latency(10 * time.Millisecond)
		lock := rig.Beside(func() error { return l.Lock(other) })
		virtual.Sleep(time.Millisecond)
		wait := rig.Beside(func() error { return l.NewCond("c").Wait(me) })
		virtual.Sleep(4 * time.Millisecond)
		rig.Must(t, force(t, eye)) // reaches Redis before both
		virtual.Sleep(time.Second)
		link.Latency(0)
		rig.Must(t, rig.Returned(t, lock))
		endBesideAWait(t, x, l, wait)
	})
}

// A wait is over because its lease is, in an outage. Another owner, whose lease is longer, holds by the same handle.
func TestALostWaitReturnsOnceAnotherOwnerHasUnlockedItsHandle(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l, _, wait := lostWait(t, x)
		endBesideAWait(t, x, l, wait)
	})
}

// As above. The other owner locks once more by the handle. Fails when that waits for the Unlock of the lost hold, which
// waits for the other owner's.
func TestALostWaitKeepsNoNestedCallFromItsHandle(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l, other, wait := lostWait(t, x)
		rig.Must(t, l.Lock(other))
		rig.Must(t, l.Unlock())
		endBesideAWait(t, x, l, wait)
	})
}

// The other hold is forced to end. Fails when the wait goes on for the Unlock of a hold that is lost as well.
func TestALostWaitReturnsOnceTheHoldBesideItIsLost(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l, _, wait := lostWait(t, x)
		wait.Pending(t, "a lost wait whose handle has a hold of another owner")
		_, err := x.Eye.NewLock("a").ForceUnlock(t.Context())
		rig.Must(t, err)
		rig.WantIs(t, rig.Returned(t, wait), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
	})
}

// lostWait returns a handle by which another owner holds, and whose hold a Wait has lost.
func lostWait(t *testing.T, x *rig.Lab) (l *relock.Lock, other context.Context, wait rig.Going) {
	t.Helper()
	c, link := x.Linked()
	warm(t, c)
	short, l := c.NewLock("a", relock.TTL(time.Second)), c.NewLock("a", relock.TTL(time.Minute))
	me, other := x.By("me"), x.By("other")
	rig.Must(t, short.Lock(me))
	rig.Must(t, l.Lock(me))
	rig.Must(t, short.Unlock())
	ctx, cancel := context.WithCancel(me)
	wait = rig.Beside(func() error { return l.NewCond("c").Wait(ctx) })
	rig.StillWaits(t, wait)
	rig.Must(t, l.Lock(other))
	cancel()
	heal := link.Cut()
	virtual.Sleep(10 * time.Second)
	heal()
	virtual.Sleep(10 * time.Second)
	return l, other, wait
}

// endBesideAWait unlocks a handle by which another owner holds, and by which a Wait has lost its hold.
func endBesideAWait(t *testing.T, x *rig.Lab, l *relock.Lock, wait rig.Going) {
	t.Helper()
	wait.Pending(t, "a lost wait whose handle has a hold of another owner")
	wantHolds(t, l, 1)
	rig.Must(t, l.Unlock()) // by the other owner
	rig.WantIs(t, rig.Returned(t, wait), relock.ErrLost)
	x.Free(x.Eye.NewLock("a"))
	rig.WantIs(t, l.Unlock(), relock.ErrLost)
	rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
}

// A flow is refused its wait, because a branch of it has entered meanwhile. Fails when the branch is given a hold on the
// flow's handle, which an Unlock could not tell from the flow's.
func TestABranchLocksByNoHandleWhoseFlowIsAboutToBeRefusedItsWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		warm(t, c)
		l, flow := c.NewLock("a"), x.By("flow")
		rig.Must(t, l.Lock(flow))
		link.Latency(10 * time.Millisecond)
		wait := rig.Beside(func() error { return l.NewCond("c").Wait(flow) })
		virtual.Sleep(5 * time.Millisecond)
		lock := rig.Beside(func() error { return l.Lock(relock.WithChildOwner(flow)) })
		virtual.Sleep(200 * time.Millisecond)
		link.Latency(0)
		rig.WantIs(t, rig.Returned(t, wait), relock.ErrOwnerMismatch)
		rig.WantIs(t, rig.Returned(t, lock), relock.ErrOwnerMismatch)
		wantHolds(t, l, 1)
		rig.Must(t, l.Unlock())
		x.Free(x.Lock("a"))
	})
}

// One release grants a flow the lock again after its wait, and inside it a branch that has asked by the same handle.
// Fails when the branch, if it returns first, is given its hold: the Unlock of one ended the hold of the other.
func TestABranchLocksByNoHandleToWhichItsFlowReturns(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		for range 30 { // which of the two goes on first is left to chance
			c := x.Client()
			warm(t, c)
			l, flow := c.NewLock("a"), x.By("flow")
			rig.Must(t, l.Lock(flow))
			wait := rig.Beside(func() error { return l.NewCond("c").Wait(flow) })
			rig.StillWaits(t, wait)
			signaller := x.Lock("a")
			h := rig.MustAcquire(t, signaller)
			rig.Must(t, signaller.NewCond("c").Signal(t.Context()))
			lock := rig.Beside(func() error { return l.Lock(relock.WithChildOwner(flow)) })
			rig.StillWaits(t, lock)
			rig.End(t, h)
			synctest.Wait()
			rig.Must(t, rig.Returned(t, wait))
			rig.WantIs(t, rig.Returned(t, lock), relock.ErrOwnerMismatch)
			rig.Must(t, l.Unlock())
		}
	})
}
