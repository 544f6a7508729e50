package cost_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

func benchClient(b *testing.B) *relock.Client {
	rdb := redis.NewClient(&redis.Options{Addr: redistest.Real(b).Addr(), ContextTimeoutEnabled: true})
	c, err := relock.New(rdb)
	rig.Must(b, err)
	b.Cleanup(func() { _, _ = c.Close(), rdb.Close() })
	return c
}

func benchPair(b *testing.B, l *relock.Lock, ctx context.Context) { //nolint:revive // b comes first in a helper
	if err := l.Lock(ctx); err != nil {
		b.Error(err)
	}
	if err := l.Unlock(); err != nil {
		b.Error(err)
	}
}

// A pair of Lock and Unlock of a lock that nobody else wants.
func BenchmarkPair(b *testing.B) {
	c := benchClient(b)
	l := c.NewLock("one")
	b.Run("1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			benchPair(b, l, context.Background())
		}
	})
	b.Run("1, of a context that can end", func(b *testing.B) { // its first try is watched from another goroutine
		b.ReportAllocs()
		for b.Loop() {
			benchPair(b, l, b.Context())
		}
	})
	b.Run("256", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(128)
		var names atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			l := c.NewLock("of" + strconv.FormatInt(names.Add(1), 10))
			for pb.Next() {
				benchPair(b, l, context.Background())
			}
		})
	})
}

// A pair of a lock that its client keeps in between, beside a mutex.
func BenchmarkStickyPair(b *testing.B) {
	c := benchClient(b)
	b.Run("sticky", func(b *testing.B) {
		l := c.NewLock("kept", relock.Sticky(10*time.Second))
		benchPair(b, l, context.Background()) // the first grant of a name is not kept
		b.ReportAllocs()
		for b.Loop() {
			benchPair(b, l, context.Background())
		}
	})
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		for b.Loop() {
			mu.Lock()
			mu.Unlock() //nolint:staticcheck // measured
		}
	})
}

// What there is without a library: SET NX, and a script that compares and deletes.
func BenchmarkPairByHand(b *testing.B) {
	rdb := redistest.Real(b).Client(b)
	release := redis.NewScript("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")
	b.ReportAllocs()
	for b.Loop() {
		rig.Must(b, rdb.SetNX(b.Context(), "one", "random", 30*time.Second).Err())
		rig.Must(b, release.Run(b.Context(), rdb, []string{"one"}, "random").Err())
	}
}

func BenchmarkNestedPair(b *testing.B) {
	c := benchClient(b)
	ctx := relock.WithOwner(context.Background(), "me")
	for name, opts := range map[string][]relock.LockOption{"redis": nil, "local": {relock.LocalReentry()}} {
		b.Run(name, func(b *testing.B) {
			l := c.NewLock(name, opts...)
			rig.Must(b, l.Lock(ctx))
			b.ReportAllocs()
			for b.Loop() {
				benchPair(b, l, ctx)
			}
			rig.Must(b, l.Unlock())
		})
	}
}
