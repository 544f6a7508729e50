package contract_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A nested call has its hold, and its handle is about to have it: a Wait of the owner in another
// goroutine, which Redis refuses, puts all holds back on their handles meanwhile.
// Fails when the hold is on its handle twice then.
func TestAHoldThatAWaitHasPutOnItsHandleIsThereOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h, inner, end := nestedAround(t, x, func(*relock.Lock) {})
		rig.End(t, h)
		end()
		rig.End(t, x.Take(inner))
	})
}

// As above, and a third goroutine calls Unlock: the call has not returned, so there is nothing to unlock.
// Fails when a hold is on its handle before its call returns it.
func TestAHoldIsNotUnlockedBeforeItsCallReturns(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h, inner, end := nestedAround(t, x, func(inner *relock.Lock) { rig.WantIs(t, inner.Unlock(), relock.ErrNotHeld) })
		rig.Must(t, h.Err())
		rig.End(t, h)
		end()
		rig.End(t, x.Take(inner))
	})
}

// nestedAround is a nested call through inner, before whose return a Wait is refused and then
// what happens. end unlocks the others.
func nestedAround(t *testing.T, x *rig.Lab, then func(inner *relock.Lock)) (h *relock.Hold, inner *relock.Lock, end func()) {
	me, c := x.By("me"), x.Client()
	elsewhere, outer := x.Lock("a"), c.NewLock("a")
	inner = c.NewLock("a")
	rig.Must(t, errors.Join(elsewhere.Lock(me), outer.Lock(me)))
	h, err := rig.AcquireAround(me, inner, "me", func() {
		rig.WantIs(t, outer.NewCond("c").Wait(me), relock.ErrOwnerMismatch)
		then(inner)
	})
	rig.Must(t, err)
	return h, inner, func() { rig.Must(t, errors.Join(outer.Unlock(), elsewhere.Unlock())) }
}

// Release comes at the instant at which a Wait of the owner, in another goroutine, returns and puts the hold back.
// Fails when the hold stays on its handle: nobody else could use the handle.
func TestAHoldThatIsReleasedAsAWaitReturnsLeavesItsHandle(t *testing.T) {
	for range 20 {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			me, c := x.By("me"), x.Client()
			outer, inner := c.NewLock("a"), c.NewLock("a")
			rig.Must(t, outer.Lock(me))
			h, err := inner.Acquire(me)
			rig.Must(t, err)
			wait := rig.Beside(func() error { _, err := outer.NewCond("c").WaitFor(me, time.Second); return err })
			virtual.Sleep(time.Second)
			if err := h.Release(); err != nil { // the wait had not returned
				rig.WantIs(t, err, relock.ErrNotHeld)
			}
			rig.Must(t, <-wait)
			wantHolds(t, inner, 0)
			rig.Must(t, outer.Unlock())
			rig.End(t, x.Take(inner))
		})
	}
}

// The loss is known before Detach, or Redis is the one to say it.
func TestDetachOfALostHoldFreesItsHandle(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known %v", known), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				link.HoleSubscribers()
				l := c.NewLock("a")
				h := x.Take(l)
				_, err := x.Eye.NewLock("a").ForceUnlock(t.Context())
				rig.Must(t, err)
				if known {
					<-h.Lost()
				}
				_, err = h.Detach(t.Context(), time.Minute)
				rig.WantIs(t, err, relock.ErrLost)
				rig.End(t, x.Take(l))
				rig.WantIs(t, h.Release(), relock.ErrNotHeld)
			})
		})
	}
}

// Of many locks one has been lost, and Release is the first to see that.
func TestLossThatTheReleaseOfAMultiFindsIsTheCauseOfItsContexts(t *testing.T) {
	const locks = 16
	for lost := range locks {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c := x.Client()
			several := make([]*relock.Lock, locks)
			for i := range several {
				ttl := time.Hour
				if i == lost {
					ttl = 30 * time.Second
				}
				several[i] = c.NewLock(fmt.Sprint(i), relock.TTL(ttl))
			}
			h, err := relock.NewMulti(several...).Acquire(t.Context())
			rig.Must(t, err)
			ctx, ended := h.Context(t.Context()), h.Lost()
			x.Suspend(31 * time.Second)
			rig.WantIs(t, h.Release(), relock.ErrLost)
			rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
			synctest.Wait()
			if !rig.IsShut(ended) {
				t.Error("Lost is open")
			}
		})
	}
}
