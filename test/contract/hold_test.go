package contract_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func acquire(t testing.TB, l *relock.Lock, ctx context.Context) *relock.Hold { //nolint:revive // t comes first in a helper
	t.Helper()
	h, err := l.Acquire(ctx)
	rig.Must(t, err)
	return h
}

func TestHoldKnowsWhatItIs(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		h := acquire(t, l, x.By("me"))
		if h.Name() != "a" || h.Owner() != "me" || h.Token() == 0 || h.Token() != l.Token() || l.HoldCount() != 1 {
			t.Errorf("name %q, owner %q, token %d of %d, %d holds", h.Name(), h.Owner(), h.Token(), l.Token(), l.HoldCount())
		}
		rig.Must(t, h.Err())
		if rig.IsShut(h.Lost()) || rig.IsShut(l.Lost()) {
			t.Error("Lost is closed")
		}
		rig.Must(t, h.Release())
		if l.HoldCount() != 0 || l.Token() != 0 || l.Lost() != nil {
			t.Errorf("after the release: %d holds, token %d, Lost %v", l.HoldCount(), l.Token(), l.Lost())
		}
	})
}

func TestSecondReleaseIsNotHeld(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		h := acquire(t, l, t.Context())
		rig.Must(t, h.Release())
		next := acquire(t, l, t.Context())
		for range 3 {
			err := h.Release()
			rig.WantIs(t, err, relock.ErrNotHeld)
			rig.WantNot(t, err, relock.ErrLost)
		}
		rig.WantIs(t, h.Err(), relock.ErrNotHeld)
		rig.WantNot(t, h.Err(), relock.ErrLost)
		rig.Must(t, next.Err())
		x.Refuses(x.Lock("a"))
		rig.Must(t, next.Release())
	})
}

func TestReleaseAfterALoss(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.NoWatchdog())
		h := acquire(t, l, t.Context())
		virtual.Sleep(time.Minute)
		rig.WantIs(t, h.Err(), relock.ErrLost)
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.WantNot(t, h.Release(), relock.ErrLost)
		rig.WantIs(t, h.Release(), relock.ErrNotHeld)
		rig.WantIs(t, h.Err(), relock.ErrNotHeld)
		if !rig.IsShut(h.Lost()) {
			t.Error("Lost is open again")
		}
	})
}

func TestLostStaysOpenAfterARelease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := acquire(t, x.Lock("a"), t.Context())
		lost := h.Lost()
		rig.Must(t, h.Release())
		virtual.Sleep(10 * time.Minute)
		if rig.IsShut(lost) || rig.IsShut(h.Lost()) {
			t.Error("Lost is closed, and the hold was released in time")
		}
	})
}

// TestTrustedUntilMovesWithEachRenewal: always within what Redis keeps, at
// least 9 tenths of it, and never in the past.
func TestTrustedUntilMovesWithEachRenewal(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		h := acquire(t, l, t.Context())
		first := h.TrustedUntil()
		if d := time.Until(first); d >= 30*time.Second || d < 27*time.Second {
			t.Errorf("trusted for %v of a lease of 30s", d)
		}
		moved := 0
		for last := first; moved < 10; {
			virtual.Sleep(1111 * time.Millisecond)
			synctest.Wait()
			info, err := l.Info(t.Context())
			rig.Must(t, err)
			trust := h.TrustedUntil()
			if d := time.Until(trust); d >= info.Holders[0].TTL || d < 17*time.Second {
				t.Errorf("trusted for %v, and Redis keeps it for %v", d, info.Holders[0].TTL)
			}
			if trust.Before(last) {
				t.Errorf("trust moved back from %v to %v", last, trust)
			}
			if trust.After(last) {
				moved++
			}
			last = trust
			if time.Since(first) > 5*time.Minute {
				t.Fatalf("moved %d times within 5 minutes", moved)
			}
		}
		rig.Must(t, h.Release())
		if !h.TrustedUntil().IsZero() {
			t.Errorf("trusted until %v after the release", h.TrustedUntil())
		}
	})
}

// TestHoldIsLostAtTheInstantItIsTrustedUntil, to the nanosecond.
func TestHoldIsLostAtTheInstantItIsTrustedUntil(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := acquire(t, x.Lock("a", relock.NoWatchdog()), t.Context())
		lost := h.Lost()
		virtual.Sleep(time.Until(h.TrustedUntil()) - 1)
		rig.Must(t, h.Err())
		synctest.Wait()
		if rig.IsShut(lost) {
			t.Error("Lost is closed 1 ns too early")
		}
		virtual.Sleep(1)
		rig.WantIs(t, h.Err(), relock.ErrLost)
		if !rig.IsShut(lost) {
			t.Error("Lost is not closed at the instant")
		}
		if !h.TrustedUntil().IsZero() {
			t.Errorf("trusted until %v after the loss", h.TrustedUntil())
		}
		rig.WantIs(t, h.Release(), relock.ErrLost)
	})
}

func TestContextsEndOnRelease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := acquire(t, x.Lock("a"), t.Context())
		parent, cancel := context.WithCancel(relock.WithOwner(t.Context(), "me"))
		defer cancel()
		ctx := h.Context(parent)
		if id, ok := relock.OwnerFrom(ctx); id != "me" || !ok {
			t.Errorf("owner %q, %v, want the parent's", id, ok)
		}
		child, cancelChild := context.WithTimeout(ctx, time.Hour)
		defer cancelChild()
		rig.Must(t, ctx.Err())
		rig.Must(t, h.Release())
		for _, c := range []context.Context{ctx, child} {
			rig.WantIs(t, c.Err(), context.Canceled)
			rig.WantNot(t, context.Cause(c), relock.ErrLost)
		}
		rig.Must(t, parent.Err())
		late := h.Context(t.Context())
		rig.WantIs(t, late.Err(), context.Canceled)
	})
}

func TestContextsEndOnLoss(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := acquire(t, x.Lock("a", relock.NoWatchdog()), t.Context())
		ctx := h.Context(t.Context())
		child, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		type key struct{}
		all := []context.Context{
			ctx, child, context.WithValue(child, key{}, 1), h.Context(ctx), h.Context(child), h.Context(t.Context()),
		}
		var woken atomic.Int64
		for _, c := range all {
			context.AfterFunc(c, func() { woken.Add(1) })
			rig.Must(t, c.Err())
		}
		<-child.Done()
		synctest.Wait()
		for i, c := range append(all, h.Context(t.Context())) {
			if !rig.IsShut(c.Done()) {
				t.Errorf("context %d goes on", i)
			}
			rig.WantIs(t, c.Err(), context.Canceled)
			rig.WantIs(t, context.Cause(c), relock.ErrLost)
		}
		if n := woken.Load(); n != int64(len(all)) {
			t.Errorf("%d of %d contexts told their AfterFunc", n, len(all))
		}
		rig.WantIs(t, h.Release(), relock.ErrLost)
	})
}

func TestContextEndsWithItsParentAlone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := acquire(t, x.Lock("a"), t.Context())
		parent, cancel := context.WithCancelCause(t.Context())
		ctx, sibling := h.Context(parent), h.Context(t.Context())
		cancel(errReason)
		rig.WantIs(t, ctx.Err(), context.Canceled)
		rig.WantIs(t, context.Cause(ctx), errReason)
		rig.Must(t, sibling.Err())
		rig.Must(t, h.Err())
		done := h.Context(parent)
		rig.WantIs(t, context.Cause(done), errReason)
		rig.Must(t, h.Release())
		rig.WantIs(t, context.Cause(ctx), errReason)
	})
}
