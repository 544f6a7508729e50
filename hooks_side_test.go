package relock_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/relock-go/relock"
)

// TestLostHookIsCalledForAReadHold, for a write hold beside it, and for one that was
// downgraded. Fails when one side hears less than the other.
func TestLostHookIsCalledForAReadHold(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		var lost []string
		c := x.client(relock.Trace(relock.Hooks{Lost: func(e relock.Event) { lost = append(lost, e.Name) }}))
		fixed := func(name string) *relock.RWLock { return c.NewRWLock(name, relock.NoWatchdog()) }
		read, write, both, down := fixed("read"), fixed("write"), fixed("both"), fixed("down")
		noErr(t, read.RLock(t.Context()))
		time.Sleep(time.Second)
		noErr(t, write.Lock(t.Context()))
		time.Sleep(time.Second)
		noErr(t, both.Lock(x.by("me")))
		noErr(t, both.RLock(x.by("me")))
		time.Sleep(time.Second)
		noErr(t, down.Lock(t.Context()))
		noErr(t, down.Downgrade(t.Context()))
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"read", "write", "both", "both", "down"}
		if !slices.Equal(lost, want) {
			t.Errorf("lost %q, want %q", lost, want)
		}
	})
}

// TestHooksOfNestedHoldsAreCalledUnderNoMutex: of those that Redis is not told of.
// Fails when one is called under the mutex of its handle: it could not ask that.
func TestHooksOfNestedHoldsAreCalledUnderNoMutex(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		var l *relock.Lock
		calls := 0
		free := func() {
			calls++
			if !l.Unlocked() {
				t.Error("a hook is called under a mutex")
			}
		}
		c := x.client(relock.Trace(relock.Hooks{
			Acquired: func(context.Context, relock.Event) { free() },
			Released: func(relock.Event) { free() },
		}))
		l = c.NewLock("a", relock.LocalReentry())
		for range 3 {
			noErr(t, l.Lock(x.by("me")))
		}
		for range 3 {
			noErr(t, l.Unlock())
		}
		if calls != 6 {
			t.Errorf("%d calls of hooks, want 6", calls)
		}
	})
}

// TestHoldForgetsContextsWhoseParentHasEnded: a holder that makes one for each of
// its requests. Fails when a long hold keeps them all.
func TestHoldForgetsContextsWhoseParentHasEnded(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		h := acquire(t, x.lock("a"), t.Context())
		kept := h.Context(t.Context())
		type request [1 << 10]byte
		type requestKey struct{}
		var requests []weak.Pointer[request]
		for range 10 {
			r := &request{}
			requests = append(requests, weak.Make(r))
			parent, cancel := context.WithCancel(context.WithValue(t.Context(), requestKey{}, r))
			noErr(t, h.Context(parent).Err())
			cancel()
		}
		synctest.Wait()
		runtime.GC()
		runtime.GC()
		for i, r := range requests {
			if r.Value() != nil {
				t.Errorf("request %d has ended, and is kept", i)
			}
		}
		noErr(t, kept.Err())
		noErr(t, h.Release())
		wantIs(t, kept.Err(), context.Canceled)
	})
}
