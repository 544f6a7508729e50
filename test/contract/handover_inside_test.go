package contract_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// A request takes the lock by Do, and hands it over under the context that Do has given it.
// Fails when the contexts of the hold, which end with it, end the request that hands it over.
func TestDetachWorksUnderTheContextOfItsOwnHold(t *testing.T) {
	for name, wrap := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"as given": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
		"below a timeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, ticket := x.Client(), relock.Ticket("")
				ran, err := c.NewLock("l").TryDo(t.Context(), 0, func(ctx context.Context) (err error) {
					ctx, cancel := wrap(ctx)
					defer cancel()
					h, ok := relock.FromContext(ctx, "l")
					if !ok {
						t.Fatal("the context knows no hold")
					}
					ticket, err = h.Detach(h.Context(ctx), time.Minute)
					if ctx.Err() == nil {
						t.Error("the context goes on though its hold has ended")
					}
					return err
				})
				if !ran || err != nil {
					t.Fatalf("a hand-over that went well: %v, %v", ran, err)
				}
				h := resume(t, x.Client(), ticket)
				rig.End(t, h)
			})
		})
	}
}

// Fails when the request goes on after the end of what the hold's context descends from, or after its deadline.
func TestDetachUnderTheContextOfItsOwnHoldHeedsWhatElseEndsThat(t *testing.T) {
	for name, end := range map[string]func(parent context.Context) (context.Context, context.CancelFunc){
		"the end of its parent": func(parent context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(parent)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
		"its deadline": func(parent context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(parent, time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				h := x.Take(c.NewLock("l"))
				outer, cancel := end(t.Context())
				defer cancel()
				ctx := h.Context(outer)
				heal := link.Cut()
				begin := time.Now()
				_, err := h.Detach(ctx, time.Minute)
				if took := time.Since(begin); took < time.Second || took > 3*time.Second {
					t.Errorf("Detach took %v, want a second", took)
				}
				rig.WantIs(t, err, relock.ErrUnconfirmed)
				heal()
			})
		})
	}
}

// Fails when the hooks do not hear of a hold that was resumed.
func TestHooksFollowAHoldThatIsResumed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var r record
		c := x.Client(r.trace())
		for _, lost := range []bool{false, true} {
			ticket := detach(t, x.Take(x.Lock("l", relock.Owner("me"))), time.Minute)
			h, err := c.Resume(called(t, ""), ticket)
			rig.Must(t, err)
			r.saw(t, "acquired l me token=true waited=0s held=0s err=<nil>")
			if !lost {
				rig.End(t, h)
				r.saw(t, "released l me token=true waited=0s held=0s err=<nil>")
				continue
			}
			_, err = x.Eye.NewLock("l").ForceUnlock(t.Context())
			rig.Must(t, err)
			<-h.Lost()
			r.saw(t, "lost l me token=true waited=0s held=10s err=lost: redis no longer has it")
			rig.WantIs(t, h.Release(), relock.ErrLost)
		}
	})
}
