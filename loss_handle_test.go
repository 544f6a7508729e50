package relock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// lose takes the lock by a hold whose lease runs out, and leaves that not unlocked.
func lose(t testing.TB, l *relock.Lock, ctx context.Context) { //nolint:revive // t comes first in a helper
	t.Helper()
	noErr(t, l.Lock(ctx))
	lost := l.Lost()
	<-lost
	time.Sleep(time.Second)
}

func TestLostHoldOccupiesItsHandleForOthers(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.NoWatchdog())
		lose(t, l, x.by("me"))
		x.frees("a")
		for _, ctx := range []context.Context{t.Context(), x.by("you")} {
			for _, wait := range []time.Duration{0, time.Minute} {
				began := time.Now()
				got, err := l.TryLock(ctx, wait)
				if wantIs(t, err, relock.ErrLost); got || errors.Is(err, relock.ErrNotAcquired) {
					t.Errorf("TryLock(%v) = %v, %v, want ErrLost alone", wait, got, err)
				}
				if took := time.Since(began); took != wait {
					t.Errorf("TryLock(%v) took %v", wait, took)
				}
			}
		}
		you := beside(func() error { return l.Lock(x.by("you")) })
		stillWaits(t, you)
		if l.Token() == 0 || !isShut(l.Lost()) || l.HoldCount() != 0 {
			t.Errorf("token %d, Lost %v, %d holds: want those of the lost hold", l.Token(), isShut(l.Lost()), l.HoldCount())
		}
		wantIs(t, l.Unlock(), relock.ErrLost)
		noErr(t, hasReturned(t, you))
		x.holders(l, "you", 1)
		noErr(t, l.Unlock())
		wantIs(t, l.Unlock(), relock.ErrNotHeld)
	})
}

func TestLostHoldOccupiesItsHandleForAWaiterThatIsGranted(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.NoWatchdog(), relock.TTL(5*time.Second))
		noErr(t, l.Lock(x.by("me")))
		you := beside(func() error { return l.Lock(x.by("you")) })
		time.Sleep(7 * time.Second)
		stillWaits(t, you)
		wantIs(t, l.Unlock(), relock.ErrLost)
		noErr(t, hasReturned(t, you))
		noErr(t, l.Unlock())
		x.frees("a")
	})
}

func TestWaiterBehindALostHoldEndsWithItsContext(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.NoWatchdog(), relock.TTL(5*time.Second))
		noErr(t, l.Lock(x.by("me")))
		ctx, cancel := context.WithTimeoutCause(x.by("you"), time.Minute, errReason)
		defer cancel()
		wantIs(t, l.Lock(ctx), context.DeadlineExceeded, errReason)
		wantIs(t, l.Unlock(), relock.ErrLost)
		wantIs(t, l.Unlock(), relock.ErrNotHeld)
		x.frees("a")
	})
}

func TestLostHoldIsErrLostForItsOwner(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		l, another := c.NewLock("a", relock.NoWatchdog()), c.NewLock("a")
		lose(t, l, x.by("me"))
		wantIs(t, l.Lock(x.by("me")), relock.ErrLost)
		_, err := l.TryLock(x.by("me"), 0)
		wantIs(t, err, relock.ErrLost)
		_, err = l.TryLock(x.by("me"), time.Hour)
		wantIs(t, err, relock.ErrLost)
		// The handle is what is occupied, not the name.
		noErr(t, another.Lock(x.by("me")))
		noErr(t, another.Unlock())
		wantIs(t, l.Unlock(), relock.ErrLost)
		noErr(t, l.Lock(x.by("me")))
		noErr(t, l.Unlock())
	})
}

func TestEveryLostHoldNeedsItsUnlock(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.NoWatchdog())
		for range 2 {
			noErr(t, l.Lock(x.by("me")))
		}
		lose(t, l, x.by("me"))
		you := beside(func() error { return l.Lock(x.by("you")) })
		for range 3 {
			stillWaits(t, you)
			wantIs(t, l.Unlock(), relock.ErrLost)
		}
		noErr(t, hasReturned(t, you))
		noErr(t, l.Unlock())
	})
}

// TestUnlockAfterALossDoesNotEndTheNextGrant: somebody else has the lock since,
// under the same name of owner even.
func TestUnlockAfterALossDoesNotEndTheNextGrant(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, next := x.lock("a", relock.NoWatchdog()), x.lock("a")
		for _, owner := range []string{"you", "me"} {
			lose(t, l, x.by("me"))
			noErr(t, next.Lock(x.by(owner)))
			wantIs(t, l.Unlock(), relock.ErrLost)
			x.holders(next, owner, 1)
			x.refuses(x.lock("a"))
			noErr(t, next.Unlock())
		}
	})
}
