//go:build unix

package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/fence"
)

// The demo's protected resources: a counter that knows nothing of locks, and a store that refuses stale tokens.

func counterKey(prefix string) string { return prefix + ":counter" }
func storeKey(prefix string) string   { return prefix + ":{store}" }

// checked shows how a resource protects itself from holders that do not know of their loss. The fence expires with the
// value, because the demo must leave nothing. A real one must not expire.
var checked = fence.NewScript(`
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
`)

// storeWrite writes the value and returns true, or returns false if a later holder has written.
func storeWrite(ctx context.Context, rdb redis.UniversalClient, prefix string, token int64, value string) (ok bool, err error) {
	key := storeKey(prefix)
	last := key + ":fence"
	_, err = checked.Run(ctx, rdb, last, token, []string{key, last}, value, demoKeep.Milliseconds())
	if errors.Is(err, fence.ErrStale) {
		return false, nil
	}
	if errors.Is(err, redis.Nil) { // the script returns nothing
		err = nil
	}
	return err == nil, err
}
