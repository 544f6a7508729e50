package contract_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when the time counts from the last try, or from after the question for permissions.
func TestAnOutageIsToldWithTheTimeThatTheCallHasWaited(t *testing.T) {
	const wait = 300 * time.Millisecond
	for name, call := range map[string]func(ctx context.Context, c *relock.Client) error{
		"Acquire": func(ctx context.Context, c *relock.Client) error {
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			_, err := c.NewLock("a").Acquire(ctx)
			return err
		},
		"TryAcquire": func(ctx context.Context, c *relock.Client) error {
			_, err := c.NewLock("a").TryAcquire(ctx, wait)
			return err
		},
		"one attempt": func(ctx context.Context, c *relock.Client) error {
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			_, err := c.NewLock("a").TryAcquire(ctx, 0)
			return err
		},
		"a read": func(ctx context.Context, c *relock.Client) error {
			_, err := c.NewRWLock("a").RLocker().TryAcquire(ctx, wait)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				link := redistest.NewLink(t, x.Server.Dial)
				// Not of the lab: this one asks first whether its user may run what scripts need.
				c := rig.Open(t, x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }))
				defer link.Hole()()
				for range 2 {
					err := call(t.Context(), c)
					if err == nil {
						t.Fatal("no error of a silent Redis")
					}
					// The second call may know of the silence that the first has met.
					_, silent, _ := strings.Cut(err.Error(), "redis has not answered for ")
					if told, bad := time.ParseDuration(silent); bad != nil || told < wait || told > 2*wait {
						t.Errorf("%v, want one that says 300ms or more", err)
					}
				}
			})
		})
	}
}

// Fails when it says "for 0s", or for some microseconds.
func TestAWaitThatIsTooShortForAnAnswerSaysSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		defer link.Hole()()
		for _, wait := range []time.Duration{1, time.Microsecond, 24 * time.Microsecond} {
			_, err := c.NewLock("a").TryAcquire(t.Context(), wait)
			if err == nil || !strings.Contains(err.Error(), "redis has not answered yet") {
				t.Errorf("TryAcquire for %v = %v", wait, err)
			}
		}
	})
}
