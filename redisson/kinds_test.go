package redisson_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// exclusive are the options of the kinds of lock that know no readers.
var exclusive = map[string][]redisson.LockOption{"plain": nil, "fair": {redisson.Fair()}, "fenced": {redisson.Fenced()}}

// TestAnOwnerThatReadsGetsNoLockOfAnotherKind, and what it says as it gives that up ends no
// read hold, neither its own nor another's.
// Fails when an owner has one field for all kinds, or the kind is looked at only where it
// has none.
func TestAnOwnerThatReadsGetsNoLockOfAnotherKind(t *testing.T) {
	for name, opts := range exclusive {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, me := client(t, x), x.By("me")
				mine, err := c.NewRWLock("a").RLocker().Acquire(me)
				rig.Must(t, err)
				other, err := client(t, x).NewRWLock("a").RLocker().Acquire(t.Context())
				rig.Must(t, err)
				ctx, cancel := context.WithTimeout(me, time.Minute)
				defer cancel()
				rig.WantIs(t, c.NewLock("a", opts...).Lock(ctx), relock.ErrKind)
				rig.WantIs(t, c.NewLock("a", opts...).Lock(mine.Context(ctx)), relock.ErrKind)
				virtual.Sleep(time.Minute)
				if ok, err := client(t, x).NewRWLock("a").TryLock(t.Context(), 0); ok || err != nil {
					t.Errorf("a writer beside two readers: %v, %v", ok, err)
				}
				rig.Must(t, mine.Release())
				rig.Must(t, other.Release())
				bare(t, x)
			})
		})
	}
}

// TestAFieldInAReadWriteLockIsNoHoldOfAnotherKind, also where it has the owner's name.
// Fails when the kind is looked at only where the owner has no field.
func TestAFieldInAReadWriteLockIsNoHoldOfAnotherKind(t *testing.T) {
	for name, opts := range exclusive {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				l, me := client(t, x).NewLock("a", opts...), x.By("me")
				h, err := l.Acquire(me)
				rig.Must(t, err)
				rig.Must(t, x.Redis.HSet(t.Context(), "a", "mode", "read").Err())
				rig.WantIs(t, l.Lock(me), relock.ErrKind)
				if n := x.Redis.HGet(t.Context(), "a", h.Owner()).Val(); n != "1" {
					t.Errorf("the field says %q by now", n)
				}
				rig.Must(t, h.Release())
				x.Redis.Del(t.Context(), "redisson_lock_token:{a}")
			})
		})
	}
}

// TestAnUnlockAfterALossEndsNoLockOfAnotherKind that its owner has got meanwhile.
// Fails when an owner has one field for all kinds.
func TestAnUnlockAfterALossEndsNoLockOfAnotherKind(t *testing.T) {
	for name, opts := range exclusive {
		for _, first := range []string{"read", name} {
			t.Run(name+" after "+first, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					short := []redisson.LockOption{redisson.TTL(time.Second), redisson.NoWatchdog()}
					c, me := client(t, x), x.By("me")
					lost, next := c.NewRWLock("a", short...).RLocker(), c.NewLock("a", opts...)
					if first != "read" {
						lost, next = c.NewLock("a", append(short, opts...)...), c.NewRWLock("a").RLocker()
					}
					rig.Must(t, lost.Lock(me))
					virtual.Sleep(2 * time.Second)
					h, err := next.Acquire(me)
					rig.Must(t, err)
					rig.WantIs(t, lost.Unlock(), relock.ErrLost)
					virtual.Sleep(time.Minute)
					rig.Must(t, h.Err())
					rig.Must(t, h.Release())
					x.Redis.Del(t.Context(), "redisson_lock_token:{a}")
				})
			})
		}
	}
}

// TestAnOwnerHoldsTheKindsOfOneNameApart: they share a hash, and each would count alone.
// Fails when an owner has one field for all kinds.
func TestAnOwnerHoldsTheKindsOfOneNameApart(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, me := client(t, x), x.By("me")
		for held, opts := range exclusive {
			h, err := c.NewLock(held, opts...).Acquire(me)
			rig.Must(t, err)
			for name, opts := range exclusive {
				if name == held {
					continue
				}
				l := c.NewLock(held, opts...)
				if ok, err := l.TryLock(me, 0); ok || err != nil {
					t.Errorf("a %s lock beside a %s one: %v, %v", name, held, ok, err)
				}
				ctx, cancel := context.WithTimeout(h.Context(me), time.Minute)
				rig.WantIs(t, l.Lock(ctx), relock.ErrKind)
				cancel()
			}
			rig.Must(t, h.Release())
		}
		x.Redis.Del(t.Context(), "redisson_lock_token:{fenced}")
		bare(t, x)
	})
}
