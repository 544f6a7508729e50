package redisson_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// bounded are the durations that options take, with the bounds that their documentation names. give is whether one is
// taken.
var bounded = map[string]struct {
	least, most time.Duration
	give        func(t *testing.T, c *redisson.Client, d time.Duration) error
}{
	"TTL": {100 * time.Millisecond, 24 * time.Hour, perLock(redisson.TTL)},
	"TTL of Defaults": {100 * time.Millisecond, 24 * time.Hour, perClient(func(d time.Duration) redisson.Option {
		return redisson.Defaults(redisson.TTL(d))
	})},
	"MaxHold":         {time.Millisecond, 10 * 365 * 24 * time.Hour, perLock(redisson.MaxHold)},
	"ReleaseTimeout":  {time.Millisecond, time.Hour, perClient(redisson.ReleaseTimeout)},
	"FairWait":        {time.Second, 24 * time.Hour, perClient(redisson.FairWait)},
	"WatchdogTimeout": {100 * time.Millisecond, 24 * time.Hour, perClient(redisson.WatchdogTimeout)},
}

func perLock(option func(time.Duration) redisson.LockOption) func(*testing.T, *redisson.Client, time.Duration) error {
	return func(t *testing.T, c *redisson.Client, d time.Duration) error {
		got, err := c.NewLock("lock "+d.String(), option(d)).TryLock(t.Context(), 0)
		if err == nil && !got {
			t.Errorf("a lock with %v was not taken", d)
		}
		return err
	}
}

func perClient(option func(time.Duration) redisson.Option) func(*testing.T, *redisson.Client, time.Duration) error {
	return func(t *testing.T, _ *redisson.Client, d time.Duration) error {
		rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
		defer func() { _ = rdb.Close() }()
		c, err := redisson.New(rdb, option(d))
		if err == nil {
			rig.Must(t, c.Close())
		}
		return err
	}
}

// Fails when a bound is another than the documentation says, to either side.
func TestDurationsOfRedissonHaveTheBoundsThatAreDocumented(t *testing.T) {
	for name, of := range bounded {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := client(t, x)
				for _, d := range []time.Duration{of.least, of.most, of.least + time.Millisecond, of.most - time.Millisecond} {
					if err := of.give(t, c, d); err != nil {
						t.Errorf("%v is refused: %v", d, err)
					}
				}
				for _, d := range []time.Duration{of.least - time.Millisecond, of.most + time.Millisecond, of.least + 1, 0, -of.least} {
					rig.WantIs(t, of.give(t, c, d), relock.ErrInvalidOption)
				}
			})
		})
	}
}

// The second Defaults set a TTL again, and say nothing of the MaxHold of the first.
// Fails when they replace the first, or what a handle says for itself does not count.
func TestSeveralDefaultsOfRedissonAddUp(t *testing.T) {
	for _, of := range []struct {
		opts         []redisson.LockOption
		ttl, maxHold time.Duration
	}{
		{nil, 10 * time.Second, time.Minute},
		{
			[]redisson.LockOption{redisson.TTL(20 * time.Second), redisson.MaxHold(5 * time.Minute)},
			20 * time.Second, 5 * time.Minute,
		},
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			h := acquired(t.Context(), t, client(t, x,
				redisson.Defaults(redisson.TTL(time.Hour), redisson.MaxHold(time.Minute)),
				redisson.Defaults(redisson.TTL(10*time.Second)),
			).NewLock("a", of.opts...))
			if left := x.Redis.PTTL(t.Context(), "a").Val(); left != of.ttl {
				t.Errorf("the lease is %v, want %v", left, of.ttl)
			}
			virtual.Sleep(of.maxHold)
			rig.Must(t, h.Err())
			virtual.Sleep(of.ttl)
			rig.WantIs(t, h.Release(), relock.ErrLost)
		})
	}
}

// Fails when New makes a client that hears no unlocks, or panics at its first call.
func TestAClientOfRedissonIsNotMadeOverARing(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "192.0.2.1:6379"}})
	t.Cleanup(func() { rig.Must(t, ring.Close()) })
	for what, rdb := range map[string]redis.UniversalClient{
		"a Ring": ring, "a decorator around one": struct{ redis.UniversalClient }{ring},
		"a decorator around nil": struct{ redis.UniversalClient }{},
		"no client of a server":  (*redis.Client)(nil), "no client of a Cluster": (*redis.ClusterClient)(nil),
	} {
		if _, err := redisson.New(rdb); !errors.Is(err, relock.ErrInvalidOption) {
			t.Errorf("New over %s = %v, want ErrInvalidOption", what, err)
		}
	}
}
