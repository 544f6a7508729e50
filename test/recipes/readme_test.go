package recipes_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/relocktest"
)

// What README.md shows of problems and their three lines.

type job = func(ctx context.Context) error

func section(ctx context.Context, client *relock.Client, ship job) error {
	err := client.NewLock("orders/4711").Do(ctx, func(ctx context.Context) error {
		return ship(ctx) // ctx ends if the lock is lost
	})
	return err
}

func cronJob(ctx context.Context, client *relock.Client, cleanup job) (bool, error) {
	ran, err := client.Once(ctx, "cleanup", time.Minute, cleanup)
	return ran, err
}

func leader(ctx context.Context, client *relock.Client, compact func(context.Context, int64) error) error {
	err := client.NewElection("compactor").Run(ctx, func(ctx context.Context, term relock.Term) error {
		return compact(ctx, term.Token)
	})
	return err
}

func request(ctx context.Context, client *relock.Client, id string, edit job) (status int, err error) {
	ran, err := client.NewLock("orders/"+id).TryDo(ctx, 2*time.Second, edit)
	if err == nil && !ran { // taken; an outage is an error
		status = http.StatusLocked
	}
	return status, err
}

func handOver(ctx context.Context, client *relock.Client, send func(relock.Ticket)) error {
	hold, err := client.NewLock("orders/4711").TryAcquire(ctx, time.Second) // hold.Release() ends it, also if Detach fails
	if err != nil {
		return err
	}
	defer func() { _ = hold.Release() }()
	ticket, err := hold.Detach(ctx, time.Minute) // in the request: the message carries the ticket
	if err == nil {
		send(ticket)
	}
	return err
}

func goOn(ctx context.Context, client *relock.Client, ticket relock.Ticket) (*relock.Hold, error) {
	hold, err := client.Resume(ctx, ticket) // in the worker: the same hold, with the same token
	return hold, err
}

func migration(ctx context.Context, client *relock.Client, migrate job) error {
	err := client.NewLock("schema").Do(ctx, migrate) // one replica after the other
	return err
}

func TestThreeLinesSolveEachProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, ctx := relocktest.New(t), t.Context()
		client, fine := srv.Client(), func(ctx context.Context) error { return ctx.Err() }
		lead := func(context.Context, int64) error { return nil }
		err := errors.Join(section(ctx, client, fine), leader(ctx, client, lead), migration(ctx, client, fine))
		for _, want := range []bool{true, false} {
			if ran, fails := cronJob(ctx, client, fine); fails != nil || ran != want {
				t.Errorf("once a minute: %v, %v", ran, fails)
			}
		}
		srv.Hold("orders/17")
		if status, fails := request(ctx, client, "17", fine); fails != nil || status != http.StatusLocked {
			t.Errorf("a request: %d, %v", status, fails)
		}
		err = errors.Join(err, handOver(ctx, client, func(ticket relock.Ticket) {
			hold, fails := goOn(ctx, srv.Client(), ticket)
			if err = errors.Join(err, fails); fails == nil {
				err = errors.Join(err, hold.Release())
			}
		}))
		if err != nil {
			t.Error(err)
		}
	})
}

func TestNoMessageCarriesATicketThatWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		client := srv.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) { cancel() }}))
		err := handOver(ctx, client, func(ticket relock.Ticket) { t.Errorf("ticket %q was sent", ticket) })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that Detach refused an ended context", err)
		}
		srv.AssertFree("orders/4711")
	})
}
