package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// accept takes the account for a job, and returns what the job's message must have for a
// worker to go on under the lock. keep is how long the message may lie before one does.
func accept(ctx context.Context, client *relock.Client, account string, keep time.Duration) (relock.Ticket, error) {
	hold, err := client.NewLock("accounts/"+account).TryAcquire(ctx, time.Second)
	if err != nil {
		return "", err
	}
	ticket, err := hold.Detach(ctx, keep)
	if err != nil && hold.Err() == nil { // refused, as a keep of two days is: it is still held
		err = errors.Join(err, hold.Release())
	}
	return ticket, err
}

// process is called by the worker that got the message, whichever process it is in.
func process(ctx context.Context, client *relock.Client, ticket relock.Ticket, work func(ctx context.Context) error) error {
	hold, err := client.Resume(ctx, ticket)
	if err != nil {
		return err // the message lay for too long, or came twice
	}
	return errors.Join(work(hold.Context(ctx)), hold.Release())
}

func TestWorkerGoesOnUnderTheLockOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		web, worker := srv.Client(), srv.Client()
		ticket, err := accept(t.Context(), web, "17", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := accept(t.Context(), web, "17", time.Minute); !errors.Is(err, relock.ErrNotAcquired) {
			t.Errorf("the account is taken: %v, want ErrNotAcquired", err)
		}
		virtual.Sleep(30 * time.Second) // in the queue
		err = process(t.Context(), worker, ticket, func(ctx context.Context) error {
			virtual.Sleep(time.Hour)
			srv.AssertHeld("accounts/17")
			return ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
		srv.AssertFree("accounts/17")
		if err := process(t.Context(), worker, ticket, nil); !errors.Is(err, relock.ErrLost) {
			t.Errorf("a message that comes twice: %v, want ErrLost", err)
		}
	})
}

func TestMessageThatLiesForTooLongIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		ticket, err := accept(t.Context(), srv.Client(), "17", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		virtual.Sleep(2 * time.Minute)
		if err := process(t.Context(), srv.Client(), ticket, nil); !errors.Is(err, relock.ErrLost) {
			t.Errorf("%v, want ErrLost", err)
		}
	})
}
