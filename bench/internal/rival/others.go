package rival

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// Redislock is github.com/bsm/redislock.
func Redislock() Rival {
	return Rival{
		Name:     "bsm/redislock",
		Settings: "`LinearBackoff(1ms)`; its lease is not renewed",
		Open: func(addr string, s Setup) (Client, error) {
			rdb := dial(addr)
			c := redislock.New(rdb)
			return &client{rdb: rdb, lock: func(name string) Lock { return &bsm{c: c, key: name, ttl: s.TTL} }}, nil
		},
	}
}

type bsm struct {
	c    *redislock.Client
	key  string
	ttl  time.Duration
	held *redislock.Lock
}

func (b *bsm) Lock(ctx context.Context) error {
	for {
		// Without a deadline of ctx the TTL is the limit of its wait.
		l, err := b.c.Obtain(ctx, b.key, b.ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(Poll)})
		switch {
		case err == nil:
			b.held = l
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, redislock.ErrNotObtained):
			return err
		}
	}
}

func (b *bsm) Unlock() error { return b.held.Release(context.Background()) }

// Redsync is github.com/go-redsync/redsync/v4 with one server.
func Redsync() Rival {
	return Rival{
		Name:     "redsync",
		Settings: "one pool, `WithRetryDelay(1ms)`, tries without limit; its lease is not renewed",
		Sends:    []string{"set", "setnx"},
		Open: func(addr string, s Setup) (Client, error) {
			rdb := dial(addr)
			rs := redsync.New(goredis.NewPool(rdb))
			return &client{rdb: rdb, lock: func(name string) Lock {
				return &redsyncLock{m: rs.NewMutex(name, redsync.WithExpiry(s.TTL), redsync.WithTries(math.MaxInt32), redsync.WithRetryDelay(Poll))}
			}}, nil
		},
	}
}

type redsyncLock struct{ m *redsync.Mutex }

func (s *redsyncLock) Lock(ctx context.Context) error {
	err := s.m.LockContext(ctx)
	if err != nil && ctx.Err() != nil { // it says ErrFailed
		return ctx.Err()
	}
	return err
}

func (s *redsyncLock) Unlock() error {
	ok, err := s.m.Unlock()
	if err == nil && !ok {
		err = errors.New("redsync: not unlocked")
	}
	return err
}

// Rueidislock is github.com/redis/rueidis/rueidislock.
func Rueidislock() Rival {
	return Rival{
		Name:     "rueidislock",
		Settings: "`KeyMajority: 1`, `NoLoopTracking: true`, `TryNextAfter: 5s` (its defaults are slower)",
		Open: func(addr string, s Setup) (Client, error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
				KeyValidity:    s.TTL,
				KeyMajority:    1,
				NoLoopTracking: true,
				// It bounds a command as well: on a slow or busy link 20 ms would fail.
				TryNextAfter: 5 * time.Second,
			})
			if err != nil {
				return nil, err
			}
			return &rueidisClient{l}, nil
		},
	}
}

type rueidisClient struct{ l rueidislock.Locker }

func (c *rueidisClient) Lock(name string) Lock { return &rueidisLock{l: c.l, name: name} }
func (c *rueidisClient) Close() error          { c.l.Close(); return nil }

type rueidisLock struct {
	l      rueidislock.Locker
	name   string
	ctx    context.Context
	cancel context.CancelFunc
}

func (r *rueidisLock) Lock(ctx context.Context) (err error) {
	// A hold ends with the context that its lock was waited for with, so the end of the
	// workload, which is the end of ctx, would be a loss: the hold gets one that stays.
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	r.ctx, r.cancel, err = r.l.WithContext(wait, r.name)
	if err != nil {
		stop()
		cancel()
		return err
	}
	if !stop() { // ctx ended as the lock was granted
		r.cancel()
		return ctx.Err()
	}
	return nil
}

// Unlock asks first whether the lock was lost, since cancel does not tell.
func (r *rueidisLock) Unlock() error {
	err := r.ctx.Err()
	r.cancel()
	if err != nil {
		return fmt.Errorf("rueidislock: lost: %w", err)
	}
	return nil
}
