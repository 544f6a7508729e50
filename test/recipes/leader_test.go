package recipes_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// compacting runs compact in one of the processes that call compacting, until ctx ends or compact fails. Another goes
// on then, or when that process dies or is cut off.
func compacting(ctx context.Context, client *relock.Client, compact func(ctx context.Context, token int64) error) error {
	election := client.NewElection("compactor", relock.TTL(10*time.Second))
	return election.Run(ctx, func(ctx context.Context, term relock.Term) error {
		for { // ctx ends with the term: then Run campaigns again
			if err := compact(ctx, term.Token); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Second):
			}
		}
	})
}

func TestOneCompactsAndAnotherGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		var last, busy, runs atomic.Int64
		compact := func(ctx context.Context, token int64) error {
			if busy.Add(1) > 1 || last.Swap(token) > token {
				t.Error("two compact at a time, or in the order of no tokens")
			}
			defer busy.Add(-1)
			runs.Add(1)
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		first, ended := srv.Client(), make(chan error, 2)
		go func() { ended <- compacting(ctx, first, compact) }()
		synctest.Wait()
		go func() { ended <- compacting(ctx, srv.Other(), compact) }()
		virtual.Sleep(time.Minute)
		token := last.Load()
		heal := srv.Partition(first)
		virtual.Sleep(time.Minute)
		if runs.Load() < 100 || last.Load() == token {
			t.Errorf("%d runs in two minutes, by token %d and %d, want that another went on", runs.Load(), token, last.Load())
		}
		heal()
		stop()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

func TestAnotherCompactsAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, ended, full := relocktest.New(t), make(chan error, 1), errors.New("the disk is full")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		first, other := srv.Client(), srv.Client()
		go func() {
			ended <- compacting(ctx, first, func(context.Context, int64) error {
				virtual.Sleep(time.Minute) // the other waits meanwhile
				return full
			})
		}()
		synctest.Wait()
		err := compacting(ctx, other, func(context.Context, int64) error {
			stop()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the other: %v, want that it compacted", err)
		}
		if err := <-ended; !errors.Is(err, full) {
			t.Errorf("the first: %v, want its failure", err)
		}
	})
}
