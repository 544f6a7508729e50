package redisson_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// The holds of one owner have one lease in Redis. What one of them asks for must not change
// what another is promised.

// everyKind runs f in virtual time with what makes handles of each kind on one lock.
func everyKind(t *testing.T, f func(t *testing.T, x *rig.Lab, of func(opts ...redisson.LockOption) *redisson.Lock)) {
	t.Helper()
	for _, kind := range []string{"plain", "fair", "fenced", "write", "read"} {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := client(t, x, redisson.WatchdogTimeout(2*time.Hour))
				f(t, x, func(opts ...redisson.LockOption) *redisson.Lock {
					switch kind {
					case "fair":
						opts = append(opts, redisson.Fair())
					case "fenced":
						opts = append(opts, redisson.Fenced())
					case "write":
						return c.NewRWLock("a", opts...).WLocker()
					case "read":
						return c.NewRWLock("a", opts...).RLocker()
					}
					return c.NewLock("a", opts...)
				})
			})
		})
	}
}

// acquired returns a hold of the lock, or ends the test.
func acquired(ctx context.Context, t *testing.T, l *redisson.Lock) *redisson.Hold {
	t.Helper()
	h, err := l.Acquire(ctx)
	rig.Must(t, err)
	return h
}

// trustedFor fails where a hold is trusted for longer than that from now.
func trustedFor(t *testing.T, h *redisson.Hold, most time.Duration) {
	t.Helper()
	if d := time.Until(h.TrustedUntil()); d <= 0 || d > most {
		t.Errorf("trusted for %v, want it to be more than 0 and at most %v", d, most)
	}
}

// A hold with a TTL of a second was trusted for the hour of a nested one, and renewed so seldom.
func TestAHoldOfASharedLockIsTrustedForItsOwnTTLBesideANestedOneOfAnHour(t *testing.T) {
	for _, unlocked := range []bool{false, true} {
		everyKind(t, func(t *testing.T, x *rig.Lab, of func(opts ...redisson.LockOption) *redisson.Lock) {
			outer := acquired(x.By("me"), t, of(redisson.TTL(time.Second)))
			nested := acquired(x.By("me"), t, of(redisson.TTL(time.Hour), redisson.NoWatchdog()))
			if unlocked {
				rig.Must(t, nested.Release())
			}
			for range 3 {
				trustedFor(t, outer, time.Second)
				virtual.Sleep(20 * time.Second)
				rig.Must(t, outer.Err())
			}
			x.Server.FlushAll()
			virtual.Sleep(time.Second)
			rig.WantIs(t, outer.Err(), relock.ErrLost)
			rig.WantIs(t, outer.Release(), relock.ErrLost)
			if !unlocked {
				rig.WantIs(t, nested.Release(), relock.ErrLost)
			}
		})
	}
}

// What is nested in a hold of a longer lease is granted the rest of that, and trusted for its own.
func TestAHoldOfASharedLockIsTrustedForItsOwnTTLBesideALongerOne(t *testing.T) {
	everyKind(t, func(t *testing.T, x *rig.Lab, of func(opts ...redisson.LockOption) *redisson.Lock) {
		long := acquired(x.By("me"), t, of(redisson.TTL(time.Hour)))
		short := acquired(x.By("me"), t, of(redisson.TTL(time.Second)))
		for range 100 {
			trustedFor(t, short, time.Second)
			trustedFor(t, long, time.Hour)
			virtual.Sleep(317 * time.Millisecond)
		}
		x.Server.FlushAll()
		virtual.Sleep(time.Second)
		rig.WantIs(t, short.Release(), relock.ErrLost)
		rig.WantIs(t, long.Release(), relock.ErrLost)
	})
}

// One renewal fails, and the next may not come after the end of the shortest lease.
func TestAFailedRenewalIsTriedAgainInTimeForTheShortestHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		c, link := linked(t, x)
		long := acquired(x.By("me"), t, c.NewLock("a", redisson.TTL(time.Hour)))
		short := acquired(x.By("me"), t, c.NewLock("a", redisson.TTL(time.Second)))
		fate(link, "renew", 1, redistest.CutBefore)
		virtual.Sleep(10 * time.Second)
		rig.Must(t, short.Release())
		rig.Must(t, long.Release())
	})
}
