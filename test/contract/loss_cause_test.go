package contract_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// lostUnseen returns a hold that is lost, and of which nobody has asked: its process slept.
func lostUnseen(x *rig.Lab, l *relock.Lock) (h *relock.Hold, ctx context.Context) {
	x.T.Helper()
	h = rig.MustAcquire(x.T, l)
	ctx = h.Context(x.T.Context())
	virtual.Sleep(time.Second)
	x.Suspend(31 * time.Second)
	return h, ctx
}

// The first to ask after a pause is the end of the hold.
// Fails when that ends its contexts as a release in time does: their cause was that it is not held.
func TestALossThatItsReleaseFindsIsTheCauseOfItsContexts(t *testing.T) {
	for name, end := range map[string]func(*relock.Lock, *relock.Hold) error{
		"Release": func(_ *relock.Lock, h *relock.Hold) error { return h.Release() },
		"Unlock":  func(l *relock.Lock, _ *relock.Hold) error { return l.Unlock() },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				l := x.Lock("a")
				h, ctx := lostUnseen(x, l)
				rig.WantIs(t, end(l, h), relock.ErrLost)
				rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
			})
		})
	}
}

// Fails when the release, or the context, waits for the hook.
func TestAReleaseThatFindsItsLossWaitsForNoHook(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		block := make(chan struct{})
		defer close(block)
		l := x.Client(relock.Trace(relock.Hooks{Lost: func(relock.Event) { <-block }})).NewLock("a")
		h, ctx := lostUnseen(x, l)
		rig.WantIs(t, h.Release(), relock.ErrLost)
		if !rig.IsShut(ctx.Done()) {
			t.Error("the context goes on")
		}
	})
}

// Close loses two locks, and the hook of the first loss releases the other one, whose context
// has yet to be ended.
// Fails when a context asks whether its hold is released before it asks whether that was lost.
func TestALossIsTheCauseOfContextsThatHaveYetToEndAtTheRelease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holds, contexts := map[string]*relock.Hold{}, map[string]context.Context{}
		told := 0
		c := x.Client(relock.Trace(relock.Hooks{Lost: func(e relock.Event) {
			if told++; told > 1 {
				return
			}
			other := map[string]string{"a": "b", "b": "a"}[e.Name]
			rig.WantIs(t, holds[other].Release(), relock.ErrLost)
			rig.WantIs(t, context.Cause(contexts[other]), relock.ErrLost)
			rig.WantIs(t, context.Cause(holds[other].Context(t.Context())), relock.ErrLost) // one that begins after both
		}}))
		for _, name := range []string{"a", "b"} {
			holds[name] = rig.MustAcquire(t, c.NewLock(name))
			contexts[name] = holds[name].Context(t.Context())
		}
		rig.Must(t, c.Close())
		if told != 2 {
			t.Errorf("%d losses told, want 2", told)
		}
	})
}
