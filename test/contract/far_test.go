package contract_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// far returns a redis client whose round trips take so long. A connection costs one for TCP and one
// for TLS, and two for the greeting.
func far(x *rig.Lab, rtt time.Duration, mod ...func(*redis.Options)) *redis.Client {
	link := redistest.NewLink(x.T, x.Server.Dial)
	link.Latency(rtt / 2)
	return x.Server.Client(x.T, append([]func(*redis.Options){func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := link.Dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			select {
			case <-time.After(rtt):
				return c, nil
			case <-ctx.Done():
				_ = c.Close()
				return nil, ctx.Err()
			}
		}
	}}, mod...)...)
}

// slowCredentials have a provider that takes so long, and gives up when its context ends.
func slowCredentials(takes time.Duration) func(*redis.Options) {
	return func(o *redis.Options) {
		o.CredentialsProviderContext = func(ctx context.Context) (user, password string, err error) {
			select {
			case <-time.After(takes):
				return "", "", nil
			case <-ctx.Done():
				return "", "", ctx.Err()
			}
		}
	}
}

// acquireWithin takes the lock, and says when that took longer than so many round trips.
func acquireWithin(t *testing.T, l *relock.Lock, rtt time.Duration, trips int) *relock.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	h, err := l.Acquire(ctx)
	rig.Must(t, err)
	if took := time.Since(began); took > time.Duration(trips)*rtt {
		t.Errorf("acquired after %v, %.1f round trips, want %d", took, float64(took)/float64(rtt), trips)
	}
	return h
}

// releaseWithin is acquireWithin for a release.
func releaseWithin(t *testing.T, h *relock.Hold, rtt time.Duration, trips int) {
	t.Helper()
	began := time.Now()
	rig.Must(t, h.Release())
	if took := time.Since(began); took > time.Duration(trips)*rtt {
		t.Errorf("released after %v, %.1f round trips, want %d", took, float64(took)/float64(rtt), trips)
	}
}

// A round trip may take up to a sixth of the TTL, and up to 1 s. Fails when the
// time for one try has to do for a connection as well, when the greeting of a connection ends with
// the call that wanted it, or when the next try begins it again.
func TestALockInAFarRedisCostsItsConnectionAndItsRoundTrips(t *testing.T) {
	for _, c := range []struct{ rtt, ttl time.Duration }{
		{20 * time.Millisecond, 30 * time.Second},
		{200 * time.Millisecond, 3 * time.Second},
		{350 * time.Millisecond, 3 * time.Second},
		{120 * time.Millisecond, time.Second},
		{400 * time.Millisecond, 30 * time.Second},
		{800 * time.Millisecond, 30 * time.Second},
		{900 * time.Millisecond, 30 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v for %v", c.rtt, c.ttl), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				l := x.ClientOver(far(x, c.rtt)).NewLock("a", relock.TTL(c.ttl))
				h := acquireWithin(t, l, c.rtt, 9) // 4 for the connection, 2 for a script that is not known
				select {
				case <-h.Lost():
					t.Fatal(h.Err())
				case <-time.After(5 * c.ttl):
				}
				releaseWithin(t, h, c.rtt, 2)
				for range 3 {
					releaseWithin(t, acquireWithin(t, l, c.rtt, 1), c.rtt, 1)
				}
			})
		})
	}
}

// Fails when a try that ends has the provider begin again, or a renewal needs a new connection.
func TestCredentialsMayTakeLongerThanATry(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 3 * time.Second} {
		for _, locks := range []int{1, 3, 20} {
			t.Run(fmt.Sprintf("%d for %v", locks, ttl), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					const takes = 1200 * time.Millisecond
					c := x.ClientOver(far(x, 10*time.Millisecond, slowCredentials(takes)))
					holds := make([]*relock.Hold, locks)
					for i := range holds {
						holds[i] = acquireWithin(t, c.NewLock(fmt.Sprint(i), relock.TTL(ttl)), takes, 3)
					}
					virtual.Sleep(5 * ttl)
					for _, h := range holds {
						releaseWithin(t, h, takes, 1)
					}
				})
			})
		}
	}
}

// Fails when a call with ShardedPubSub never hears anything, because each subscription begins the connection again.
func TestWaitersHearByShardsThoughCredentialsTakeLong(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		x.Server.Shard()
		c := x.ClientOver(far(x, 10*time.Millisecond, slowCredentials(3*time.Second)), relock.ShardedPubSub())
		held := x.Take(x.Client(relock.ShardedPubSub()).NewLock("a", relock.Fair()))
		waiter := rig.Beside(func() error { return c.NewLock("a", relock.Fair()).Lock(t.Context()) })
		virtual.Sleep(15 * time.Second)
		if n := x.Info(x.Lock("a")).Waiters; n != 1 {
			t.Errorf("%d wait in the queue, want 1", n)
		}
		rig.Must(t, held.Release())
		virtual.Sleep(20 * time.Millisecond)
		rig.Must(t, rig.Returned(t, waiter))
	})
}

// Fails when a renewal needs a connection of the client's, while that of the library is idle.
func TestHoldsAreRenewedThoughTheClientHasNoConnectionToSpare(t *testing.T) {
	holdWithoutConnections(t, smallPool, func(*rig.Lab, *relock.Client) {})
}

// The same in a Cluster.
func TestHoldsAreRenewedThoughTheClusterClientHasNoConnectionToSpare(t *testing.T) {
	holdWithoutConnections(t, func(x *rig.Lab) redis.UniversalClient {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			PoolSize:         3,
			PipelinePoolSize: -1,
			Dialer:           x.Server.Dial,
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: "192.0.2.1:6379"}}}}, nil
			},
		})
		x.T.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}, func(*rig.Lab, *relock.Client) {})
}

// Fails when a call that is cut short has all others use the client's connections, of which none is free.
func TestHoldsAreRenewedThoughACallIsCutShortAndTheClientHasNoConnectionToSpare(t *testing.T) {
	holdWithoutConnections(t, smallPool, func(x *rig.Lab, c *relock.Client) {
		resume := x.Server.Stall()
		defer resume()
		ctx, cancel := context.WithTimeout(x.T.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := c.NewLock("cut").Acquire(ctx)
		rig.WantIs(x.T, err, context.DeadlineExceeded)
	})
}

// smallPool returns a client of three connections.
func smallPool(x *rig.Lab) redis.UniversalClient {
	return x.Server.Client(x.T, func(o *redis.Options) { o.PoolSize = 3 })
}

// holdWithoutConnections holds locks while commands of the user block in all three connections of the client, and then
// something happens.
func holdWithoutConnections(t *testing.T, client func(x *rig.Lab) redis.UniversalClient, happens func(x *rig.Lab, c *relock.Client)) {
	for _, locks := range []int{1, 3, 20} {
		t.Run(fmt.Sprint(locks), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				rdb := client(x)
				c := x.ClientOver(rdb)
				holds := make([]*relock.Hold, locks)
				for i := range holds {
					holds[i] = x.Take(c.NewLock(fmt.Sprint(i), relock.TTL(2*time.Second)))
				}
				rig.Must(t, x.Take(c.NewLock("another")).Release()) // the library has a connection of its own by now
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				for range 3 {
					go func() { _ = rdb.BLPop(ctx, 10*time.Second, "nothing").Err() }()
				}
				virtual.Sleep(10 * time.Millisecond)
				happens(x, c)
				virtual.Sleep(9 * time.Second)
				for _, h := range holds {
					if err := h.Release(); err != nil {
						t.Error(err)
					}
				}
				virtual.Sleep(2 * time.Second)
			})
		})
	}
}
