package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// After a loss the owner got a new grant by another handle, and was not told that somebody else
// could have held between.
func TestAnOwnerIsToldOfItsLossByAnyHandle(t *testing.T) {
	kinds := map[string]func(c *relock.Client) (outer, inner relock.Locker, other func(*relock.Client) *relock.Lock){
		"plain": func(c *relock.Client) (outer, inner relock.Locker, other func(*relock.Client) *relock.Lock) {
			handle := func(c *relock.Client) *relock.Lock { return c.NewLock("a") }
			return handle(c), handle(c), handle
		},
		"fair": func(c *relock.Client) (outer, inner relock.Locker, other func(*relock.Client) *relock.Lock) {
			handle := func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Fair()) }
			return handle(c), handle(c), handle
		},
		"write": func(c *relock.Client) (outer, inner relock.Locker, other func(*relock.Client) *relock.Lock) {
			handle := func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() }
			return handle(c), handle(c), handle
		},
		"read in write": func(c *relock.Client) (outer, inner relock.Locker, other func(*relock.Client) *relock.Lock) {
			handle := func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() }
			return handle(c), c.NewRWLock("a").RLocker(), handle
		},
	}
	for kind, handles := range kinds {
		for _, known := range []bool{true, false} {
			t.Run(kind+map[bool]string{true: " known", false: " found"}[known], func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					outer, inner, handle := handles(x.Client())
					other := handle(x.Client())
					rig.Must(t, outer.Lock(x.By("me")))
					rig.Must(t, x.Redis.FlushAll(t.Context()).Err())
					rig.Must(t, other.Lock(t.Context())) // it held between
					rig.Must(t, other.Unlock())
					if known {
						virtual.Sleep(11 * time.Second)
					}
					for _, lock := range []func(ctx context.Context) error{inner.Lock, outer.Lock} {
						rig.WantIs(t, lock(x.By("me")), relock.ErrLost)
						synctest.Wait()
						x.Free(other)
					}
					took, err := inner.TryLock(x.By("me"), 0)
					if rig.WantIs(t, err, relock.ErrLost); took {
						t.Error("taken")
					}
					rig.Must(t, inner.Lock(x.By("you"))) // nobody else is held up
					rig.Must(t, inner.Unlock())
					rig.WantIs(t, outer.Unlock(), relock.ErrLost)
					rig.Must(t, inner.Lock(x.By("me")))
					rig.Must(t, inner.Unlock())
					x.Free(other)
				})
			})
		}
	}
}

// Each way in which a lost hold ends lets its owner lock again.
func TestAnOwnerLocksAgainOnceItsLostHoldHasEnded(t *testing.T) {
	ends := map[string]func(ctx context.Context, h *relock.Hold) error{
		"Release": func(_ context.Context, h *relock.Hold) error { return h.Release() },
		"Detach":  func(ctx context.Context, h *relock.Hold) error { _, err := h.Detach(ctx, time.Second); return err },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := x.Client()
				outer, inner := c.NewLock("a", relock.NoWatchdog()), c.NewLock("a")
				for _, nested := range []int{1, 3} {
					var holds []*relock.Hold
					for range nested {
						holds = append(holds, acquire(t, outer, x.By("me")))
					}
					virtual.Sleep(time.Minute)
					for _, h := range holds {
						rig.WantIs(t, inner.Lock(x.By("me")), relock.ErrLost)
						rig.WantIs(t, end(t.Context(), h), relock.ErrLost)
					}
					rig.Must(t, inner.Lock(x.By("me")))
					rig.Must(t, inner.Unlock())
				}
			})
		})
	}
}
