package recipes_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/redisson"
)

// What docs/redisson.md shows of the handles.
func handles(rdb redis.UniversalClient) (*redisson.Client, []any, error) {
	c, err := redisson.New(rdb)
	l := c.NewLock("orders:42")                    // getLock
	f := c.NewLock("orders:42", redisson.Fair())   // getFairLock
	t := c.NewLock("orders:42", redisson.Fenced()) // getFencedLock, with Token
	rw := c.NewRWLock("orders:42")                 // getReadWriteLock
	return c, []any{l, f, t, rw}, err
}

func TestHandlesOfRedissonAreMadeAsShown(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer func() { _ = rdb.Close() }()
	c, all, err := handles(rdb)
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	_ = c.Close()
}
