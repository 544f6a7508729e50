package relock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

func TestShutdownOfAnIdleClientReturns(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		unused, used := x.client(), x.client()
		noErr(t, used.NewLock("a").Lock(t.Context()))
		noErr(t, hasReturned(t, beside(func() error { return unused.Shutdown(t.Context()) })))
		wantIs(t, unused.NewLock("b").Lock(t.Context()), relock.ErrClosed)
		noErr(t, unused.Shutdown(t.Context()))
		noErr(t, unused.Close())
	})
}

// TestShutdownWaitsForHolds: waiters and new calls fail at once, re-entries of
// what is held succeed, and the last release ends it.
func TestShutdownWaitsForHolds(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, elsewhere := x.client(), x.lock("busy")
		l, busy := c.NewLock("a"), c.NewLock("busy")
		h := acquire(t, l, x.by("me"))
		noErr(t, elsewhere.Lock(t.Context()))
		waiters := []<-chan error{
			beside(func() error { return busy.Lock(t.Context()) }),
			beside(func() error { return busy.Lock(t.Context()) }),
			beside(func() error { return busy.Lock(x.by("you")) }),
			beside(func() error { _, err := l.TryLock(x.by("you"), time.Hour); return err }),
		}
		synctest.Wait()
		shutdown := beside(func() error { return c.Shutdown(t.Context()) })
		for _, w := range waiters {
			wantIs(t, hasReturned(t, w), relock.ErrClosed)
		}
		x.waits(elsewhere)
		for way, call := range everyWay(c.NewLock("free")) {
			if wantIs(t, call(t.Context()), relock.ErrClosed); t.Failed() {
				t.Fatal(way)
			}
		}
		noErr(t, l.Lock(h.Context(x.by("me"))))
		noErr(t, c.NewLock("a").Do(x.by("me"), func(context.Context) error { return nil }))
		x.holders(l, "me", 2)
		time.Sleep(5 * time.Minute)
		stillWaits(t, shutdown)
		noErr(t, h.Err())
		noErr(t, l.Unlock())
		stillWaits(t, shutdown)
		noErr(t, h.Release())
		noErr(t, hasReturned(t, shutdown))
		wantIs(t, l.Lock(x.by("me")), relock.ErrClosed)
		noErr(t, elsewhere.Unlock())
	})
}

func TestShutdownGoesOnDrainingAfterItsContext(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		l := c.NewLock("a")
		h := acquire(t, l, t.Context())
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errReason)
		defer cancel()
		began := time.Now()
		err := c.Shutdown(ctx)
		wantIs(t, err, context.DeadlineExceeded, errReason)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Shutdown took %v, want its context's minute", took)
		}
		wantIs(t, c.NewLock("b").Lock(t.Context()), relock.ErrClosed)
		time.Sleep(5 * time.Minute)
		noErr(t, h.Err())
		x.refuses(x.lock("a"))
		noErr(t, h.Release())
		x.frees("a")
		noErr(t, c.Close())
	})
}

// TestShutdownDoesNotWaitForLostHolds: nobody may come to unlock them.
func TestShutdownDoesNotWaitForLostHolds(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		l := c.NewLock("a", relock.NoWatchdog())
		noErr(t, l.Lock(t.Context()))
		shutdown := beside(func() error { return c.Shutdown(t.Context()) })
		time.Sleep(29 * time.Second)
		stillWaits(t, shutdown)
		time.Sleep(time.Second)
		noErr(t, hasReturned(t, shutdown))
		wantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// TestShutdownWaitsForAReleaseThatIsNotConfirmed: leaving would leave the lock
// held for the rest of its lease.
func TestShutdownWaitsForAReleaseThatIsNotConfirmed(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a", relock.TTL(time.Hour))
		noErr(t, l.Lock(t.Context()))
		heal := link.Cut()
		wantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		shutdown := beside(func() error { return c.Shutdown(t.Context()) })
		time.Sleep(time.Minute)
		stillWaits(t, shutdown)
		heal()
		noErr(t, <-shutdown)
		x.frees("a")
	})
}

func TestCloseLosesWhatIsHeld(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, busy := x.client(), x.lock("busy")
		l, named := c.NewLock("a"), c.NewLock("b", relock.Owner("me"))
		noErr(t, busy.Lock(t.Context()))
		h := acquire(t, l, t.Context())
		ctx := h.Context(t.Context())
		noErr(t, named.Lock(t.Context()))
		waiter := beside(func() error { return c.NewLock("busy").Lock(t.Context()) })
		stillWaits(t, waiter)
		noErr(t, c.Close())
		wantIs(t, hasReturned(t, waiter), relock.ErrClosed)
		if !isShut(h.Lost()) || !isShut(ctx.Done()) {
			t.Error("Lost or the context is open after Close")
		}
		for _, err := range []error{context.Cause(ctx), h.Err(), h.Release(), named.Unlock()} {
			wantIs(t, err, relock.ErrLost, relock.ErrClosed)
		}
		for way, call := range everyWay(c.NewLock("free")) {
			if wantIs(t, call(t.Context()), relock.ErrClosed); t.Failed() {
				t.Fatal(way)
			}
		}
		_, err := l.Info(t.Context())
		wantIs(t, err, relock.ErrClosed)
		noErr(t, c.Close())
		noErr(t, c.Shutdown(t.Context()))
		// The lease runs out by itself.
		x.refuses(x.lock("a"))
		time.Sleep(30*time.Second + 1)
		x.frees("a")
		x.frees("b")
	})
}

func TestCloseInsideDo(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		err := c.NewLock("a").Do(t.Context(), func(ctx context.Context) error {
			noErr(t, c.Close())
			return context.Cause(ctx)
		})
		wantIs(t, err, relock.ErrLost, relock.ErrClosed)
	})
}

func TestCloseEndsAShutdownThatWaits(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		noErr(t, c.NewLock("a").Lock(t.Context()))
		shutdown := beside(func() error { return c.Shutdown(t.Context()) })
		stillWaits(t, shutdown)
		noErr(t, c.Close())
		noErr(t, hasReturned(t, shutdown))
	})
}

// TestCallInFlightAtCloseGetsNoHold: the answer that grants comes when nobody
// is left to renew it.
func TestCallInFlightAtCloseGetsNoHold(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a")
		noErr(t, l.Lock(t.Context()))
		noErr(t, l.Unlock())
		free := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if runs(cmd, "acquire") {
				return redistest.Hold(free)
			}
			return redistest.Pass
		})
		call := beside(func() error { return l.Lock(t.Context()) })
		stillWaits(t, call)
		closed := beside(c.Close)
		synctest.Wait()
		time.Sleep(time.Millisecond)
		close(free)
		noErr(t, <-closed)
		wantIs(t, hasReturned(t, call), relock.ErrClosed)
		if l.HoldCount() != 0 {
			t.Error("held after Close")
		}
	})
}
