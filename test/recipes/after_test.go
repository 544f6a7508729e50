package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

var errTaken = errors.New("another process has the lock")

func afterRedsync(ctx context.Context, rdb *redis.Client, work func(ctx context.Context) error) error {
	client, err := relock.New(rdb, relock.Defaults(relock.TTL(8*time.Second)))
	if err != nil {
		return err
	}
	defer client.Close()

	ran, err := client.NewLock("report").TryDo(ctx, 5*time.Second, work)
	if err == nil && !ran { // redsync.ErrTaken
		return errTaken
	}
	return err
}

func afterRedislock(ctx context.Context, rdb *redis.Client, work func(ctx context.Context) error) error {
	client, err := relock.New(rdb)
	if err != nil {
		return err
	}
	defer client.Close()

	ran, err := client.NewLock("report", relock.TTL(10*time.Second)).TryDo(ctx, 10*time.Second, work)
	if err == nil && !ran { // redislock.ErrNotObtained
		return errTaken
	}
	return err
}

func afterRueidislock(ctx context.Context, rdb *redis.Client, work func(ctx context.Context) error) error {
	client, err := relock.New(rdb, relock.Defaults(relock.TTL(5*time.Second)))
	if err != nil {
		return err
	}
	defer client.Close()

	return client.NewLock("report").Do(ctx, work)
}

func afterRedisson(ctx context.Context, client *relock.Client, work func(ctx context.Context) error) (bool, error) {
	lock := client.NewLock("report")
	ctx = relock.WithNewOwner(ctx) // the thread's part: what is called under it may lock again
	return lock.TryDo(ctx, 10*time.Second, work)
}

func TestWhatComesAfterwardsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, runs := relocktest.New(t), 0
		work := func(context.Context) error {
			runs++
			srv.AssertHeld("report")
			return nil
		}
		for _, after := range []func(context.Context, *redis.Client, func(context.Context) error) error{afterRedsync, afterRedislock, afterRueidislock} {
			if err := after(t.Context(), srv.Redis(), work); err != nil {
				t.Error(err)
			}
		}
		if ran, err := afterRedisson(t.Context(), srv.Client(), work); err != nil || !ran || runs != 4 {
			t.Errorf("%v, %v after %d runs", ran, err, runs)
		}
		srv.AssertFree("report")
	})
}

func TestMigrationKeepsTheLeaseAndTheWait(t *testing.T) {
	for name, row := range map[string]struct {
		after      func(context.Context, *redis.Client, func(context.Context) error) error
		ttl, waits time.Duration
	}{
		"redsync":     {afterRedsync, 8 * time.Second, 5 * time.Second},
		"redislock":   {afterRedislock, 10 * time.Second, 10 * time.Second},
		"rueidislock": {after: afterRueidislock, ttl: 5 * time.Second}, // waits for as long as its context lasts
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := relocktest.New(t)
				if err := row.after(t.Context(), srv.Redis(), func(ctx context.Context) error {
					info, err := srv.Other().NewLock("report").Info(ctx)
					if err == nil && (len(info.Holders) != 1 || (info.Holders[0].TTL-row.ttl).Abs() > time.Second) {
						t.Errorf("held by %+v, want a lease of %v", info.Holders, row.ttl)
					}
					return err
				}); err != nil {
					t.Error(err)
				}
				if row.waits == 0 {
					return
				}
				srv.Hold("report")
				begun := time.Now()
				err := row.after(t.Context(), srv.Redis(), func(context.Context) error { return nil })
				if waited := time.Since(begun); !errors.Is(err, errTaken) || (waited-row.waits).Abs() > time.Second {
					t.Errorf("%v after %v, want errTaken after %v", err, waited, row.waits)
				}
			})
		})
	}
}

// What a lock of redislock did that was never released.
func TestWorkRunsOnceInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		const ttl = time.Hour
		for _, want := range []bool{true, false, true} {
			ran, err := srv.Client().NewLock("report", relock.AtLeast(ttl)).TryDo(t.Context(), 0, func(ctx context.Context) error { return ctx.Err() })
			if err != nil || ran != want {
				t.Errorf("%v, %v; want %v", ran, err, want)
			}
			virtual.Sleep(ttl/2 + time.Second)
		}
	})
}
