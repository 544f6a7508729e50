package recipes_test

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// What the page shows of other libraries: it is compiled, and calls nothing.
var _ = []any{byRedsync, byRedislock, byRueidislock}

func byRedsync(ctx context.Context, rdb *redis.Client, work func(ctx context.Context) error) error {
	rs := redsync.New(goredis.NewPool(rdb))

	mutex := rs.NewMutex("report", redsync.WithExpiry(8*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer func() { _, _ = mutex.UnlockContext(ctx) }()
	return work(ctx)
}

func byRedislock(ctx context.Context, rdb *redis.Client, work func(ctx context.Context) error) error {
	locker := redislock.New(rdb)

	lock, err := locker.Obtain(ctx, "report", 10*time.Second, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
	})
	if err != nil { // redislock.ErrNotObtained: taken
		return err
	}
	defer func() { _ = lock.Release(ctx) }()
	return work(ctx)
}

func byRueidislock(ctx context.Context, work func(ctx context.Context) error) error {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{"localhost:6379"}},
	})
	if err != nil {
		return err
	}
	defer locker.Close()

	ctx, cancel, err := locker.WithContext(ctx, "report")
	if err != nil {
		return err
	}
	defer cancel()
	return work(ctx)
}
