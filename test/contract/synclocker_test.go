package contract_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
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
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.Owner("me"))
		rig.Must(t, l.Lock(t.Context()))
		sl := l.SyncLocker(x.By("me"))
		done := rig.Beside(func() error { sl.Lock(); return nil })
		rig.StillWaits(t, done)
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, done))
		x.Refuses(l)
		again := rig.Beside(func() error { sl.Lock(); return nil })
		rig.StillWaits(t, again)
		sl.Unlock()
		rig.Must(t, rig.Returned(t, again))
		sl.Unlock()
		x.Frees("a")
	})
}

func TestSyncLockerOfAMismatchedContextLocks(t *testing.T) {
	rig.Run(t, func(_ *testing.T, x *rig.Lab) {
		for _, owner := range append(badOwners, "you") {
			sl := x.Lock("a", relock.Owner("me")).SyncLocker(x.By(owner))
			sl.Lock()
			x.Refuses(x.Lock("a"))
			sl.Unlock()
		}
	})
}

func TestSyncLockerExcludesGoroutines(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		sl := x.Lock("a").SyncLocker(x.By("me"))
		n := 0
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				sl.Lock()
				defer sl.Unlock()
				seen := n
				virtual.Sleep(time.Millisecond)
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
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		cond, ready := sync.NewCond(x.Lock("a").SyncLocker(t.Context())), false
		done := rig.Beside(func() error {
			cond.L.Lock()
			defer cond.L.Unlock()
			for !ready {
				cond.Wait()
			}
			return nil
		})
		rig.StillWaits(t, done)
		cond.L.Lock()
		ready = true
		cond.L.Unlock()
		cond.Signal()
		rig.Must(t, rig.Returned(t, done))
	})
}

func TestSyncLockerPanicsWhenLockFails(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errReason)
		defer cancel()
		rig.Must(t, l.Lock(t.Context()))
		rig.WantIs(t, panicOf(t, func() { l.SyncLocker(ctx).Lock() }), context.DeadlineExceeded, errReason)
		rig.Must(t, l.Unlock())
		rig.WantIs(t, panicOf(t, func() { x.Lock("").SyncLocker(t.Context()).Lock() }), relock.ErrInvalidName)
		rig.WantIs(t, panicOf(t, func() { l.SyncLocker(nil).Lock() }), relock.ErrInvalidOption) //nolint:staticcheck // a nil context is what is tried
		rig.Must(t, l.Do(t.Context(), func(ctx context.Context) error {
			rig.WantIs(t, panicOf(t, func() { l.SyncLocker(ctx).Lock() }), relock.ErrDeadlock)
			return nil
		}))
	})
}

func TestSyncLockerPanicsOnUnlockOfWhatIsNotHeld(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.NoWatchdog())
		sl := l.SyncLocker(t.Context())
		err := panicOf(t, sl.Unlock)
		rig.WantIs(t, err, relock.ErrNotHeld)
		rig.WantNot(t, err, relock.ErrLost)
		sl.Lock()
		virtual.Sleep(time.Minute)
		rig.WantIs(t, panicOf(t, sl.Unlock), relock.ErrLost)
		sl.Lock()
		x.Refuses(l)
		sl.Unlock()
	})
}

// TestSyncLockerDoesNotPanicOnAnUnconfirmedUnlock: the hold has ended, and the
// client goes on.
func TestSyncLockerDoesNotPanicOnAnUnconfirmedUnlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		sl := c.NewLock("a").SyncLocker(t.Context())
		sl.Lock()
		heal := link.Cut()
		if err := panicOf(t, sl.Unlock); err != nil {
			t.Errorf("panic %v", err)
		}
		heal()
		virtual.Sleep(2 * time.Second)
		synctest.Wait()
		x.Frees("a")
	})
}

func TestSyncLockerHoldsAreNotTheHandles(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		sl := l.SyncLocker(t.Context())
		sl.Lock()
		if err := l.Unlock(); !errors.Is(err, relock.ErrNotHeld) {
			t.Errorf("Unlock of the handle = %v, want ErrNotHeld", err)
		}
		x.Refuses(l)
		sl.Unlock()
	})
}

// Fails when a Locker whose context was cancelled returns from Lock: its caller would go on without the lock.
func TestSyncLockerPanicsWhenItsContextIsCancelled(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		sl := l.SyncLocker(ctx)
		done := rig.Beside(func() error { return panicOf(t, sl.Lock) })
		rig.StillWaits(t, done)
		cancel()
		rig.WantIs(t, rig.Returned(t, done), context.Canceled)
		rig.WantIs(t, panicOf(t, sl.Lock), context.Canceled) // it had ended before the call
		rig.Must(t, l.Unlock())
		x.Frees("a")
	})
}
