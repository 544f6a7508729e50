package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/relocktest"
)

func afterRedsync(ctx context.Context, rdb *redis.Client, work func(ctx context.Context) error) error {
	client, err := relock.New(rdb)
	if err != nil {
		return err
	}
	defer client.Close()

	return client.NewLock("report").Do(ctx, work)
}

func afterRedislock(ctx context.Context, rdb *redis.Client, work func(ctx context.Context) error) error {
	client, err := relock.New(rdb)
	if err != nil {
		return err
	}
	defer client.Close()

	hold, err := client.NewLock("report").TryAcquire(ctx, time.Minute)
	if err != nil { // relock.ErrNotAcquired: taken
		return err
	}
	return errors.Join(work(hold.Context(ctx)), hold.Release())
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
		for _, after := range []func(context.Context, *redis.Client, func(context.Context) error) error{afterRedsync, afterRedislock} {
			if err := after(t.Context(), srv.Redis(), work); err != nil {
				t.Error(err)
			}
		}
		if ran, err := afterRedisson(t.Context(), srv.Client(), work); err != nil || !ran || runs != 3 {
			t.Errorf("%v, %v after %d runs", ran, err, runs)
		}
		srv.AssertFree("report")
	})
}
