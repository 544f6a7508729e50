package contract_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
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
		time.Sleep(time.Second)
		rig.Must(t, write.Lock(t.Context()))
		time.Sleep(time.Second)
		rig.Must(t, both.Lock(x.By("me")))
		rig.Must(t, both.RLock(x.By("me")))
		time.Sleep(time.Second)
		rig.Must(t, down.Lock(t.Context()))
		rig.Must(t, down.Downgrade(t.Context()))
		time.Sleep(time.Minute)
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
