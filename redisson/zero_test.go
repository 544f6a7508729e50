package redisson_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// A hold that is lost has nothing to wait for.
func TestShutdownWaitsForNoLostHold(t *testing.T) {
	t.Run("lost before", func(t *testing.T) {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c := client(t, x)
			l := c.NewLock("a", redisson.TTL(time.Second), redisson.NoWatchdog())
			rig.Must(t, l.Lock(t.Context()))
			virtual.Sleep(2 * time.Second)
			rig.WantIs(t, l.Lock(canceledSoon(t)), context.DeadlineExceeded)
			rig.Must(t, c.Shutdown(t.Context()))
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
		})
	})
	t.Run("lost meanwhile", func(t *testing.T) {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c := client(t, x)
			l, kept := c.NewLock("a", redisson.TTL(time.Second), redisson.NoWatchdog()), c.NewLock("b")
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, kept.Lock(t.Context()))
			done := rig.Beside(func() error { return c.Shutdown(t.Context()) })
			virtual.Sleep(time.Minute)
			done.Pending(t, "Shutdown with a hold that lives")
			rig.Must(t, kept.Unlock())
			rig.Must(t, rig.Returned(t, done))
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
		})
	})
	t.Run("the last one", func(t *testing.T) {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c := client(t, x)
			l := c.NewLock("a", redisson.TTL(time.Second), redisson.NoWatchdog())
			rig.Must(t, l.Lock(t.Context()))
			began := x.Now()
			rig.Must(t, c.Shutdown(t.Context()))
			if took := x.Now() - began; took > time.Second {
				t.Errorf("Shutdown took %v, want it to end when the hold is lost", took)
			}
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
		})
	})
}

// canceledSoon returns a context that ends within a second.
func canceledSoon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Fails when a method of a nil or zero value panics, or says nothing.
func TestSharedLocksThatNobodyMadeSaySo(t *testing.T) {
	ctx := t.Context()
	for _, h := range []*redisson.Hold{nil, {}} {
		rig.WantIs(t, h.Err(), relock.ErrInvalidOption, relock.ErrNotHeld)
		rig.WantIs(t, h.Release(), relock.ErrInvalidOption, relock.ErrNotHeld)
		under := h.Context(ctx)
		rig.WantIs(t, context.Cause(under), relock.ErrInvalidOption)
		if !rig.IsShut(h.Lost()) || !h.TrustedUntil().IsZero() || h.Token() != 0 || h.Name() != "" || h.Owner() != "" || under.Err() == nil {
			t.Errorf("%#v is held", h)
		}
	}
	fails := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s of what nobody has made succeeds", what)
			return
		}
		rig.WantIs(t, err, relock.ErrInvalidOption)
	}
	locker := func(l relock.Locker) {
		t.Helper()
		fails("Lock", l.Lock(ctx))
		for _, wait := range []time.Duration{0, time.Second} {
			got, err := l.TryLock(ctx, wait)
			if fails("TryLock", err); got {
				t.Error("TryLock takes what nobody has made")
			}
		}
		fails("Unlock", l.Unlock())
	}
	var nobody *redisson.Client
	for _, l := range []*redisson.Lock{nil, {}, nobody.NewLock("a"), (&redisson.Client{}).NewLock("a"), (*redisson.RWLock)(nil).RLocker(), (&redisson.RWLock{}).WLocker()} {
		locker(l)
		_, err := l.Acquire(ctx)
		fails("Acquire", err)
		_, err = l.TryAcquire(ctx, 0)
		fails("TryAcquire", err)
		fails("Do", l.Do(ctx, func(context.Context) error { return nil }))
		_, err = l.Info(ctx)
		fails("Info", err)
		_, err = l.ForceUnlock(ctx)
		fails("ForceUnlock", err)
		if l.HoldCount() != 0 || l.Token() != 0 || l.Lost() != nil || l.Name() != "" && l.Name() != "a" {
			t.Errorf("%#v is held", l)
		}
	}
	for _, rw := range []*redisson.RWLock{nil, {}, nobody.NewRWLock("a")} {
		locker(rw)
		fails("RLock", rw.RLock(ctx))
		_, err := rw.TryRLock(ctx, 0)
		fails("TryRLock", err)
		fails("RUnlock", rw.RUnlock())
		fails("Downgrade", rw.Downgrade(ctx))
	}
	for _, c := range []*redisson.Client{nil, {}} {
		fails("Shutdown", c.Shutdown(ctx))
		fails("Close", c.Close())
	}
}
