package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestShutdownOfAnIdleClientReturns(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		unused, used := x.Client(), x.Client()
		rig.Must(t, used.NewLock("a").Lock(t.Context()))
		rig.Must(t, rig.Returned(t, rig.Beside(func() error { return unused.Shutdown(t.Context()) })))
		rig.WantIs(t, unused.NewLock("b").Lock(t.Context()), relock.ErrClosed)
		rig.Must(t, unused.Shutdown(t.Context()))
		rig.Must(t, unused.Close())
	})
}

// TestShutdownWaitsForHolds: waiters and new calls fail at once, re-entries of
// what is held succeed, and the last release ends it.
func TestShutdownWaitsForHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, elsewhere := x.Client(), x.Lock("busy")
		l, busy := c.NewLock("a"), c.NewLock("busy")
		h := acquire(t, l, x.By("me"))
		rig.Must(t, elsewhere.Lock(t.Context()))
		waiters := []<-chan error{
			rig.Beside(func() error { return busy.Lock(t.Context()) }),
			rig.Beside(func() error { return busy.Lock(t.Context()) }),
			rig.Beside(func() error { return busy.Lock(x.By("you")) }),
			rig.Beside(func() error { _, err := l.TryLock(x.By("you"), time.Hour); return err }),
		}
		synctest.Wait()
		shutdown := rig.Beside(func() error { return c.Shutdown(t.Context()) })
		for _, w := range waiters {
			rig.WantIs(t, rig.Returned(t, w), relock.ErrClosed)
		}
		x.Waits(elsewhere)
		for way, call := range everyWay(c.NewLock("free")) {
			if rig.WantIs(t, call(t.Context()), relock.ErrClosed); t.Failed() {
				t.Fatal(way)
			}
		}
		rig.Must(t, l.Lock(h.Context(x.By("me"))))
		rig.Must(t, c.NewLock("a").Do(x.By("me"), func(context.Context) error { return nil }))
		x.Holders(l, "me", 2)
		wantListed(t, c, "", "a", "busy")
		virtual.Sleep(5 * time.Minute)
		rig.StillWaits(t, shutdown)
		rig.Must(t, h.Err())
		rig.Must(t, l.Unlock())
		rig.StillWaits(t, shutdown)
		rig.Must(t, h.Release())
		rig.Must(t, rig.Returned(t, shutdown))
		rig.WantIs(t, l.Lock(x.By("me")), relock.ErrClosed)
		rig.Must(t, elsewhere.Unlock())
	})
}

func TestShutdownGoesOnDrainingAfterItsContext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("a")
		h := acquire(t, l, t.Context())
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errReason)
		defer cancel()
		began := time.Now()
		err := c.Shutdown(ctx)
		rig.WantIs(t, err, context.DeadlineExceeded, errReason)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Shutdown took %v, want its context's minute", took)
		}
		rig.WantIs(t, c.NewLock("b").Lock(t.Context()), relock.ErrClosed)
		virtual.Sleep(5 * time.Minute)
		rig.Must(t, h.Err())
		x.Refuses(x.Lock("a"))
		rig.Must(t, h.Release())
		x.Frees("a")
		rig.Must(t, c.Close())
	})
}

// Fails when a Shutdown under a context that has ended refuses nobody.
func TestShutdownUnderAnEndedContextDrains(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		h := acquire(t, c.NewLock("a"), t.Context())
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errReason)
		err := c.Shutdown(ctx)
		rig.WantIs(t, err, context.Canceled, errReason)
		wantSays(t, "Shutdown", err, "1 hold")
		rig.WantIs(t, c.NewLock("b").Lock(t.Context()), relock.ErrClosed)
		rig.End(t, h)
		rig.Must(t, c.Close())
		rig.Must(t, c.Shutdown(ctx))
	})
}

// TestShutdownDoesNotWaitForLostHolds: nobody may come to unlock them.
func TestShutdownDoesNotWaitForLostHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("a", relock.NoWatchdog())
		rig.Must(t, l.Lock(t.Context()))
		shutdown := rig.Beside(func() error { return c.Shutdown(t.Context()) })
		virtual.Sleep(29 * time.Second)
		rig.StillWaits(t, shutdown)
		virtual.Sleep(time.Second)
		rig.Must(t, rig.Returned(t, shutdown))
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// TestShutdownWaitsForAReleaseThatIsNotConfirmed: leaving would leave the lock
// held for the rest of its lease.
func TestShutdownWaitsForAReleaseThatIsNotConfirmed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a", relock.TTL(time.Hour))
		rig.Must(t, l.Lock(t.Context()))
		heal := link.Cut()
		rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		shutdown := rig.Beside(func() error { return c.Shutdown(t.Context()) })
		virtual.Sleep(time.Minute)
		rig.StillWaits(t, shutdown)
		heal()
		rig.Must(t, <-shutdown)
		x.Frees("a")
	})
}

func TestCloseLosesWhatIsHeld(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, busy := x.Client(), x.Lock("busy")
		l, named := c.NewLock("a"), c.NewLock("b", relock.Owner("me"))
		rig.Must(t, busy.Lock(t.Context()))
		h := acquire(t, l, t.Context())
		ctx := h.Context(t.Context())
		rig.Must(t, named.Lock(t.Context()))
		waiter := rig.Beside(func() error { return c.NewLock("busy").Lock(t.Context()) })
		rig.StillWaits(t, waiter)
		rig.Must(t, c.Close())
		rig.WantIs(t, rig.Returned(t, waiter), relock.ErrClosed)
		if !rig.IsShut(h.Lost()) || !rig.IsShut(ctx.Done()) {
			t.Error("Lost or the context is open after Close")
		}
		for _, err := range []error{context.Cause(ctx), h.Err(), h.Release(), named.Unlock()} {
			rig.WantIs(t, err, relock.ErrLost, relock.ErrClosed)
		}
		for way, call := range everyWay(c.NewLock("free")) {
			if rig.WantIs(t, call(t.Context()), relock.ErrClosed); t.Failed() {
				t.Fatal(way)
			}
		}
		_, err := l.Info(t.Context())
		rig.WantIs(t, err, relock.ErrClosed)
		rig.Must(t, c.Close())
		rig.Must(t, c.Shutdown(t.Context()))
		// The lease runs out by itself.
		x.Refuses(x.Lock("a"))
		virtual.Sleep(30*time.Second + 1)
		x.Frees("a")
		x.Frees("b")
	})
}

func TestCloseInsideDo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		err := c.NewLock("a").Do(t.Context(), func(ctx context.Context) error {
			rig.Must(t, c.Close())
			return context.Cause(ctx)
		})
		rig.WantIs(t, err, relock.ErrLost, relock.ErrClosed)
	})
}

func TestCloseEndsAShutdownThatWaits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		rig.Must(t, c.NewLock("a").Lock(t.Context()))
		shutdown := rig.Beside(func() error { return c.Shutdown(t.Context()) })
		rig.StillWaits(t, shutdown)
		rig.Must(t, c.Close())
		rig.Must(t, rig.Returned(t, shutdown))
	})
}

// TestCallInFlightAtCloseGetsNoHold: the answer that grants comes when nobody
// is left to renew it.
func TestCallInFlightAtCloseGetsNoHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
		free := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "acquire") {
				return redistest.Hold(free)
			}
			return redistest.Pass
		})
		call := rig.Beside(func() error { return l.Lock(t.Context()) })
		rig.StillWaits(t, call)
		closed := rig.Beside(c.Close)
		synctest.Wait()
		virtual.Sleep(time.Millisecond)
		close(free)
		rig.Must(t, <-closed)
		rig.WantIs(t, rig.Returned(t, call), relock.ErrClosed)
		if l.HoldCount() != 0 {
			t.Error("held after Close")
		}
	})
}
