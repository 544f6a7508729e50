package rival

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// compareAndDelete ends a hold that is still the caller's.
var compareAndDelete = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`)

// ByHand is what many write themselves.
func ByHand() Rival {
	return Rival{
		Name:     "SET NX + CAD by hand",
		Settings: "`SET key random NX PX ttl`, tried every 1 ms; a script that compares and deletes; nothing is renewed",
		Sends:    []string{"set"},
		Open: func(addr string, s Setup) (Client, error) {
			rdb := dial(addr)
			return &client{rdb: rdb, lock: func(name string) Lock {
				return &byHand{rdb: rdb, keys: []string{name}, ttl: s.TTL}
			}}, nil
		},
	}
}

type byHand struct {
	rdb   *redis.Client
	keys  []string
	value string
	ttl   time.Duration
}

func (b *byHand) Lock(ctx context.Context) error {
	b.value = rand.Text()
	for {
		ok, err := b.rdb.SetNX(ctx, b.keys[0], b.value, b.ttl).Result()
		if ok || err != nil {
			return err
		}
		if err := sleep(ctx, Poll); err != nil {
			return err
		}
	}
}

func (b *byHand) Unlock() error {
	n, err := compareAndDelete.Run(context.Background(), b.rdb, b.keys, b.value).Int()
	if err == nil && n != 1 {
		err = errors.New("by hand: the lock was not held any more")
	}
	return err
}

// Ping is the floor: two round trips that lock nothing.
func Ping() Rival {
	return Rival{
		Name:     "two PINGs",
		Settings: "the floor: what two round trips cost with go-redis",
		Sends:    []string{"ping"},
		Floor:    true,
		Open: func(addr string, _ Setup) (Client, error) {
			rdb := dial(addr)
			return &client{rdb: rdb, lock: func(string) Lock { return ping{rdb} }}, nil
		},
	}
}

type ping struct{ rdb *redis.Client }

func (p ping) Lock(ctx context.Context) error { return p.rdb.Ping(ctx).Err() }
func (p ping) Unlock() error                  { return p.rdb.Ping(context.Background()).Err() }
