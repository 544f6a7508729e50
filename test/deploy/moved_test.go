package deploy_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// An anyLimiter limits nothing. The library uses only the pool of a client that has one.
type anyLimiter struct{}

func (anyLimiter) Allow() error       { return nil }
func (anyLimiter) ReportResult(error) {}

// An address moves to the promoted replica. The old primary is cut off from it, and refuses writes
// with NOREPLICAS, as docs/operations.md has it set up. No connection breaks.
// Fails when a hold is lost, a release is not confirmed or a waiter starves, since calls stay on
// connections to the old primary.
func TestLocksFollowAnAddressThatLeavesAPrimaryWithoutReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		locks int
		mod   func(*redis.Options)
	}{
		"one hold":                {1, func(*redis.Options) {}},
		"several holds":           {3, func(*redis.Options) {}},
		"a client with a limiter": {1, func(o *redis.Options) { o.Limiter = anyLimiter{} }},
		"and several holds":       {3, func(o *redis.Options) { o.Limiter = anyLimiter{} }},
		"a client with two pools": {3, func(o *redis.Options) { o.PipelinePoolSize = 10 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			var moved atomic.Bool
			rdb := p.primary.Client(t, func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if moved.Load() {
						return p.replica.Dial(ctx, network, addr)
					}
					return p.primary.Dial(ctx, network, addr)
				}
				o.MinIdleConns, o.PoolSize = 20, 20
				c.mod(o)
			})
			client, err := relock.New(rdb)
			rig.Must(t, err)
			defer func() { _ = client.Close() }()
			other, err := relock.New(rdb)
			rig.Must(t, err)
			defer func() { _ = other.Close() }()
			holds := make([]*relock.Hold, c.locks)
			for i := range holds {
				holds[i], err = client.NewLock(string(rune('a'+i)), relock.TTL(3*time.Second)).Acquire(t.Context())
				rig.Must(t, err)
			}
			waiter := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				waiter <- other.NewLock("a", relock.TTL(3*time.Second)).Lock(ctx)
			}()
			p.eventually("idle connections", func() bool { return rdb.PoolStats().IdleConns >= 10 })
			p.eventually("a waiter", func() bool {
				info, err := client.NewLock("a").Info(t.Context())
				return err == nil && info.Waiters == 1
			})
			p.follows()
			p.promote()
			rig.Must(t, p.primary.Client(t).ConfigSet(t.Context(), "min-replicas-to-write", "2").Err())
			moved.Store(true)
			for _, h := range holds {
				until := h.TrustedUntil()
				p.eventually("a renewal", func() bool {
					return h.Err() != nil || h.TrustedUntil().After(until.Add(3*time.Second))
				})
				if err := h.Release(); err != nil {
					t.Errorf("the hold: %v", err)
				}
			}
			if err := <-waiter; err != nil {
				t.Errorf("the waiter: %v", err)
			}
		})
	}
}

// Fails when each call that a primary without its replicas refuses costs a connection.
func TestAPrimaryWithoutReplicasIsNotDialledByEachCall(t *testing.T) {
	srv := redistest.Real(t)
	var dials atomic.Int64
	rdb := srv.Client(t, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return srv.Dial(ctx, network, addr)
		}
	})
	client, err := relock.New(rdb)
	rig.Must(t, err)
	defer func() { _ = client.Close() }()
	l := client.NewLock("a")
	for range 3 {
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
	}
	rig.Must(t, srv.Client(t).ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	began, before := time.Now(), dials.Load()
	const calls = 300
	for range calls {
		if ok, err := l.TryLock(t.Context(), 0); ok || err == nil {
			t.Fatalf("%t, %v, want an error", ok, err)
		}
	}
	// Two each 100 ms, of the library and of the pool, and those of the first time.
	most := 2*(int64(time.Since(began)/(100*time.Millisecond))+1) + 4
	if got := dials.Load() - before; got > most && got > calls/10 {
		t.Errorf("%d connections made by %d calls, want %d at most", got, calls, most)
	}
}
