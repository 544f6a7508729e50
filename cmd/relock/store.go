//go:build unix

package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// The demo's protected resources: a counter that knows nothing of locks, and a store that checks tokens.

func counterKey(prefix string) string { return prefix + ":counter" }
func storeKey(prefix string) string   { return prefix + ":store" }

// checked shows how a resource protects itself from holders that do not know of their loss. It remembers the
// largest token and refuses smaller ones. It compares texts, because a token has 19 digits and a number in
// Lua only 16.
var checked = redis.NewScript(`
if ARGV[1] < (redis.call('HGET', KEYS[1], 'token') or '') then
  return 0
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`)

func storeWrite(ctx context.Context, rdb redis.UniversalClient, prefix string, token int64, value string) (ok bool, err error) {
	return checked.Run(ctx, rdb, []string{storeKey(prefix)}, token, value, demoKeep.Milliseconds()).Bool()
}
