package contract_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestBadConditionsAreRefusedAndLeaveNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		good := c.NewLock("l")
		for _, bad := range []struct {
			cond *relock.Cond
			want error
		}{
			{good.NewCond(""), relock.ErrInvalidName},
			{good.NewCond(strings.Repeat("x", 513)), relock.ErrInvalidName},
			{good.NewCond("a\nb"), relock.ErrInvalidName},
			{c.NewLock("").NewCond("c"), relock.ErrInvalidName},
			{c.NewRWLock("rw").RLocker().NewCond("c"), relock.ErrInvalidOption},
			{c.NewSemaphore("s", 2).NewCond("c"), relock.ErrInvalidOption},
			{new(relock.Lock).NewCond("c"), relock.ErrInvalidOption},
			{(*relock.Client)(nil).NewLock("l").NewCond("c"), relock.ErrInvalidOption},
		} {
			_, err := bad.cond.WaitFor(t.Context(), time.Second)
			rig.WantIs(t, err, bad.want)
			_, err = bad.cond.Waiters(t.Context())
			rig.WantIs(t, err, bad.want)
			rig.WantIs(t, errors.Join(bad.cond.Wait(t.Context()), bad.cond.Signal(t.Context())), bad.want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		rig.Must(t, good.Lock(t.Context()))
		rig.WantIs(t, good.NewCond("c").Wait(ctx), context.Canceled)        // before anything was given up
		rig.WantIs(t, good.NewCond("c").Wait(nil), relock.ErrInvalidOption) //nolint:staticcheck // nil is what is tested
		x.Refuses(x.Lock("l"))
		rig.Must(t, good.Unlock())
		rig.WantBare(t, x.Redis, "l")
	})
}

// An owner that also reads, or holds in another process, has nothing given up.
func TestOwnerThatHoldsElsewhereOrReadsCannotWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ctx := x.By("me")
		rw := x.Client().NewRWLock("rw")
		rig.Must(t, rw.Lock(ctx))
		rig.Must(t, rw.RLock(ctx))
		rig.WantIs(t, rw.WLocker().NewCond("c").Wait(ctx), relock.ErrUpgrade)
		x.Holders(rw.WLocker(), "me", 2)
		rig.Must(t, rw.RUnlock())
		rig.Must(t, rw.Unlock())
		here, there := x.Lock("l"), x.Lock("l")
		rig.Must(t, here.Lock(ctx))
		rig.Must(t, there.Lock(ctx))
		rig.WantIs(t, here.NewCond("c").Wait(ctx), relock.ErrOwnerMismatch)
		x.Holders(here, "me", 2)
		rig.Must(t, there.Unlock())
		s := x.Sleeps(ctx, here.NewCond("c"), time.Second)
		s.Ended(nil)
		rig.Must(t, here.Unlock())
		x.Free(here)
	})
}

// Others use the handle while its owner waits, and neither ends the other's hold.
func TestHandleIsFreeWhileItsOwnerWaits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		first := rig.MustAcquire(t, l)
		s := x.Sleeps(first.Context(t.Context()), l.NewCond("c"), 0)
		s.Waits()
		if n := l.HoldCount(); n != 0 || first.TrustedUntil() != (time.Time{}) {
			t.Errorf("%d holds, trusted until %v", n, first.TrustedUntil())
		}
		second := rig.MustAcquire(t, l)
		rig.Must(t, l.NewCond("c").Signal(second.Context(t.Context())))
		rig.Must(t, l.Unlock())
		s.Woken()
		rig.WantIs(t, second.Err(), relock.ErrNotHeld)
		rig.Must(t, first.Err())
		rig.Must(t, first.Release())
		x.Free(l)
	})
}

// An unlock ends the hold that the handle has, never one whose owner waits.
func TestUnlockEndsNoHoldWhoseOwnerWaits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		rig.Must(t, l.Lock(x.By("me")))
		s := x.Sleeps(x.By("me"), l.NewCond("c"), 0)
		s.Waits()
		second, err := l.TryAcquire(t.Context(), time.Minute)
		rig.Must(t, err)
		rig.Must(t, l.NewCond("c").Signal(second.Context(t.Context())))
		if err := l.Unlock(); err != nil {
			t.Errorf("unlocking what the handle holds: %v", err)
			rig.Must(t, second.Release())
		}
		s.Woken()
		rig.Must(t, l.Unlock())
		x.Free(l)
	})
}

// A renewal that was made before the wait, and answered in it, is of what was given up.
func TestRenewalThatIsUnderWayAtAWaitLosesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a := x.Client()
		l := a.NewRWLock("l").WLocker()
		h := rig.MustAcquire(t, l)
		var s *rig.Sleep
		rig.RenewAround(a, true, func() { s = x.Sleeps(t.Context(), l.NewCond("c"), time.Second) })
		synctest.Wait()
		s.Waits()
		s.Ended(nil)
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
	})
}

// The answer to a renewal that Redis has seen during the wait comes after it.
func TestRenewalThatIsAnsweredAfterAWaitLosesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, link := x.Linked(relock.Trace(relock.Hooks{RenewalFailed: func(e relock.Event) { t.Errorf("told that a renewal failed: %v", e.Err) }}))
		l, other := a.NewLock("l"), x.Lock("l")
		h, err := l.Acquire(x.By("me"))
		rig.Must(t, err)
		second := x.Lock("l")
		rig.Must(t, second.Lock(x.By("me")))
		rig.RenewAround(a, false, func() {}) // which asks no more as one that holds alone
		synctest.Wait()
		rig.Must(t, second.Unlock())
		var s *rig.Sleep
		rig.RenewAround(a, true, func() {
			s = x.Sleeps(x.By("me"), l.NewCond("c"), 0)
			link.Latency(200 * time.Millisecond) // to Redis
		})
		virtual.Sleep(100 * time.Millisecond)
		link.Latency(600 * time.Millisecond) // and back
		virtual.Sleep(200 * time.Millisecond)
		link.Latency(0)
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.NewCond("c").Signal(t.Context()))
		rig.Must(t, other.Unlock())
		s.Woken()
		virtual.Sleep(20 * time.Second)
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
	})
}

// The client of a waiter has gone, and is known to have: nothing of its lease is waited for.
func TestSignalToTheDeafGoesToTheNextAtOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		p[0].sleeps(x)
		second := p[1].sleeps(x)
		p[2].signals(x)
		p[0].Link.Cut()
		synctest.Wait()
		before := x.Now()
		rig.Must(t, p[2].l.Unlock())
		second.Woken()
		if took := x.Now() - before; took > time.Second {
			t.Errorf("it was woken %v later", took)
		}
		rig.Must(t, p[1].l.Unlock())
	})
}

// Shutdown ends a wait as its context would; Close loses what it was to hold.
func TestClosingEndsWaits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		s := p[0].sleeps(x)
		down := rig.Beside(func() error { return p[0].Shutdown(t.Context()) })
		s.Ended(relock.ErrClosed)
		down.Pending(t, "Shutdown")
		rig.Must(t, p[0].l.Unlock())
		rig.Must(t, <-down)
		s = p[1].sleeps(x)
		rig.Must(t, p[1].Close())
		s.Ended(relock.ErrLost)
		rig.WantIs(t, s.Err, relock.ErrClosed)
		rig.WantIs(t, p[1].l.Unlock(), relock.ErrLost)
		virtual.Sleep(time.Minute)
		x.Frees("l")
	})
}

// Another process waits for the lock, and would get it.
// Fails when a wait that is refused gives up the lock first: its holds then have another token.
func TestAWaitOfAClientThatShutsDownGivesUpNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		h := rig.MustAcquire(t, p[0].l)
		token := h.Token()
		other := x.Begin(p[1].l)
		other.Waits()
		down := rig.Beside(func() error { return p[0].Shutdown(t.Context()) })
		rig.StillWaits(t, down)
		for _, limit := range []time.Duration{0, time.Second} {
			x.Sleeps(t.Context(), p[0].c, limit).Ended(relock.ErrClosed)
		}
		other.Waits()
		if rig.Must(t, h.Err()); h.Token() != token {
			t.Errorf("token %d after the waits that were refused, want %d", h.Token(), token)
		}
		rig.End(t, h)
		rig.Must(t, rig.Returned(t, down))
		rig.End(t, other.Returns())
	})
}

// The terms of a hold last: a fixed lease is whole when the wait is over.
func TestFixedLeaseIsWholeAfterAWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Client().NewLock("l", relock.NoWatchdog()), x.Lock("l")
		h := rig.MustAcquire(t, l)
		s := x.Sleeps(t.Context(), l.NewCond("c"), 0)
		virtual.Sleep(time.Minute)
		s.Waits()
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.NewCond("c").Signal(t.Context()))
		virtual.Sleep(5 * time.Second)
		rig.Must(t, other.Unlock())
		s.Woken()
		if left := time.Until(h.TrustedUntil()); left < 29*time.Second {
			t.Errorf("trusted for %v", left)
		}
		rig.Must(t, h.Release())
	})
}

func TestBroadcastOfManyIsInSteps(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		var all []*rig.Sleep
		for range 300 { // more than the 250 steps of a call
			l := c.NewLock("l")
			rig.Must(t, l.Lock(t.Context()))
			s := rig.Sleeps(t, t.Context(), l.NewCond("c"), 0)
			synctest.Wait()
			all = append(all, s)
			go func() { <-s.Done; _ = l.Unlock() }()
		}
		l := x.Lock("l")
		onCondition(t, l.NewCond("c"), 300)
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.NewCond("c").Broadcast(t.Context()))
		onCondition(t, l.NewCond("c"), 0)
		rig.Must(t, l.Unlock())
		for _, s := range all {
			s.Woken()
		}
		synctest.Wait()
		virtual.Sleep(time.Second)
		rig.WantBare(t, x.Redis, "l")
	})
}

// Nobody else waits, or is ready to, so that nobody's request finds the dead.
// Fails when a dead waiter is kept, for which every call would take the general way.
func TestDeadWaiterOnAConditionIsForgottenByTheNextUnlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 1)
		p[0].sleeps(x)
		p[0].Link.Hole()
		virtual.Sleep(61 * time.Second)
		x.Frees("l")
		rig.WantBare(t, x.Redis, "l")
	})
}

// A Wait and a signal of one owner wait for the turn of another signal. The second signal would be answered when the Wait
// has the lock again. Fails when the answer, that the owner does not hold, loses what it holds by then.
func TestASignalOfAnOwnerThatWaitsLosesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l, other := c.NewLock("l"), x.Lock("l")
		rig.Must(t, l.Lock(x.By("me")))
		first, signals := make(chan struct{}), 0
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "signal") {
				if signals++; signals == 1 {
					return redistest.Hold(first)
				}
				link.Latency(2 * time.Second) // the answer takes long
				time.AfterFunc(time.Millisecond, func() { link.Latency(0) })
			}
			return redistest.Pass
		})
		signal := func() <-chan error {
			sent := rig.Beside(func() error { return l.NewCond("d").Signal(x.By("me")) })
			synctest.Wait()
			return sent
		}
		one := signal()
		s := x.Sleeps(x.By("me"), l.NewCond("c"), 0)
		synctest.Wait()
		two := signal()
		close(first)
		rig.Must(t, <-one)
		virtual.Sleep(10 * time.Millisecond)
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.NewCond("c").Signal(t.Context()))
		rig.Must(t, other.Unlock())
		virtual.Sleep(3 * time.Second)
		rig.WantIs(t, <-two, relock.ErrNotHeld)
		s.Woken()
		rig.Must(t, l.Unlock())
	})
}
