package contract_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// TestLostHookIsCalledForAReadHold, for a write hold beside it, and for one that was
// downgraded. Fails when one side hears less than the other.
func TestLostHookIsCalledForAReadHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var lost []string
		c := x.Client(relock.Trace(relock.Hooks{Lost: func(e relock.Event) { lost = append(lost, e.Name) }}))
		fixed := func(name string) *relock.RWLock { return c.NewRWLock(name, relock.NoWatchdog()) }
		read, write, both, down := fixed("read"), fixed("write"), fixed("both"), fixed("down")
		rig.Must(t, read.RLock(t.Context()))
		virtual.Sleep(time.Second)
		rig.Must(t, write.Lock(t.Context()))
		virtual.Sleep(time.Second)
		rig.Must(t, both.Lock(x.By("me")))
		rig.Must(t, both.RLock(x.By("me")))
		virtual.Sleep(time.Second)
		rig.Must(t, down.Lock(t.Context()))
		rig.Must(t, down.Downgrade(t.Context()))
		virtual.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"read", "write", "both", "both", "down"}
		if !slices.Equal(lost, want) {
			t.Errorf("lost %q, want %q", lost, want)
		}
	})
}

// TestHoldForgetsContextsWhoseParentHasEnded: a holder that makes one for each of
// its requests. Fails when a long hold keeps them all.
func TestHoldForgetsContextsWhoseParentHasEnded(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := acquire(t, x.Lock("a"), t.Context())
		kept := h.Context(t.Context())
		type request [1 << 10]byte
		type requestKey struct{}
		var requests []weak.Pointer[request]
		for range 10 {
			r := &request{}
			requests = append(requests, weak.Make(r))
			parent, cancel := context.WithCancel(context.WithValue(t.Context(), requestKey{}, r))
			rig.Must(t, h.Context(parent).Err())
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
		rig.Must(t, kept.Err())
		rig.Must(t, h.Release())
		rig.WantIs(t, kept.Err(), context.Canceled)
	})
}

// A nested hold that ends by its own terms before its call returns is no result, and nobody is told of it. The outer one
// goes on. Fails when the call returns it, or when who counts holds hears of a loss first.
func TestALossThatComesBeforeTheCallHasItsHoldIsNotTold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var told []string
		c := x.Client(relock.Trace(relock.Hooks{
			Acquired: func(_ context.Context, e relock.Event) { told = append(told, "acquired "+e.Name) },
			Lost:     func(e relock.Event) { told = append(told, "lost "+e.Name) },
		}))
		outer, inner := acquire(t, c.NewLock("a"), x.By("me")), c.NewLock("a", relock.NoWatchdog(), relock.TTL(time.Second))
		if h, err := rig.AcquireAround(x.By("me"), inner, "me", func() { virtual.Sleep(time.Minute) }); err == nil {
			t.Errorf("the call returned a hold whose state is %v", h.Err())
		}
		if want := []string{"acquired a"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		rig.WantIs(t, inner.Unlock(), relock.ErrNotHeld)
		rig.End(t, outer)
		rig.End(t, x.Take(inner))
	})
}

// As above, for who asks to be told of losses only. Fails when that hold is told of, or is kept for an Unlock.
func TestALossThatComesBeforeTheCallHasItsHoldKeepsNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		told := 0
		c := x.Client(relock.Trace(relock.Hooks{Lost: func(relock.Event) { told++ }}))
		_, err := rig.AcquireAround(x.By("me"), c.NewLock("a", relock.NoWatchdog(), relock.TTL(time.Second)), "me", func() { virtual.Sleep(time.Minute) })
		synctest.Wait()
		if rooms := rig.Rooms(c); err == nil || told != 0 || rooms != 0 {
			t.Errorf("error %v, %d losses told, %d rooms kept; want an error and nothing else", err, told, rooms)
		}
		rig.End(t, x.Take(c.NewLock("a", relock.Owner("me"))))
	})
}

// A hold that ends by its own terms is lost though the session of its owner goes on: the reason is the hold's.
func TestALossBesideAnotherHoldIsToldWithItsReason(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var told []error
		c := x.Client(relock.Trace(relock.Hooks{Lost: func(e relock.Event) { told = append(told, e.Err) }}))
		outer := acquire(t, c.NewLock("a"), x.By("me"))
		h := acquire(t, c.NewLock("a", relock.NoWatchdog(), relock.TTL(time.Second)), x.By("me"))
		virtual.Sleep(time.Minute)
		synctest.Wait()
		if len(told) != 1 || !errors.Is(told[0], relock.ErrLost) {
			t.Errorf("the hook was told of %v, want one ErrLost", told)
		}
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.End(t, outer)
	})
}

// The hook of one lock may block for ever. Fails when the contexts of other locks that are lost at the same time wait
// for it.
func TestLostHookThatDoesNotReturnKeepsNoContextOpen(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, x *rig.Lab, c *relock.Client) <-chan error{
		"in a round of the watchdog": func(t *testing.T, x *rig.Lab, _ *relock.Client) <-chan error {
			x.Redis.FlushAll(t.Context())
			return nil
		},
		"at Close": func(_ *testing.T, _ *rig.Lab, c *relock.Client) <-chan error { return rig.Beside(c.Close) },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				goOn := make(chan struct{})
				c := x.Client(relock.Trace(relock.Hooks{Lost: func(relock.Event) { <-goOn }}))
				var all []*relock.Hold
				var ended []context.Context
				for _, name := range []string{"a", "b", "c"} {
					h := acquire(t, c.NewLock(name), t.Context())
					all, ended = append(all, h), append(ended, h.Context(t.Context()))
				}
				closed := lose(t, x, c)
				virtual.Sleep(time.Minute)
				for i, ctx := range ended {
					select {
					case <-ctx.Done():
						rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
					default:
						t.Errorf("the context of hold %d has not ended", i)
					}
				}
				close(goOn)
				if closed != nil {
					rig.Must(t, rig.Returned(t, closed))
				}
				for _, h := range all {
					rig.WantIs(t, h.Release(), relock.ErrLost)
				}
			})
		})
	}
}

// The hold is lost while Hooks.Acquired tells of it. Fails when Hooks.Lost does not wait for that.
func TestALossDuringTheAcquiredHookIsToldAfterIt(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var told []string
		c := x.Client(relock.Trace(relock.Hooks{
			Acquired: func(context.Context, relock.Event) { virtual.Sleep(time.Minute); told = append(told, "acquired") },
			Lost:     func(e relock.Event) { told = append(told, "lost"); rig.WantIs(t, e.Err, relock.ErrLost) },
		}))
		l := c.NewLock("a", relock.NoWatchdog())
		rig.Must(t, l.Lock(t.Context()))
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		synctest.Wait()
		if want := []string{"acquired", "lost"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// An Unlock finds that another reader's lease has ended, and the hook that is told of it blocks.
// Fails when the Unlock waits for it.
func TestAnUnlockThatFindsAnotherLossWaitsForNoHook(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		block := make(chan struct{})
		defer close(block)
		c := x.Client(relock.Trace(relock.Hooks{Lost: func(relock.Event) { <-block }}))
		side := c.NewRWLock("a").RLocker()
		short := acquire(t, c.NewRWLock("a", relock.NoWatchdog(), relock.TTL(time.Second)).RLocker(), t.Context())
		rig.Must(t, side.Lock(t.Context()))
		x.Suspend(2 * time.Second)
		rig.Must(t, side.Unlock())
		rig.WantIs(t, short.Release(), relock.ErrLost)
		virtual.Sleep(2 * time.Second) // the lease of the lost hold
		x.Free(x.Eye.NewRWLock("a").WLocker())
	})
}
