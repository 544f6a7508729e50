package contract_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// lose takes the lock by a hold whose lease runs out, and leaves that not unlocked.
func lose(t testing.TB, l *relock.Lock, ctx context.Context) { //nolint:revive // t comes first in a helper
	t.Helper()
	rig.Must(t, l.Lock(ctx))
	lost := l.Lost()
	<-lost
	virtual.Sleep(time.Second)
}

func TestLostHoldOccupiesItsHandleForOthers(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.NoWatchdog())
		lose(t, l, x.By("me"))
		x.Frees("a")
		for _, ctx := range []context.Context{t.Context(), x.By("you")} {
			for _, wait := range []time.Duration{0, time.Minute} {
				began := time.Now()
				got, err := l.TryLock(ctx, wait)
				if rig.WantIs(t, err, relock.ErrLost); got || errors.Is(err, relock.ErrNotAcquired) {
					t.Errorf("TryLock(%v) = %v, %v, want ErrLost alone", wait, got, err)
				}
				if took := time.Since(began); took != wait {
					t.Errorf("TryLock(%v) took %v", wait, took)
				}
			}
		}
		you := rig.Beside(func() error { return l.Lock(x.By("you")) })
		rig.StillWaits(t, you)
		if l.Token() == 0 || !rig.IsShut(l.Lost()) || l.HoldCount() != 0 {
			t.Errorf("token %d, Lost %v, %d holds: want those of the lost hold", l.Token(), rig.IsShut(l.Lost()), l.HoldCount())
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, you))
		x.Holders(l, "you", 1)
		rig.Must(t, l.Unlock())
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
	})
}

func TestLostHoldOccupiesItsHandleForAWaiterThatIsGranted(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.NoWatchdog(), relock.TTL(5*time.Second))
		rig.Must(t, l.Lock(x.By("me")))
		you := rig.Beside(func() error { return l.Lock(x.By("you")) })
		virtual.Sleep(7 * time.Second)
		rig.StillWaits(t, you)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, you))
		rig.Must(t, l.Unlock())
		x.Frees("a")
	})
}

func TestWaiterBehindALostHoldEndsWithItsContext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.NoWatchdog(), relock.TTL(5*time.Second))
		rig.Must(t, l.Lock(x.By("me")))
		ctx, cancel := context.WithTimeoutCause(x.By("you"), time.Minute, errReason)
		defer cancel()
		rig.WantIs(t, l.Lock(ctx), context.DeadlineExceeded, errReason)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		x.Frees("a")
	})
}

func TestLostHoldIsErrLostForItsOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l, another := c.NewLock("a", relock.NoWatchdog()), c.NewLock("a")
		lose(t, l, x.By("me"))
		rig.WantIs(t, l.Lock(x.By("me")), relock.ErrLost)
		_, err := l.TryLock(x.By("me"), 0)
		rig.WantIs(t, err, relock.ErrLost)
		_, err = l.TryLock(x.By("me"), time.Hour)
		rig.WantIs(t, err, relock.ErrLost)
		// The handle is what is occupied, not the name. But the owner is told by any handle.
		rig.WantIs(t, another.Lock(x.By("me")), relock.ErrLost)
		rig.Must(t, another.Lock(x.By("you")))
		rig.Must(t, another.Unlock())
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, another.Lock(x.By("me")))
		rig.Must(t, another.Unlock())
		rig.Must(t, l.Lock(x.By("me")))
		rig.Must(t, l.Unlock())
	})
}

func TestEveryLostHoldNeedsItsUnlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.NoWatchdog())
		for range 2 {
			rig.Must(t, l.Lock(x.By("me")))
		}
		lose(t, l, x.By("me"))
		you := rig.Beside(func() error { return l.Lock(x.By("you")) })
		for range 3 {
			rig.StillWaits(t, you)
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
		}
		rig.Must(t, rig.Returned(t, you))
		rig.Must(t, l.Unlock())
	})
}

// TestUnlockAfterALossDoesNotEndTheNextGrant: somebody else has the lock since,
// under the same name of owner even.
func TestUnlockAfterALossDoesNotEndTheNextGrant(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, next := x.Lock("a", relock.NoWatchdog()), x.Lock("a")
		for _, owner := range []string{"you", "me"} {
			lose(t, l, x.By("me"))
			rig.Must(t, next.Lock(x.By(owner)))
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
			x.Holders(next, owner, 1)
			x.Refuses(x.Lock("a"))
			rig.Must(t, next.Unlock())
		}
	})
}

// Fails when a lost hold that was unlocked keeps anything, or when one that was not keeps nothing: its Unlock would not
// find it.
func TestALostHoldKeepsTheRoomOfItsLockUntilItIsUnlocked(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("a", relock.NoWatchdog())
		rig.Must(t, l.Lock(t.Context()))
		virtual.Sleep(time.Hour)
		if n := rig.Rooms(c); n != 1 {
			t.Errorf("%d rooms are kept for a lost hold, want 1", n)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		synctest.Wait()
		if n := rig.Rooms(c); n != 0 {
			t.Errorf("%d rooms are kept after its Unlock, want none", n)
		}
	})
}
