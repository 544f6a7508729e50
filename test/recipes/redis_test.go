package recipes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// setFenced sets a value that remembers by which token it was set, and refuses smaller ones.
// It compares texts: a token has 19 digits, and Lua counts to 16.
var setFenced = redis.NewScript(`
	if (redis.call('HGET', KEYS[1], 'token') or '') > ARGV[1] then
		return 0
	end
	redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
	return 1`)

// setConfig is called under the lock "config"; rdb need not be the Redis of the locks.
func setConfig(ctx context.Context, rdb redis.Scripter, value string) error {
	hold, ok := relock.FromContext(ctx, "config")
	if !ok {
		return errors.New("setConfig is called without the lock")
	}
	done, err := setFenced.Run(ctx, rdb, []string{"config"}, hold.Token(), value).Int()
	if err == nil && done == 0 {
		err = errStale
	}
	return err
}

func TestScriptRefusesWhoWritesAfterALaterHolder(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer func() { _ = rdb.Close() }()
	slow, next := twoHolders(t, "config")
	deaf := func(h *relock.Hold) context.Context { return context.WithoutCancel(h.Context(t.Context())) }
	for _, row := range []struct {
		by    *relock.Hold
		value string
		want  error
	}{{slow, "a", nil}, {next, "b", nil}, {next, "c", nil}, {slow, "d", errStale}} {
		if err := setConfig(deaf(row.by), rdb, row.value); !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
			t.Errorf("%q: %v, want %v", row.value, err, row.want)
		}
	}
	if err := setConfig(t.Context(), rdb, "e"); err == nil {
		t.Error("set without a lock")
	}
	if got := rdb.HGet(t.Context(), "config", "value").Val(); got != "c" {
		t.Errorf("value %q, want the last one of a holder, c", got)
	}
}

// twoHolders returns a hold that has been lost, and that of who holds since.
func twoHolders(t *testing.T, name string) (slow, next *relock.Hold) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	c, err := relock.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = rdb.Close()
	})
	l := c.NewLock(name)
	if slow, err = l.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ForceUnlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-slow.Lost()
	if next, err = c.NewLock(name).Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	return slow, next
}
