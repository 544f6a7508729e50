package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
)

// Waits asserts who stands in Redis' queue, once everything has come to rest.
func (x *Lab) Waits(l *relock.Lock, want ...string) {
	x.T.Helper()
	synctest.Wait()
	got := x.Waiters(l)
	if len(got) != len(want) {
		x.T.Errorf("%d waiters %v, want %v", len(got), got, want)
		return
	}
	for i, w := range got {
		if w.Owner != want[i] {
			x.T.Errorf("waiter %d is %q, want %q", i, w.Owner, want[i])
		}
	}
}

// Waiters are those in Redis' queue.
func (x *Lab) Waiters(l *relock.Lock) []relock.Waiter {
	x.T.Helper()
	got, err := l.Waiters(x.T.Context())
	Must(x.T, err)
	return got
}

// Holders asserts who holds, and how often.
func (x *Lab) Holders(l *relock.Lock, owner string, holds int) {
	x.T.Helper()
	info := x.Info(l)
	switch {
	case holds == 0:
		if len(info.Holders) != 0 {
			x.T.Errorf("held by %v, want a free lock", info.Holders)
		}
	case len(info.Holders) != 1 || info.Holders[0].Owner != owner || info.Holders[0].Holds != holds:
		x.T.Errorf("holders %v, want %q with %d", info.Holders, owner, holds)
	}
}

// Refuses asserts that nobody else gets the lock now, and that asking leaves no trace.
func (x *Lab) Refuses(l *relock.Lock) {
	x.T.Helper()
	before := len(x.Waiters(l))
	if got, err := l.TryLock(x.T.Context(), 0); got || err != nil {
		x.T.Errorf("TryLock = %v, %v, want false, nil", got, err)
	}
	if after := len(x.Waiters(l)); after != before {
		x.T.Errorf("%d waiters after TryLock, %d before", after, before)
	}
}

// Frees asserts that another client gets the lock at once, and gives it back.
func (x *Lab) Frees(name string) {
	x.T.Helper()
	l := x.Lock(name)
	if got, err := l.TryLock(x.T.Context(), 0); !got || err != nil {
		x.T.Errorf("TryLock = %v, %v, want true, nil", got, err)
		return
	}
	Must(x.T, l.Unlock())
}

// Free fails the test unless Redis has neither a holder nor a waiter of l.
func (x *Lab) Free(l *relock.Lock) {
	x.T.Helper()
	if info := x.Info(l); len(info.Holders) > 0 || info.Waiters > 0 {
		x.T.Fatalf("redis has %+v, want nobody", info)
	}
}

// Info is what Redis says of l.
func (x *Lab) Info(l *relock.Lock) relock.Info {
	x.T.Helper()
	info, err := l.Info(x.T.Context())
	Must(x.T, err)
	return info
}

// HoldsOf is the number of holds that Redis counts.
func (x *Lab) HoldsOf(l *relock.Lock) (n int) {
	x.T.Helper()
	for _, h := range x.Info(l).Holders {
		n += h.Holds
	}
	return n
}

// Keep copies a lock's keys. restore puts the copy back, like a failover that lost all writes since.
func (x *Lab) Keep(name string) (restore func()) {
	x.T.Helper()
	keys, ctx := key.For("relock", name), x.T.Context()
	fields, members := x.Redis.HGetAll(ctx, keys.Hash).Val(), x.Redis.ZRangeWithScores(ctx, keys.Queue, 0, -1).Val()
	return func() {
		x.Redis.Del(ctx, keys.Hash, keys.Queue)
		if len(fields) > 0 {
			x.Redis.HSet(ctx, keys.Hash, fields)
			x.Redis.PExpire(ctx, keys.Hash, time.Hour)
		}
		if len(members) > 0 {
			x.Redis.ZAdd(ctx, keys.Queue, slices.Clone(members)...)
			x.Redis.PExpire(ctx, keys.Queue, time.Hour)
		}
	}
}

// Describe returns what Redis knows of a lock, in short: "free", or the owner's holds and the number of waiters.
func Describe(t testing.TB, l *relock.Lock) string {
	t.Helper()
	info, err := l.Info(context.WithoutCancel(t.Context()))
	Must(t, err)
	var b strings.Builder
	for _, h := range info.Holders {
		fmt.Fprintf(&b, "%s x%d ", h.Owner, h.Holds)
	}
	if len(info.Holders) == 0 {
		b.WriteString("free ")
	}
	fmt.Fprintf(&b, "waiting %d", info.Waiters)
	return b.String()
}

// WantState fails unless Redis knows of a lock what want describes.
func WantState(t testing.TB, l *relock.Lock, when, want string) {
	t.Helper()
	if got := Describe(t, l); got != want {
		t.Errorf("%s: redis has %q, want %q", when, got, want)
	}
}

// WantBare fails unless only the lock's hash is left, without anything of an owner or a waiter in it.
func WantBare(t testing.TB, rdb redis.UniversalClient, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	keys := key.For("relock", name)
	fields, err := rdb.HGetAll(ctx, keys.Hash).Result()
	Must(t, err)
	for field, value := range fields {
		if !slices.Contains([]string{"kind", "token", "ended"}, field) && field[:2] != "e:" && field[:2] != "n:" && (field != "crowd" || value != "0 +") {
			t.Errorf("lock %q: field %s = %q is left", name, field, value)
		}
	}
	if n := rdb.ZCard(ctx, keys.Queue).Val(); n != 0 {
		t.Errorf("lock %q: %d members are left in its queue", name, n)
	}
}

// WantGone fails unless the client keeps nothing any more.
func WantGone(t testing.TB, clients ...*relock.Client) {
	t.Helper()
	for _, c := range clients {
		if left := Remains(c); left != "" {
			t.Errorf("a client still has %s", left)
		}
	}
}
