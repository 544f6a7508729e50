package redisson_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// TestSuspendedHolderOfRedissonIsLostAtTheFirstQuestion: the machine slept through its lease. No timer has fired yet, and
// the clock decides.
func TestSuspendedHolderOfRedissonIsLostAtTheFirstQuestion(t *testing.T) {
	for name, ask := range map[string]func(l *redisson.Lock, h *redisson.Hold, ctx context.Context) (lost bool){
		"Err":          func(_ *redisson.Lock, h *redisson.Hold, _ context.Context) bool { return h.Err() != nil },
		"TrustedUntil": func(_ *redisson.Lock, h *redisson.Hold, _ context.Context) bool { return h.TrustedUntil().IsZero() },
		"context":      func(_ *redisson.Lock, _ *redisson.Hold, ctx context.Context) bool { return ctx.Err() != nil },
		"Cause":        func(_ *redisson.Lock, _ *redisson.Hold, ctx context.Context) bool { return context.Cause(ctx) != nil },
		"HoldCount":    func(l *redisson.Lock, _ *redisson.Hold, _ context.Context) bool { return l.HoldCount() == 0 },
		"Release":      func(_ *redisson.Lock, h *redisson.Hold, _ context.Context) bool { return h.Release() != nil },
		"Unlock":       func(l *redisson.Lock, _ *redisson.Hold, _ context.Context) bool { return l.Unlock() != nil },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				var slept atomic.Int64
				base, c := time.Now(), client(t, x)
				redisson.SetClock(c, clock.New(time.Now, func() time.Duration { return time.Since(base) + time.Duration(slept.Load()) }))
				l := c.NewLock("a")
				h, err := l.Acquire(t.Context())
				rig.Must(t, err)
				ctx, lost := h.Context(t.Context()), h.Lost()
				virtual.Sleep(1007 * time.Millisecond) // the watchdog's sleep is not over at this instant
				slept.Add(int64(28 * time.Second))
				rig.Must(t, h.Err())
				slept.Add(int64(time.Second))
				if !ask(l, h, ctx) {
					t.Error("it does not say that the hold is lost")
				}
				rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
				if !rig.IsShut(lost) {
					t.Error("Lost is not closed")
				}
			})
		})
	}
}
