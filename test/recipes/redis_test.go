package recipes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/fence"
)

// set is run if no later holder has been here.
var set = fence.NewScript(`return redis.call('SET', KEYS[1], ARGV[1])`)

// setConfig is called under the lock "config"; rdb need not be the Redis of the locks.
func setConfig(ctx context.Context, rdb redis.Scripter, value string) error {
	hold, ok := relock.FromContext(ctx, "config")
	if !ok {
		return errors.New("setConfig is called without the lock")
	}
	_, err := set.Run(ctx, rdb, "{config}:fence", hold.Token(), []string{"{config}"}, value)
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
	}{{slow, "a", nil}, {next, "b", nil}, {next, "c", nil}, {slow, "d", fence.ErrStale}} {
		if err := setConfig(deaf(row.by), rdb, row.value); !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
			t.Errorf("%q: %v, want %v", row.value, err, row.want)
		}
	}
	if err := setConfig(t.Context(), rdb, "e"); err == nil {
		t.Error("set without a lock")
	}
	if got := rdb.Get(t.Context(), "{config}").Val(); got != "c" {
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
