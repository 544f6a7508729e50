package recipes_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/relocktest"
)

// booting is what a service does before it serves: it runs the migrations, in one process at a time.
// It fails within seconds if locks would not work, and within a minute if another process has not finished.
func booting(ctx context.Context, rdb redis.UniversalClient, migrate func(ctx context.Context) error) (*relock.Client, error) {
	client, err := relock.New(rdb, relock.Logger(slog.Default())) // no I/O: an outage is not noticed here
	if err != nil {
		return nil, err
	}
	if err := client.Check(ctx); err != nil { // it is noticed here, and what Redis refuses too
		return nil, errors.Join(err, client.Close())
	}
	ran, err := client.NewLock("schema").TryDo(ctx, time.Minute, migrate)
	if err == nil && !ran {
		err = errors.New("another process still migrates the schema")
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

func TestServiceDoesNotBootWithoutItsLock(t *testing.T) {
	for name, row := range map[string]struct {
		before      func(srv *relocktest.Server)
		runs, fails bool
	}{
		"free":    {before: func(*relocktest.Server) {}, runs: true},
		"taken":   {before: func(srv *relocktest.Server) { srv.Hold("schema") }, fails: true},
		"outage":  {before: func(srv *relocktest.Server) { srv.Outage() }, fails: true},
		"cut off": {before: func(srv *relocktest.Server) { srv.Partition() }, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, ran, begun := relocktest.New(t), false, time.Now()
				row.before(srv)
				client, err := booting(t.Context(), srv.Redis(), func(ctx context.Context) error {
					ran = true
					return ctx.Err()
				})
				if ran != row.runs || (err != nil) != row.fails {
					t.Errorf("migrated: %v, %v", ran, err)
				}
				if took := time.Since(begun); took > 90*time.Second {
					t.Errorf("it took %v", took)
				}
				if client != nil {
					_ = client.Close()
				}
			})
		})
	}
}
