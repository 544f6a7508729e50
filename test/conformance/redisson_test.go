package conformance_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The ways in which Redisson's fair and read/write locks went wrong, as far as
// its issues and scripts tell, each as a test that would catch it here.

var fairly = []relock.LockOption{relock.Fair(), relock.TTL(3 * time.Second)}

// There, waiters behind a dead head poll in turn and spin until its timeout.
func TestRedissonDeadHeadSpins(t *testing.T) {
	rig.Run(t, func(t *testing.T, b *rig.Lab) {
		dead, live := redistest.NewLink(t, b.Server.Dial), redistest.NewLink(t, b.Server.Dial)
		holder := b.Client().NewLock("x", fairly...)
		rig.Must(t, holder.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = b.Through(dead).NewLock("x", fairly...).Lock(ctx) }()
		virtual.Sleep(time.Second)
		heir := b.Through(live).NewLock("x", fairly...)
		held := make(chan time.Time, 1)
		go func() { _ = heir.Lock(t.Context()); held <- time.Now() }()
		virtual.Sleep(time.Second)
		heal := dead.Cut()
		defer func() { heal(); virtual.Sleep(time.Minute) }() // go-redis' dials end
		virtual.Sleep(time.Millisecond)
		before := live.Commands()["evalsha"] + live.Commands()["eval"]
		released := time.Now()
		rig.Must(t, holder.Unlock())
		if gap := (<-held).Sub(released); gap > 50*time.Millisecond {
			t.Errorf("%v until the live waiter had the lock, want at once: Redis can tell that the head is gone", gap)
		}
		if n := live.Commands()["evalsha"] + live.Commands()["eval"] - before; n > 1 {
			t.Errorf("the live waiter sent %d commands for it, want none but a heartbeat", n)
		}
		rig.Must(t, heir.Unlock())
	})
}

// There, the queue's timeouts are computed from clients' clocks. Here a client's
// clock is in no message, and a waiter that keeps its entry alive stays.
func TestRedissonEvictsByClockSkew(t *testing.T) {
	rig.Run(t, func(t *testing.T, b *rig.Lab) {
		holder := b.Client().NewLock("x", fairly...)
		rig.Must(t, holder.Lock(t.Context()))
		waiter := b.Client().NewLock("x", fairly...)
		done := make(chan error, 1)
		go func() { done <- waiter.Lock(t.Context()) }()
		virtual.Sleep(time.Second)
		before, err := holder.Waiters(t.Context())
		rig.Must(t, err)
		virtual.Sleep(10 * time.Minute) // 200 times its entry's lease
		after, err := holder.Waiters(t.Context())
		rig.Must(t, err)
		if len(before) != 1 || len(after) != 1 || before[0].Owner != after[0].Owner || after[0].Age < 10*time.Minute {
			t.Errorf("waiters %v, later %v", before, after)
		}
		rig.Must(t, holder.Unlock())
		rig.Must(t, <-done)
		rig.Must(t, waiter.Unlock())
	})
}

// There, a cancelled wait leaves its thread in the queue, and the lock idle
// until that entry times out.
func TestRedissonLeavesAGhostOfACancelledWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, b *rig.Lab) {
		holder, other := b.Client().NewLock("x", fairly...), b.Client().NewLock("x", fairly...)
		rig.Must(t, holder.Lock(t.Context()))
		if got, err := other.TryLock(t.Context(), 100*time.Millisecond); got || err != nil {
			t.Fatal(got, err)
		}
		virtual.Sleep(10 * time.Millisecond)
		if left, err := holder.Waiters(t.Context()); len(left) != 0 || err != nil {
			t.Errorf("left in the queue: %v, %v", left, err)
		}
		rig.Must(t, holder.Unlock())
		if got, err := b.Client().NewLock("x", fairly...).TryLock(t.Context(), 0); !got || err != nil {
			t.Errorf("TryLock of the free lock: %v, %v", got, err)
		}
	})
}

// There, each read hold is a key of its own, with a TTL of its own.
func TestRedissonKeepsAKeyForEachReadHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, b *rig.Lab) {
		c := b.Client()
		for range 50 {
			rig.Must(t, c.NewRWLock("x").RLock(t.Context()))
		}
		if keys := b.Server.Direct().Keys(); len(keys) > 2 {
			t.Errorf("50 readers have %d keys, want the lock's two: %s", len(keys), strings.Join(keys, " "))
		}
	})
}

// There, unlocking a read hold under a held write lock ends the watchdog of the
// write lock.
func TestRedissonNestedReadUnlockEndsTheWriteLocksWatchdog(t *testing.T) {
	rig.Run(t, func(t *testing.T, b *rig.Lab) {
		const ttl = 3 * time.Second
		ctx := relock.WithNewOwner(t.Context())
		rw := b.Client().NewRWLock("x", relock.TTL(ttl))
		rig.Must(t, rw.Lock(ctx))
		rig.Must(t, rw.RLock(ctx))
		rig.Must(t, rw.RUnlock())
		virtual.Sleep(3*ttl + time.Millisecond)
		if n := rw.WLocker().HoldCount(); n != 1 {
			t.Errorf("%d live write holds after 3 TTLs, want 1", n)
		}
		if got, err := b.Client().NewRWLock("x").TryRLock(t.Context(), 0); got || err != nil {
			t.Errorf("a reader beside the writer: %v, %v", got, err)
		}
		rig.Must(t, rw.Unlock())
	})
}

// There, a downgrade publishes nothing, and waiting readers sleep on.
func TestRedissonDowngradeWakesNobody(t *testing.T) {
	rig.Run(t, func(t *testing.T, b *rig.Lab) {
		ctx := relock.WithNewOwner(t.Context())
		rw, reader := b.Client().NewRWLock("x"), b.Client().NewRWLock("x")
		rig.Must(t, rw.Lock(ctx))
		held := make(chan time.Time, 1)
		go func() { _ = reader.RLock(t.Context()); held <- time.Now() }()
		virtual.Sleep(time.Second)
		began := time.Now()
		rig.Must(t, rw.Downgrade(ctx))
		if gap := (<-held).Sub(began); gap > 50*time.Millisecond {
			t.Errorf("the waiting reader got in %v later, want at once", gap)
		}
		rig.Must(t, reader.RUnlock())
		rig.Must(t, rw.RUnlock())
	})
}

// There, re-entering the write lock adds its TTL to what is left of the lease.
func TestRedissonWriteLockAddsUpItsTTL(t *testing.T) {
	rig.Run(t, func(t *testing.T, b *rig.Lab) {
		const ttl = 3 * time.Second
		ctx := relock.WithNewOwner(t.Context())
		rw := b.Client().NewRWLock("x", relock.TTL(ttl))
		for range 5 {
			rig.Must(t, rw.Lock(ctx))
		}
		info, err := rw.WLocker().Info(ctx)
		rig.Must(t, err)
		if len(info.Holders) != 1 || info.Holders[0].TTL > ttl {
			t.Errorf("holders %+v, want one with a lease of at most %v", info.Holders, ttl)
		}
		for range 5 {
			rig.Must(t, rw.Unlock())
		}
	})
}
