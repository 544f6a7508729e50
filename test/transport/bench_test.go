package transport_test

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/transport"
)

func BenchmarkDo(b *testing.B) {
	addr := redistest.Real(b).Addr()
	cancellable, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, row := range []struct {
		name string
		ctx  context.Context
	}{
		{"background", context.Background()},
		{"cancellable", cancellable},
	} {
		b.Run(row.name, func(b *testing.B) {
			tr := newTransport(b, realClient(b, &redis.Options{Addr: addr}))
			c := call("k")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tr.Do(row.ctx, 10*time.Second, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEvalSha(b *testing.B) {
	rdb := realClient(b, &redis.Options{Addr: redistest.Real(b).Addr()})
	if err := rdb.ScriptLoad(context.Background(), incr.Source).Err(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := rdb.EvalSha(context.Background(), incr.SHA, []string{"k"}, "x").Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDoAll(b *testing.B) {
	addr := redistest.Real(b).Addr()
	for _, n := range []int{1, 16, 128} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			tr := newTransport(b, realClient(b, &redis.Options{Addr: addr}))
			calls := make([]transport.Call, n)
			for i := range calls {
				calls[i] = call("k")
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range tr.DoAll(context.Background(), 10*time.Second, calls) {
					if r.Err != nil {
						b.Fatal(r.Err)
					}
				}
			}
		})
	}
}

// Calls of many goroutines at once, without and with a context to watch.
func BenchmarkDoConcurrent(b *testing.B) {
	rdb := realClient(b, &redis.Options{Addr: redistest.Real(b).Addr(), ContextTimeoutEnabled: true})
	cancellable, cancel := context.WithCancel(b.Context())
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": cancellable} {
		for _, n := range []int{1, 16, 256, 1024} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				tr := newTransport(b, rdb)
				b.ReportAllocs()
				b.SetParallelism(max(n/runtime.GOMAXPROCS(0), 1))
				if n == 1 {
					for b.Loop() {
						benchDo(ctx, b, tr, "k")
					}
					return
				}
				var keys atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					key := "k" + strconv.FormatInt(keys.Add(1), 10)
					for pb.Next() {
						benchDo(ctx, b, tr, key)
					}
				})
			})
		}
	}
}

func benchDo(ctx context.Context, b *testing.B, tr *transport.Transport, key string) {
	if _, err := tr.Do(ctx, 10*time.Second, call(key)); err != nil {
		b.Error(err)
	}
}

// Calls of many goroutines at once on a client that has no stream: each call, or its batch, needs a goroutine that
// sends it, because the callers watch a timeout.
func BenchmarkDoPooled(b *testing.B) {
	rdb := wrapped{realClient(b, &redis.Options{Addr: redistest.Real(b).Addr()})}
	for _, n := range []int{1, 16, 256} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			tr := newTransport(b, rdb)
			b.ReportAllocs()
			if n == 1 {
				for b.Loop() {
					benchDo(context.Background(), b, tr, "k")
				}
				return
			}
			b.SetParallelism(max(n/runtime.GOMAXPROCS(0), 1))
			var keys atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				key := "k" + strconv.FormatInt(keys.Add(1), 10)
				for pb.Next() {
					benchDo(context.Background(), b, tr, key)
				}
			})
		})
	}
}
