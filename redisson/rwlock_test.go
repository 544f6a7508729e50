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

// bare fails unless nothing is left in Redis but the given keys.
func bare(t *testing.T, x *rig.Lab, but ...string) {
	t.Helper()
	for _, key := range x.Redis.Keys(t.Context(), "*").Val() {
		known := false
		for _, b := range but {
			known = known || b == key
		}
		if !known {
			t.Errorf("%q is left in Redis", key)
		}
	}
}

func TestReadersShareAndEachHoldHasItsKey(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, b := client(t, x).NewRWLock("a"), client(t, x).NewRWLock("a")
		me := x.By("me")
		rig.Must(t, a.RLock(me))
		rig.Must(t, a.RLock(me))
		h, err := b.RLocker().Acquire(t.Context())
		rig.Must(t, err)
		if n := len(x.Redis.Keys(t.Context(), "{a}:*:rwlock_timeout:*").Val()); n != 3 {
			t.Errorf("%d keys of holds, want 3", n)
		}
		if ok, err := b.TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("a writer beside readers: %v, %v", ok, err)
		}
		virtual.Sleep(5 * time.Minute)
		rig.Must(t, h.Err())
		rig.Must(t, a.RUnlock())
		if n := len(x.Redis.Keys(t.Context(), "{a}:*:rwlock_timeout:*").Val()); n != 2 {
			t.Errorf("%d keys of holds, want 2", n)
		}
		rig.Must(t, a.RUnlock())
		rig.Must(t, h.Release())
		rig.Must(t, b.Lock(t.Context()))
		rig.Must(t, b.Unlock())
		bare(t, x)
	})
}

func TestAWriterReadsAndDowngradesWithoutAGap(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, b := client(t, x).NewRWLock("a"), client(t, x).NewRWLock("a")
		for _, me := range []context.Context{x.By("me"), t.Context()} {
			downgrades(me, t, a, b)
		}
		rig.WantIs(t, a.Downgrade(t.Context()), relock.ErrNotHeld)
		bare(t, x)
	})
}

// TestAWriterUnderItsOwnReadHoldOfRedissonIsTold by its context, though it names no owner: it would wait for itself.
func TestAWriterUnderItsOwnReadHoldOfRedissonIsTold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw := client(t, x).NewRWLock("a")
		rig.Must(t, rw.RLocker().Do(t.Context(), func(ctx context.Context) error {
			rig.WantIs(t, rw.Lock(ctx), relock.ErrUpgrade)
			return ctx.Err()
		}))
		bare(t, x)
	})
}

// The context of a nested call descends from the owner's read hold, and the owner writes further out.
// Fails when it is told that it only reads.
func TestAWriterThatReadsWritesAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, me := client(t, x).NewRWLock("a"), x.By("me")
		write := func(ctx context.Context) error {
			return rw.WLocker().Do(ctx, func(ctx context.Context) error { return ctx.Err() })
		}
		read := func(ctx context.Context) error { return rw.RLocker().Do(ctx, write) }
		rig.Must(t, rw.WLocker().Do(me, read))
		rig.Must(t, rw.Lock(me)) // no context knows of this hold
		rig.Must(t, read(me))
		rig.Must(t, rw.Unlock())
		rig.WantIs(t, read(me), relock.ErrUpgrade)
		bare(t, x)
	})
}

// downgrades has a's writer go on as a reader, beside one of b's.
func downgrades(me context.Context, t *testing.T, a, b *redisson.RWLock) {
	t.Helper()
	rig.Must(t, a.Lock(me))
	reader := rig.Beside(func() error { return b.RLock(t.Context()) })
	virtual.Sleep(time.Second)
	reader.Pending(t, "a reader beside a writer")
	rig.Must(t, a.Downgrade(me))
	rig.Must(t, rig.Returned(t, reader))
	if ok, err := b.TryLock(t.Context(), 0); ok || err != nil {
		t.Errorf("a writer beside who has downgraded: %v, %v", ok, err)
	}
	if _, named := relock.OwnerFrom(me); named {
		rig.WantIs(t, a.Lock(me), relock.ErrUpgrade)
	}
	rig.Must(t, a.RUnlock())
	rig.Must(t, b.RUnlock())
}

// TestAWriterThatUnlocksLetsEveryWaitingReaderIn, also where it goes on reading itself, or an operator ends its hold.
// All of them wait in one client, which has one message for all.
// Fails when an unlock wakes one waiter of each client, as that of an exclusive lock does.
func TestAWriterThatUnlocksLetsEveryWaitingReaderIn(t *testing.T) {
	remove := func(l *redisson.Lock, ctx context.Context) (bool, error) {
		info, err := l.Info(ctx)
		if err != nil || len(info.Holders) != 1 {
			return false, err
		}
		return l.ForceUnlockHolder(ctx, info.Holders[0])
	}
	for name, force := range map[string]func(l *redisson.Lock, ctx context.Context) (bool, error){
		"reads as well": nil, "writes only": nil, "is forced": (*redisson.Lock).ForceUnlock, "is removed": remove,
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				a, b := client(t, x).NewRWLock("a"), client(t, x).NewRWLock("a")
				me, reads := x.By("me"), name == "reads as well"
				rig.Must(t, a.Lock(me))
				if reads {
					rig.Must(t, a.RLock(me))
				}
				var readers []rig.Going
				for range 3 {
					readers = append(readers, rig.Beside(func() error { return b.RLock(t.Context()) }))
				}
				virtual.Sleep(time.Second)
				for _, r := range readers {
					r.Pending(t, "a reader beside a writer")
				}
				if force == nil {
					rig.Must(t, a.Unlock())
				} else if ok, err := force(b.WLocker(), t.Context()); !ok || err != nil {
					t.Fatalf("the writer was forced: %v, %v", ok, err)
				}
				for _, r := range readers {
					rig.Must(t, rig.Returned(t, r))
					rig.Must(t, b.RUnlock())
				}
				if force != nil {
					rig.WantIs(t, a.Unlock(), relock.ErrLost)
				}
				if reads {
					rig.Must(t, a.RUnlock())
				}
				bare(t, x)
			})
		})
	}
}

// TestTryRLockWaitsForAsLongAsItWasTold, and is let in by a writer that unlocks before that.
// Fails when TryRLock waits for longer, or makes one attempt.
func TestTryRLockWaitsForAsLongAsItWasTold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, b := client(t, x).NewRWLock("a"), client(t, x).NewRWLock("a")
		rig.Must(t, a.Lock(t.Context()))
		began := x.Now()
		if ok, err := b.TryRLock(t.Context(), 3*time.Second); ok || err != nil {
			t.Errorf("TryRLock beside a writer = %v, %v, want false", ok, err)
		}
		if took := x.Now() - began; took != 3*time.Second {
			t.Errorf("it waited %v, want 3 s", took)
		}
		unlocks := rig.Beside(func() error { virtual.Sleep(2 * time.Second); return a.Unlock() })
		if ok, err := b.TryRLock(t.Context(), 3*time.Second); !ok || err != nil {
			t.Errorf("TryRLock as the writer unlocks = %v, %v, want true", ok, err)
		}
		rig.Must(t, <-unlocks)
		rig.Must(t, b.RUnlock())
		bare(t, x)
	})
}

// TestShortReadsDoNotCutAWritersLease, as they do in Redisson.
func TestShortReadsDoNotCutAWritersLease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		long := c.NewRWLock("a", redisson.TTL(time.Minute), redisson.NoWatchdog())
		short := c.NewRWLock("a", redisson.TTL(time.Second), redisson.NoWatchdog())
		me := x.By("me")
		rig.Must(t, long.Lock(me))
		rig.Must(t, short.RLock(me))
		rig.Must(t, short.RLock(me))
		rig.Must(t, short.RUnlock())
		if left := x.Redis.PTTL(t.Context(), "a").Val(); left < 50*time.Second {
			t.Errorf("the writer's lease is %v", left)
		}
		virtual.Sleep(30 * time.Second)
		if ok, err := client(t, x).NewRWLock("a").TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("another writer: %v, %v", ok, err)
		}
		rig.WantIs(t, short.RUnlock(), relock.ErrLost)
		rig.Must(t, long.Unlock())
	})
}

// TestALongLeaseSurvivesTheUnlockOfAShorterOne: both are of one reader, which has a key for
// each of its holds, and the one that goes is not the one that was made for it.
func TestALongLeaseSurvivesTheUnlockOfAShorterOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x, redisson.WatchdogTimeout(time.Minute))
		short := c.NewRWLock("a", redisson.TTL(time.Second), redisson.NoWatchdog()).RLocker()
		long := c.NewRWLock("a", redisson.TTL(time.Minute), redisson.NoWatchdog()).RLocker()
		me := x.By("me")
		rig.Must(t, short.Lock(me))
		h, err := long.Acquire(me)
		rig.Must(t, err)
		rig.Must(t, short.Unlock())
		other := client(t, x).NewRWLock("a")
		rig.Must(t, other.RLock(t.Context()))
		rig.Must(t, other.RUnlock()) // sets the hash's life to that of the longest key
		virtual.Sleep(50 * time.Second)
		rig.Must(t, h.Err())
		if ok, err := other.TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("a writer beside a hold that is trusted: %v, %v", ok, err)
		}
		rig.Must(t, h.Release())
	})
}

func TestOneNameIsOfOneKind(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l, rw := c.NewLock("a"), c.NewRWLock("a")
		rig.Must(t, l.Lock(ctx))
		rig.WantIs(t, rw.Lock(ctx), relock.ErrKind)
		rig.WantIs(t, rw.RLock(ctx), relock.ErrKind)
		rig.Must(t, l.Unlock())
		rig.Must(t, rw.RLock(ctx))
		rig.WantIs(t, l.Lock(ctx), relock.ErrKind)
		rig.WantIs(t, c.NewLock("a", redisson.Fair()).Lock(ctx), relock.ErrKind)
		rig.Must(t, rw.RUnlock())
		bare(t, x)
	})
}

func TestTokensGrowFromGrantToGrant(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := client(t, x).NewLock("a", redisson.Fenced())
		var last int64
		for range 3 {
			rig.Must(t, l.Do(x.By("me"), func(ctx context.Context) error {
				if l.Token() <= last {
					t.Errorf("token %d after %d", l.Token(), last)
				}
				last = l.Token()
				nested, err := l.Acquire(ctx)
				rig.Must(t, err)
				if nested.Token() != last {
					t.Errorf("a nested hold has token %d, its outer %d", nested.Token(), last)
				}
				return nested.Release()
			}))
		}
		if got := x.Redis.Get(t.Context(), "redisson_lock_token:{a}").Val(); got != "3" {
			t.Errorf("the counter is %s", got)
		}
		if left := x.Server.Direct().TTL("redisson_lock_token:{a}"); left != 0 {
			t.Errorf("the counter expires in %v: tokens would begin again", left)
		}
		x.Redis.Del(t.Context(), "redisson_lock_token:{a}")
	})
}
