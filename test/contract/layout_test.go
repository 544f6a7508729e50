package contract_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/lua"
)

// storeOther stores the lock "l" as clients of another layout might have. This client can read the kind, and
// that somebody holds or waits.
func storeOther(x *rig.Lab, kind, field string) {
	x.T.Helper()
	keys, ctx := key.For("relock", "l"), x.T.Context()
	rig.Must(x.T, x.Redis.Del(ctx, keys.Hash, keys.Queue).Err())
	rig.Must(x.T, x.Redis.HSet(ctx, keys.Hash, "kind", kind, "token", "1000", "w:somebody", "of a new form", "c:turn", "of a new form").Err())
	if field != "" {
		rig.Must(x.T, x.Redis.HSet(ctx, keys.Hash, field, "of a new form").Err())
	}
	rig.Must(x.T, x.Redis.ZAdd(ctx, keys.Queue, redis.Z{Score: 1, Member: "somebody"}).Err())
	rig.Must(x.T, x.Redis.PExpire(ctx, keys.Hash, time.Hour).Err())
	rig.Must(x.T, x.Redis.PExpire(ctx, keys.Queue, time.Hour).Err())
}

// wantOtherLayout fails unless err is an ErrKind that names both layouts.
func wantOtherLayout(t *testing.T, call string, err error, layout string) {
	t.Helper()
	rig.WantIs(t, err, relock.ErrKind)
	if err != nil && (!strings.Contains(err.Error(), "layout "+layout+" ") || !strings.Contains(err.Error(), "layout "+lua.Layout+";")) {
		t.Errorf("%s says %q, want both layouts, %s and %s", call, err, layout, lua.Layout)
	}
}

// The name is held, or waited for, by clients that store locks in another way.
// Fails when a call takes the lock, changes what the others have stored, or does not say why it is refused.
func TestANameInUseInAnotherLayoutIsRefusedByEveryCall(t *testing.T) {
	for kind, layout := range map[string]string{"plain.2": "2", "fair.2": "2", "rw.12": "12", "semaphore.2": "2", "plain": "0"} {
		for _, field := range []string{"holder", "crowd"} {
			t.Run(kind+" "+field, func(t *testing.T) {
				rig.Play(t, func(t *testing.T, x *rig.Lab) {
					storeOther(x, kind, field)
					before := x.Redis.HGetAll(t.Context(), key.For("relock", "l").Hash).Val()
					for call, run := range callsOnL(x) {
						wantOtherLayout(t, call, run(t.Context()), layout)
					}
					if after := x.Redis.HGetAll(t.Context(), key.For("relock", "l").Hash).Val(); !maps.Equal(before, after) {
						t.Errorf("stored are %v after the calls, and were %v", after, before)
					}
				})
			})
		}
	}
}

// callsOnL are calls that ask for the lock "l", or look at it.
func callsOnL(x *rig.Lab) map[string]func(context.Context) error {
	c := x.Client()
	l, rw := c.NewLock("l"), c.NewRWLock("l")
	return map[string]func(context.Context) error{
		"Lock":             c.NewLock("l").Lock,
		"Lock of an owner": c.NewLock("l", relock.Owner("me")).Lock,
		"Lock of a fair":   c.NewLock("l", relock.Fair()).Lock,
		"Lock that rests":  c.NewLock("l", relock.AtLeast(time.Minute)).Lock,
		"TryLock": func(ctx context.Context) error {
			_, err := c.NewLock("l").TryLock(ctx, 0)
			return err
		},
		"TryLock for some time": func(ctx context.Context) error {
			_, err := c.NewLock("l").TryLock(ctx, time.Second)
			return err
		},
		"RLock":               rw.RLock,
		"Lock for writing":    rw.Lock,
		"Lock of a semaphore": c.NewSemaphore("l", 2).Lock,
		"Info":                func(ctx context.Context) error { _, err := l.Info(ctx); return err },
		"Waiters":             func(ctx context.Context) error { _, err := l.Waiters(ctx); return err },
		"Waiters of a condition": func(ctx context.Context) error {
			_, err := l.NewCond("turn").Waiters(ctx)
			return err
		},
		"ForceUnlock": func(ctx context.Context) error { _, err := l.ForceUnlock(ctx); return err },
		"Locks": func(ctx context.Context) (last error) {
			for _, err := range c.Locks(ctx, "") {
				last = err
			}
			return last
		},
	}
}

// A client that has heard of itself before takes a shorter way into the queue.
// Fails when that way does not look at the kind: the next heartbeat is the first to be refused.
func TestANameInUseInAnotherLayoutIsRefusedToWhoHasWaitedBefore(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		before := x.Take(x.Lock("l"))
		waits := x.Begin(c.NewLock("l"))
		waits.Waits()
		rig.End(t, before)
		rig.End(t, waits.Holds())
		x.Take(x.Lock("l"))
		rig.Must(t, x.Redis.HSet(t.Context(), key.For("relock", "l").Hash, "kind", "plain.2").Err())
		began := time.Now()
		wantOtherLayout(t, "Lock", c.NewLock("l").Lock(t.Context()), "2")
		if took := time.Since(began); took != 0 {
			t.Errorf("refused after %v, want at once", took)
		}
	})
}

// The hash says that nobody waits, but the queue has a live entry.
func TestAQueueLeftInAnotherLayoutIsRefusedToo(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		storeOther(x, "plain.2", "")
		deadline := redis.Z{Score: -float64(time.Now().Add(time.Minute).UnixMilli()), Member: "-somebody"}
		rig.Must(t, x.Redis.ZAdd(t.Context(), key.For("relock", "l").Queue, deadline).Err())
		wantOtherLayout(t, "Lock", x.Lock("l").Lock(t.Context()), "2")
		virtual.Sleep(2 * time.Minute)
		x.Frees("l")
	})
}

// Nobody holds and nobody waits: the name is free, whoever had it before.
func TestANameThatIsFreeInAnotherLayoutIsTaken(t *testing.T) {
	for _, kind := range []string{"plain.2", "fair rw.2", "plain"} {
		t.Run(kind, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				keys := key.For("relock", "l")
				rig.Must(t, x.Redis.HSet(t.Context(), keys.Hash, "kind", kind, "token", "1000").Err())
				rig.Must(t, x.Redis.PExpire(t.Context(), keys.Hash, time.Minute).Err())
				l := x.Take(x.Lock("l"))
				if got := x.Redis.HGet(t.Context(), keys.Hash, "kind").Val(); got != rig.StoredKind("plain") {
					t.Errorf("the kind is %q, want %q", got, rig.StoredKind("plain"))
				}
				rig.End(t, l)
			})
		})
	}
}

// Clients of another layout have taken the name over: a lease was over, and Redis had dropped the hash.
// Fails when a client that held or waited before changes what they have stored, or does not say what happened.
func TestWhoHeldOrWaitedBeforeAnotherLayoutChangesNothing(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"plain": {relock.TTL(time.Second)}, "fair": {relock.TTL(time.Second), relock.Fair()}} {
		t.Run(name, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				a, b := x.Actor(), x.Actor()
				held := x.Take(a.NewLock("l", opts...))
				waiter := x.Begin(b.NewLock("l", opts...))
				storeOther(x, "plain.2", "holder")
				before := x.Redis.HGetAll(t.Context(), key.For("relock", "l").Hash).Val()
				<-waiter.Done
				wantOtherLayout(t, "the waiter", waiter.Err, "2")
				<-held.Lost()
				rig.WantIs(t, held.Release(), relock.ErrLost)
				virtual.Sleep(10 * time.Second) // what is still sent in the background
				if after := x.Redis.HGetAll(t.Context(), key.For("relock", "l").Hash).Val(); !maps.Equal(before, after) {
					t.Errorf("stored are %v, and were %v", after, before)
				}
			})
		})
	}
}
