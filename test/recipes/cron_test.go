package recipes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// everyMinute is what each process runs: cleanup, in one of them each minute.
func everyMinute(ctx context.Context, client *relock.Client, cleanup func(ctx context.Context) error, failed func(error)) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		// Asked more often than it runs: if this process is down, another runs the job within 10 s.
		if _, err := client.Once(ctx, "cleanup", time.Minute, cleanup, relock.TTL(10*time.Second)); err != nil {
			failed(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func TestEachMinuteIsCleanedUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, runs := relocktest.New(t), new(atomic.Int64)
		cleanup := func(context.Context) error {
			runs.Add(1)
			return nil
		}
		for range 3 {
			go everyMinute(t.Context(), srv.Client(), cleanup, func(err error) { t.Error(err) })
			virtual.Sleep(100 * time.Millisecond) // the processes are that far apart
		}
		virtual.Sleep(9*time.Minute + 30*time.Second)
		if n := runs.Load(); n != 10 {
			t.Errorf("%d runs in ten minutes of three processes, want 10", n)
		}
	})
}
