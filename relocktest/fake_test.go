package relocktest_test

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
	"github.com/relock-go/relock/relocktest"
)

// The double and what it stands for, by the same steps.
func TestAFakeDoesWhatALockDoes(t *testing.T) {
	for name, steps := range map[string]func(t *testing.T, l relock.Locker, hold func() func(), lose func()) string{
		"alone":                alone,
		"held by another":      heldByAnother,
		"lost":                 lost,
		"a context that ended": doneContext,
	} {
		t.Run(name, func(t *testing.T) {
			var fake, lock string
			synctest.Test(t, func(t *testing.T) {
				f := new(relocktest.Fake)
				fake = steps(t, f, f.Hold, func() { f.Lose() })
			})
			synctest.Test(t, func(t *testing.T) {
				srv := relocktest.New(t)
				lock = steps(t, srv.Client().NewLock("job"), func() func() { return srv.Hold("job") }, func() { srv.Lose("job") })
			})
			if fake != lock {
				t.Errorf("a Fake says\n%s, a Lock\n%s", fake, lock)
			}
		})
	}
}

// say is a result as both are to have it.
func say(began time.Time, got bool, err error) string {
	kind := "nil"
	for _, known := range []error{relock.ErrLost, relock.ErrNotHeld, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			kind = known.Error()
			break
		}
	}
	return fmt.Sprintf("%v: %v, %s\n", time.Since(began), got, kind)
}

func alone(t *testing.T, l relock.Locker, _ func() func(), _ func()) (said string) {
	began := time.Now()
	said += say(began, false, l.Unlock())
	said += say(began, true, l.Lock(t.Context()))
	got, err := l.TryLock(t.Context(), 0)
	said += say(began, got, err)
	got, err = l.TryLock(t.Context(), time.Second)
	said += say(began, got, err)
	time.AfterFunc(time.Minute, func() { said += say(began, true, l.Unlock()) })
	got, err = l.TryLock(t.Context(), time.Hour)
	synctest.Wait()
	said += say(began, got, err)
	return said + say(began, true, l.Unlock()) + say(began, true, l.Unlock())
}

func heldByAnother(t *testing.T, l relock.Locker, hold func() func(), _ func()) (said string) {
	began := time.Now()
	release := hold()
	got, err := l.TryLock(t.Context(), -1)
	said += say(began, got, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	said += say(began, true, l.Lock(ctx))
	time.AfterFunc(time.Minute, release)
	said += say(began, true, l.Lock(t.Context()))
	return said + say(began, true, l.Unlock())
}

func lost(t *testing.T, l relock.Locker, hold func() func(), lose func()) (said string) {
	began := time.Now()
	rig.Must(t, l.Lock(t.Context()))
	lose()
	for _, wait := range []time.Duration{0, time.Second} { // it is in the way until it is unlocked
		got, err := l.TryLock(t.Context(), wait)
		said += say(began, got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := l.Lock(ctx)
	said += fmt.Sprint(errors.Is(err, relock.ErrLost)) + say(began, true, err)
	said += say(began, true, l.Unlock())
	got, err := l.TryLock(t.Context(), 0)
	said += say(began, got, err)
	said += say(began, true, l.Unlock())
	hold()()
	return said + say(began, true, l.Unlock())
}

func doneContext(t *testing.T, l relock.Locker, _ func() func(), _ func()) (said string) {
	began := time.Now()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the shop is closed")
	cancel(cause)
	err := l.Lock(ctx)
	said += fmt.Sprint(errors.Is(err, cause)) + say(began, true, err)
	got, err := l.TryLock(ctx, 0)
	said += fmt.Sprint(errors.Is(err, cause)) + say(began, got, err)
	return said
}

func TestAFakeFailsAsTold(t *testing.T) {
	var f relocktest.Fake
	down := errors.New("connection refused")
	f.Fail(down)
	wantError(t, "Lock", f.Lock(t.Context()), down)
	_, err := f.TryLock(t.Context(), time.Minute)
	wantError(t, "TryLock", err, down)
	f.Fail(nil)
	wantError(t, "Lock", f.Lock(t.Context()), nil)
	if !f.Held() || f.Locks() != 1 {
		t.Errorf("held %v after %d locks, want one", f.Held(), f.Locks())
	}
	wantError(t, "Unlock", f.Unlock(), nil)
	if f.Held() || f.Lose() {
		t.Error("nobody holds, and loses it")
	}
}

func TestAFakeRefusesNoContext(t *testing.T) {
	var f relocktest.Fake
	var none context.Context
	wantError(t, "Lock", f.Lock(none), relock.ErrInvalidOption)
	_, err := f.TryLock(none, 0)
	wantError(t, "TryLock", err, relock.ErrInvalidOption)
	if f.Held() {
		t.Error("it is held")
	}
}

// TestACallOfAFakeThatHasEndedNeverHolds has the lock come free after the context of a call has ended, and
// before the call has noticed.
func TestACallOfAFakeThatHasEndedNeverHolds(t *testing.T) {
	calls := map[string]func(ctx context.Context, f *relocktest.Fake) (bool, error){
		"Lock": func(ctx context.Context, f *relocktest.Fake) (bool, error) {
			err := f.Lock(ctx)
			return err == nil, err
		},
		"TryLock": func(ctx context.Context, f *relocktest.Fake) (bool, error) { return f.TryLock(ctx, time.Hour) },
	}
	for name, lock := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f relocktest.Fake
				release, ctx := f.Hold(), rig.NewEndedContext(t.Context())
				call := rig.Beside(func() error {
					got, err := lock(ctx, &f)
					if got {
						err = errors.New("it holds")
					}
					return err
				})
				call.Pending(t, "the call")
				ctx.End()
				release()
				rig.WantIs(t, <-call, context.Canceled)
				if got, err := f.TryLock(t.Context(), 0); !got || err != nil || f.Locks() != 1 {
					t.Errorf("a later attempt got %v, %v after %d locks", got, err, f.Locks())
				}
			})
		})
	}
}

// Fails when Unlock frees the lock, whoever holds it.
func TestUnlockOfAFakeEndsNoHoldOfAnother(t *testing.T) {
	f := new(relocktest.Fake)
	release := f.Hold()
	wantError(t, "Unlock", f.Unlock(), relock.ErrNotHeld)
	if got, err := f.TryLock(t.Context(), 0); got || err != nil {
		t.Errorf("TryLock = %v, %v, want false: another holds the lock", got, err)
	}
	release()
	if got, err := f.TryLock(t.Context(), 0); !got || err != nil {
		t.Errorf("TryLock after the release = %v, %v, want true", got, err)
	}
}

// The lock comes free after the context of a call has ended, and before the call has noticed. Then another holds it.
// Fails when Unlock takes that hold for one of the call.
func TestUnlockOfAFakeAfterACallThatHasEndedEndsNoHoldOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f relocktest.Fake
		release, ctx := f.Hold(), rig.NewEndedContext(t.Context())
		call := rig.Beside(func() error { return f.Lock(ctx) })
		call.Pending(t, "Lock")
		ctx.End()
		release()
		rig.WantIs(t, <-call, context.Canceled)
		if f.Held() {
			t.Error("a call that has ended holds")
		}
		release = f.Hold()
		wantError(t, "Unlock", f.Unlock(), relock.ErrNotHeld)
		if got, err := f.TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock = %v, %v, want false: another holds the lock", got, err)
		}
		release()
	})
}

// Fails when Lose says that there was no hold, or when a hold is over before its Unlock.
func TestALostHoldOfAFakeIsHeldUntilItsUnlock(t *testing.T) {
	var f relocktest.Fake
	rig.Must(t, f.Lock(t.Context()))
	if !f.Lose() || !f.Held() {
		t.Errorf("held %v after the loss of a hold, want true", f.Held())
	}
	wantError(t, "Unlock", f.Unlock(), relock.ErrLost)
	if f.Held() {
		t.Error("it is held after its Unlock")
	}
}

// Fails when an error that is set meanwhile ends a call that waits, or an Unlock.
func TestFailOfAFakeIsForCallsThatBegin(t *testing.T) {
	for name, lock := range map[string]func(ctx context.Context, f *relocktest.Fake) error{
		"Lock":    func(ctx context.Context, f *relocktest.Fake) error { return f.Lock(ctx) },
		"TryLock": func(ctx context.Context, f *relocktest.Fake) error { _, err := f.TryLock(ctx, time.Hour); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			var f relocktest.Fake
			release := f.Hold()
			call := rig.Beside(func() error { return lock(t.Context(), &f) })
			call.Pending(t, name)
			f.Fail(relock.ErrUnavailable)
			release()
			wantError(t, name, <-call, nil)
			wantError(t, "Unlock", f.Unlock(), nil)
			wantError(t, "Lock", f.Lock(t.Context()), relock.ErrUnavailable)
		})
	}
}

// Fails when two hold at a time: somebody else beside a caller, or a caller beside another, after a second release.
func TestAHoldOfAFakeIsTheOnlyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f relocktest.Fake
		rig.Must(t, f.Lock(t.Context()))
		var release func()
		hold := rig.Beside(func() error { release = f.Hold(); return nil })
		hold.Pending(t, "Hold of a lock that is held")
		rig.Must(t, f.Unlock())
		rig.Must(t, <-hold)
		release()
		rig.Must(t, f.Lock(t.Context()))
		release() // again does nothing
		if got, err := f.TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock of a lock that is held: %v, %v", got, err)
		}
		rig.Must(t, f.Unlock())
	})
}

// Fails when Lock returns before the lock is free, however long that takes.
func TestLockOfAFakeWaitsUntilTheLockIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f relocktest.Fake
		rig.Must(t, f.Lock(t.Context()))
		call := rig.Beside(func() error { return f.Lock(t.Context()) })
		call.Pending(t, "Lock of a lock that is held")
		f.Lose()
		f.Fail(relock.ErrUnavailable)
		virtual.Sleep(24 * time.Hour)
		call.Pending(t, "Lock of a lock that is lost and not unlocked")
		wantError(t, "Unlock", f.Unlock(), relock.ErrLost)
		wantError(t, "Lock", <-call, nil)
		if !f.Held() {
			t.Error("Lock has not taken the lock")
		}
		wantError(t, "Unlock", f.Unlock(), nil)
	})
}
