package redisson_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// everyLayout are the layouts of locks, by the prefix of their names.
var everyLayout = []string{"", "fair_", "read_", "write_"}

// Fails when only a function that returns has its lock released.
func TestDoReleasesTheLockHoweverItsFunctionEnds(t *testing.T) {
	for how, end := range map[string]func(){"panic": func() { panic("of fn") }, "Goexit": runtime.Goexit} {
		for _, prefix := range everyLayout {
			t.Run(prefix+how, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					l := of(client(t, x), prefix)
					done := make(chan any, 1)
					go func() {
						defer func() { done <- recover() }()
						_ = l.Do(t.Context(), func(context.Context) error { end(); return nil })
					}()
					if got := <-done; how == "panic" && got != "of fn" {
						t.Errorf("the panic came out as %v", got)
					}
					if n := l.HoldCount(); n != 0 {
						t.Errorf("%d holds are left", n)
					}
					other := of(client(t, x), prefix)
					if got, err := other.TryLock(t.Context(), 0); !got || err != nil {
						t.Fatalf("TryLock of another process = %v, %v, want true", got, err)
					}
					rig.Must(t, other.Unlock())
				})
			})
		}
	}
}

// Fails when an operator who forces one side ends holds of the other.
func TestForceUnlockOfOneSideLeavesTheOther(t *testing.T) {
	for name, held := range map[string]struct {
		side, other func(*redisson.RWLock) *redisson.Lock
	}{
		"read":  {(*redisson.RWLock).RLocker, (*redisson.RWLock).WLocker},
		"write": {(*redisson.RWLock).WLocker, (*redisson.RWLock).RLocker},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				h, err := held.side(client(t, x).NewRWLock("a")).Acquire(t.Context())
				rig.Must(t, err)
				operator := client(t, x).NewRWLock("a")
				if removed, err := held.other(operator).ForceUnlock(t.Context()); removed || err != nil {
					t.Errorf("ForceUnlock of the other side = %v, %v, want false", removed, err)
				}
				virtual.Sleep(11 * time.Second) // the hold is renewed once
				rig.Must(t, h.Err())
				if info, err := held.side(operator).Info(t.Context()); err != nil || len(info.Holders) != 1 || info.Holders[0].Read != (name == "read") {
					t.Errorf("Info = %+v, %v, want the holder", info, err)
				}
				if removed, err := held.side(operator).ForceUnlock(t.Context()); !removed || err != nil {
					t.Errorf("ForceUnlock of this side = %v, %v, want true", removed, err)
				}
				virtual.Sleep(11 * time.Second)
				if h.Err() == nil {
					t.Error("the hold that was removed is not lost")
				}
				_ = h.Release()
			})
		})
	}
}

// Fails when Info leaves out how long a lease of any layout has to go.
func TestInfoTellsWhatIsLeftOfEveryLease(t *testing.T) {
	for _, prefix := range everyLayout {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				h, err := of(client(t, x), prefix).Acquire(t.Context())
				rig.Must(t, err)
				virtual.Sleep(4 * time.Second)
				info, err := of(client(t, x), prefix).Info(t.Context())
				if err != nil || len(info.Holders) != 1 || info.Holders[0].TTL != 26*time.Second || info.Holders[0].Owner != h.Owner() || info.Holders[0].Holds != 1 {
					t.Errorf("Info = %+v, %v, want one hold of %s for 26 s", info, err, h.Owner())
				}
				rig.Must(t, h.Release())
			})
		})
	}
}

// Fails when the success of fn hides that Redis may still have the hold.
func TestDoSaysThatItsReleaseIsNotConfirmedThoughItsFunctionSucceeded(t *testing.T) {
	for _, prefix := range everyLayout {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := linked(t, x)
				l := of(c, prefix)
				err := l.Do(t.Context(), func(context.Context) error { link.Hole(); return nil })
				if rig.WantIs(t, err, relock.ErrUnconfirmed); l.HoldCount() != 0 {
					t.Errorf("%d holds are left", l.HoldCount())
				}
			})
		})
	}
}

// Fails when a waiting call returns the cause of its context in place of its error.
func TestACallThatWaitsReturnsTheErrorOfItsContextWhateverTheCause(t *testing.T) {
	for _, prefix := range everyLayout {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				other := of(client(t, x), strings.Replace(prefix, "read", "write", 1))
				rig.Must(t, other.Lock(t.Context()))
				ctx, cancel := context.WithCancelCause(t.Context())
				waits := rig.Beside(func() error { return of(client(t, x), prefix).Lock(ctx) })
				waits.Pending(t, "Lock")
				cancel(errors.New("no longer wanted"))
				rig.WantIs(t, <-waits, context.Canceled)
				rig.Must(t, other.Unlock())
			})
		})
	}
}

// Fails when Info tells the kind that Redis has, as of a lock whose name is used as another kind.
// Fails when a free lock has a kind.
func TestInfoTellsTheKindOfItsHandle(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		h, err := c.NewRWLock("a").RLocker().Acquire(t.Context())
		rig.Must(t, err)
		locks := map[string]*redisson.Lock{
			"lock": c.NewLock("a"), "fair lock": c.NewLock("a", redisson.Fair()), "fenced lock": c.NewLock("a", redisson.Fenced()),
			"read/write lock": c.NewRWLock("a").WLocker(),
		}
		for want, l := range locks {
			if info, err := l.Info(t.Context()); err != nil || info.Kind != want {
				t.Errorf("Info of a %s: kind %q, %v", want, info.Kind, err)
			}
		}
		rig.Must(t, h.Release())
		for kind, l := range locks {
			if info, err := l.Info(t.Context()); err != nil || info.Kind != "" {
				t.Errorf("Info of a free %s: kind %q, %v, want none", kind, info.Kind, err)
			}
		}
	})
}

// A decorator hides what kind of client it has. Fails when such a client asks whether there is sharded pub/sub, and
// then publishes its unlocks where nobody else listens.
func TestUnlocksOfAHiddenClientArePublishedPlainly(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		x.Server.Shard()
		wantPublished(t, clientOver(t, struct{ redis.UniversalClient }{clustered(t, x)}), x.Redis.Subscribe)
	})
}

// Fails when the option counts for nothing, or a Cluster has another default than Redisson's: what one client publishes
// the others do not hear then.
func TestUnlocksArePublishedAsShardedPubSubSays(t *testing.T) {
	on, off := []redisson.Option{redisson.ShardedPubSub(true)}, []redisson.Option{redisson.ShardedPubSub(false)}
	for name, has := range map[string]struct {
		cluster, redis7 bool
		opts            []redisson.Option
		sharded         bool
	}{
		"a Cluster":            {true, true, nil, true},
		"a Cluster, on":        {true, true, on, true},
		"a Cluster, off":       {true, true, off, false},
		"a Cluster of Redis 6": {true, false, nil, false},
		"a server":             {false, true, nil, false},
		"a server, on":         {false, true, on, true},
		"a server, off":        {false, true, off, false},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				if has.redis7 {
					x.Server.Shard()
				}
				var rdb redis.UniversalClient = x.Redis
				if has.cluster {
					rdb = clustered(t, x)
				}
				subscribe := x.Redis.Subscribe
				if has.sharded {
					subscribe = x.Redis.SSubscribe
				}
				wantPublished(t, clientOver(t, rdb, has.opts...), subscribe)
			})
		})
	}
}

// clustered returns a client that takes the lab's server for a Cluster.
func clustered(t *testing.T, x *rig.Lab) *redis.ClusterClient {
	t.Helper()
	slots := []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: "192.0.2.1:6379"}}}}
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Dialer: x.Server.Dial, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil },
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// wantPublished fails unless an unlock is published where a subscription hears it.
func wantPublished(t *testing.T, c *redisson.Client, subscribe func(context.Context, ...string) *redis.PubSub) {
	t.Helper()
	sub := subscribe(t.Context(), "redisson_lock__channel:{a}")
	defer func() { _ = sub.Close() }()
	_, err := sub.Receive(t.Context())
	rig.Must(t, err)
	heard, l := sub.Channel(), c.NewLock("a")
	rig.Must(t, l.Lock(t.Context()))
	rig.Must(t, l.Unlock())
	synctest.Wait()
	if n := len(heard); n != 1 {
		t.Errorf("%d messages on the channel, want that of the unlock", n)
	}
}
