package relock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
)

// panicOf returns the error that f panics with, or nil.
func panicOf(t testing.TB, f func()) (err error) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			var isError bool
			if err, isError = r.(error); !isError {
				t.Errorf("panic with %v, want an error", r)
			}
		}
	}()
	f()
	return nil
}

// TestSyncLockerIsANewOwnerEachTime: whatever name its context or its handle has.
func TestSyncLockerIsANewOwnerEachTime(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.Owner("me"))
		noErr(t, l.Lock(t.Context()))
		sl := l.SyncLocker(x.by("me"))
		done := beside(func() error { sl.Lock(); return nil })
		stillWaits(t, done)
		noErr(t, l.Unlock())
		noErr(t, hasReturned(t, done))
		x.refuses(l)
		again := beside(func() error { sl.Lock(); return nil })
		stillWaits(t, again)
		sl.Unlock()
		noErr(t, hasReturned(t, again))
		sl.Unlock()
		x.frees("a")
	})
}

func TestSyncLockerOfAMismatchedContextLocks(t *testing.T) {
	inLab(t, func(_ *testing.T, x *lab) {
		sl := x.lock("a", relock.Owner("me")).SyncLocker(x.by("you"))
		sl.Lock()
		x.refuses(x.lock("a"))
		sl.Unlock()
	})
}

func TestSyncLockerExcludesGoroutines(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		sl := x.lock("a").SyncLocker(x.by("me"))
		n := 0
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				sl.Lock()
				defer sl.Unlock()
				seen := n
				time.Sleep(time.Millisecond)
				n = seen + 1
			})
		}
		wg.Wait()
		if n != 10 {
			t.Errorf("counted to %d, want 10", n)
		}
	})
}

// TestSyncLockerServesACond: the standard library's Cond needs no more of it.
func TestSyncLockerServesACond(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		cond, ready := sync.NewCond(x.lock("a").SyncLocker(t.Context())), false
		done := beside(func() error {
			cond.L.Lock()
			defer cond.L.Unlock()
			for !ready {
				cond.Wait()
			}
			return nil
		})
		stillWaits(t, done)
		cond.L.Lock()
		ready = true
		cond.L.Unlock()
		cond.Signal()
		noErr(t, hasReturned(t, done))
	})
}

func TestSyncLockerPanicsWhenLockFails(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errReason)
		defer cancel()
		noErr(t, l.Lock(t.Context()))
		wantIs(t, panicOf(t, func() { l.SyncLocker(ctx).Lock() }), context.DeadlineExceeded, errReason)
		noErr(t, l.Unlock())
		wantIs(t, panicOf(t, func() { x.lock("").SyncLocker(t.Context()).Lock() }), relock.ErrInvalidName)
		wantIs(t, panicOf(t, func() { l.SyncLocker(nil).Lock() }), relock.ErrInvalidOption) //nolint:staticcheck // a nil context is what is tried
		noErr(t, l.Do(t.Context(), func(ctx context.Context) error {
			wantIs(t, panicOf(t, func() { l.SyncLocker(ctx).Lock() }), relock.ErrDeadlock)
			return nil
		}))
	})
}

func TestSyncLockerPanicsOnUnlockOfWhatIsNotHeld(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.NoWatchdog())
		sl := l.SyncLocker(t.Context())
		err := panicOf(t, sl.Unlock)
		wantIs(t, err, relock.ErrNotHeld)
		wantNot(t, err, relock.ErrLost)
		sl.Lock()
		time.Sleep(time.Minute)
		wantIs(t, panicOf(t, sl.Unlock), relock.ErrLost)
		sl.Lock()
		x.refuses(l)
		sl.Unlock()
	})
}

// TestSyncLockerDoesNotPanicOnAnUnconfirmedUnlock: the hold has ended, and the
// client goes on.
func TestSyncLockerDoesNotPanicOnAnUnconfirmedUnlock(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		sl := c.NewLock("a").SyncLocker(t.Context())
		sl.Lock()
		heal := link.Cut()
		if err := panicOf(t, sl.Unlock); err != nil {
			t.Errorf("panic %v", err)
		}
		heal()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		x.frees("a")
	})
}

func TestSyncLockerHoldsAreNotTheHandles(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		sl := l.SyncLocker(t.Context())
		sl.Lock()
		if err := l.Unlock(); !errors.Is(err, relock.ErrNotHeld) {
			t.Errorf("Unlock of the handle = %v, want ErrNotHeld", err)
		}
		x.refuses(l)
		sl.Unlock()
	})
}
