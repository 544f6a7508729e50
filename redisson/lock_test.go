package redisson_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

func client(t testing.TB, x *rig.Lab, opts ...redisson.Option) *redisson.Client {
	t.Helper()
	c, err := redisson.New(x.Redis, opts...)
	rig.Must(t, err)
	redisson.SetClock(c, clock.New(time.Now, nil))
	t.Cleanup(func() { rig.Must(t, c.Close()) })
	return c
}

func TestALockIsHeldInRedissonsHashAndLeavesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := client(t, x).NewLock("a")
		h, err := l.Acquire(t.Context())
		rig.Must(t, err)
		all := x.Redis.HGetAll(t.Context(), "a").Val()
		if len(all) != 1 || all[h.Owner()] != "1" || x.Redis.PTTL(t.Context(), "a").Val() != 30*time.Second {
			t.Errorf("the hash is %v, want %s with 1", all, h.Owner())
		}
		if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+$`).MatchString(h.Owner()) || h.Name() != "a" {
			t.Errorf("it is a hold of %q by %q, want \"a\", and the client's ID, a colon and a number", h.Name(), h.Owner())
		}
		rig.Must(t, h.Release())
		if keys := x.Redis.Keys(t.Context(), "*").Val(); len(keys) != 0 {
			t.Errorf("left in Redis: %q", keys)
		}
		rig.WantIs(t, h.Release(), relock.ErrNotHeld)
	})
}

func TestTheWatchdogKeepsALock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h, err := client(t, x).NewLock("a").Acquire(t.Context())
		rig.Must(t, err)
		virtual.Sleep(10 * time.Minute)
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
	})
}

func TestAWaiterIsWokenByTheUnlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, b := client(t, x).NewLock("a"), client(t, x).NewLock("a")
		rig.Must(t, a.Lock(t.Context()))
		got := rig.Beside(func() error { return b.Lock(t.Context()) })
		virtual.Sleep(time.Second)
		got.Pending(t, "a second Lock")
		rig.Must(t, a.Unlock())
		rig.Must(t, rig.Returned(t, got))
		rig.Must(t, b.Unlock())
	})
}

func TestAHolderThatCannotRenewKnowsBeforeTheLeaseEnds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h, err := client(t, x).NewLock("a").Acquire(t.Context())
		rig.Must(t, err)
		heal := x.Server.Partition()
		select {
		case <-h.Lost():
		case <-time.After(time.Minute):
			t.Fatal("not lost")
		}
		if at := x.Now(); at >= 30*time.Second || at < 29*time.Second {
			t.Errorf("lost after %v, want a little before 30 s", at)
		}
		rig.WantIs(t, h.Err(), relock.ErrLost)
		heal()
		rig.WantIs(t, h.Release(), relock.ErrLost)
		synctest.Wait()
	})
}

// TestAHolderThatHasRenewedKnowsBeforeTheLeaseEnds that its last renewal gave it.
func TestAHolderThatHasRenewedKnowsBeforeTheLeaseEnds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h, err := client(t, x).NewLock("a").Acquire(t.Context())
		rig.Must(t, err)
		virtual.Sleep(15 * time.Second)
		ends := time.Now().Add(x.Redis.PTTL(t.Context(), "a").Val())
		heal := x.Server.Partition()
		<-h.Lost()
		if left := time.Until(ends); left <= 0 || left > time.Second {
			t.Errorf("lost %v before the lease ended, want a little", left)
		}
		heal()
		rig.WantIs(t, h.Release(), relock.ErrLost)
	})
}

func TestNamedOwnersReenter(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		ctx := x.By("me")
		a, b := c.NewLock("a"), c.NewLock("a")
		rig.Must(t, a.Lock(ctx))
		rig.Must(t, b.Lock(ctx))
		info, err := a.Info(ctx)
		rig.Must(t, err)
		if len(info.Holders) != 1 || info.Holders[0].Holds != 2 {
			t.Errorf("%+v", info)
		}
		if ok, err := a.TryLock(relock.WithOwner(ctx, "you"), 0); ok || err != nil {
			t.Errorf("another owner: %v, %v", ok, err)
		}
		rig.Must(t, a.Unlock())
		rig.Must(t, b.Unlock())
		rig.WantIs(t, a.Unlock(), relock.ErrNotHeld)
	})
}

// TestAnOwnerWithTooManyHoldsIsToldAtOnce: it would wait for its own Unlock.
func TestAnOwnerWithTooManyHoldsIsToldAtOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, me := client(t, x).NewLock("a"), x.By("me")
		for range 1000 {
			rig.Must(t, l.Lock(me))
		}
		call := rig.Beside(func() error { return l.Lock(me) })
		rig.WantIs(t, rig.Returned(t, call), relock.ErrTooManyHolds)
		rig.Must(t, l.Unlock())
		rig.Must(t, l.Lock(me))
		for range 1000 {
			rig.Must(t, l.Unlock())
		}
		bare(t, x)
	})
}

func TestACallThatEndsLeavesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		l := c.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		if ok, err := l.TryLock(t.Context(), time.Second); ok || err != nil {
			t.Errorf("TryLock = %v, %v", ok, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock = %v", err)
		}
		rig.Must(t, l.Unlock())
	})
}

// Fails when a wait below zero is none at all, or an attempt waits for a silent Redis for longer than it is told.
func TestAWaitOfZeroOrLessIsOneAttempt(t *testing.T) {
	for _, prefix := range everyLayout {
		for _, wait := range []time.Duration{0, -1, -time.Hour} {
			t.Run(prefix+wait.String(), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					other := of(client(t, x), strings.Replace(prefix, "read", "write", 1)) // readers share
					c, link := linked(t, x)
					l := of(c, prefix)
					if got, err := l.TryLock(t.Context(), wait); !got || err != nil {
						t.Fatalf("TryLock of a free lock = %v, %v, want true", got, err)
					}
					rig.Must(t, l.Unlock())
					rig.Must(t, other.Lock(t.Context()))
					began := x.Now()
					rig.RefusesAny(x, l)
					_, err := l.TryAcquire(t.Context(), wait)
					if rig.WantIs(t, err, relock.ErrNotAcquired); x.Now() != began {
						t.Errorf("attempts at a lock that is taken took %v", x.Now()-began)
					}
					heal := link.Hole()
					_, err = l.TryLock(t.Context(), wait)
					if rig.WantIs(t, err, relock.ErrUnavailable); x.Now()-began > 4*time.Second {
						t.Errorf("an attempt at a silent Redis took %v, want at most 4 s", x.Now()-began)
					}
					heal()
					rig.Must(t, other.Unlock())
				})
			})
		}
	}
}

func TestASingleAttemptDoesNotWaitForTheUnlockOfALostHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := client(t, x).NewLock("a"), client(t, x).NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		if ok, err := other.ForceUnlock(t.Context()); !ok || err != nil {
			t.Fatalf("ForceUnlock = %v, %v", ok, err)
		}
		for l.HoldCount() > 0 { // it hears of that with its next renewal
			virtual.Sleep(time.Second)
		}
		began := x.Now()
		got, err := l.TryLock(t.Context(), 0)
		if rig.WantIs(t, err, relock.ErrLost); got {
			t.Error("held")
		}
		if took := x.Now() - began; took > 0 {
			t.Errorf("took %v", took)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
	})
}
