package recipes_test

import (
	"context"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/redisson"
)

// What docs/redisson.md shows of the handles.
func handles(rdb redis.UniversalClient) (*redisson.Client, []any, error) {
	c, err := redisson.New(rdb)
	l := c.NewLock("orders")                    // getLock
	f := c.NewLock("queue", redisson.Fair())    // getFairLock
	t := c.NewLock("ledger", redisson.Fenced()) // getFencedLock, with Token
	rw := c.NewRWLock("prices")                 // getReadWriteLock
	return c, []any{l, f, t, rw}, err
}

func readAndWrite(ctx context.Context, rw *redisson.RWLock, read, write func(ctx context.Context) error) error {
	if err := rw.RLocker().Do(ctx, read); err != nil { // redisson.getReadWriteLock("prices").readLock()
		return err
	}
	return rw.WLocker().Do(ctx, write) // redisson.getReadWriteLock("prices").writeLock()
}

func TestHandlesOfRedissonAreMadeAsShown(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer func() { _ = rdb.Close() }()
	c, all, err := handles(rdb)
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	calls := 0
	count := func(context.Context) error { calls++; return nil }
	if err := readAndWrite(t.Context(), all[3].(*redisson.RWLock), count, count); err != nil || calls != 2 {
		t.Error(calls, err)
	}
	_ = c.Close()
}
