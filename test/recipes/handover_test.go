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
	defer func() { _ = hold.Release() }() // if Detach refuses: after its success this does nothing
	return hold.Detach(ctx, keep)
}

// process is called by the worker that got the message, whichever process it is in.
func process(ctx context.Context, client *relock.Client, ticket relock.Ticket, work func(ctx context.Context) error) (err error) {
	soon, cancel := context.WithTimeout(ctx, 10*time.Second) // else it waits for as long as an outage lasts
	defer cancel()
	hold, err := client.Resume(soon, ticket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release()) }() // also if work panics
	return work(hold.Context(ctx))
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

func TestAccountIsFreeAfterAJobThatPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		ticket, err := accept(t.Context(), srv.Client(), "17", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { _ = recover() }() // as the workers of many queues do
			_ = process(t.Context(), srv.Client(), ticket, func(context.Context) error { panic("a mistake of the job") })
		}()
		srv.AssertFree("accounts/17")
	})
}

func TestMessageComesAgainAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		ticket, err := accept(t.Context(), srv.Client(), "17", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		worker, works := srv.Client(), func(ctx context.Context) error { return ctx.Err() }
		end := srv.Outage(worker)
		if err := process(ctx, worker, ticket, works); !errors.Is(err, relock.ErrUnavailable) || errors.Is(err, relock.ErrLost) {
			t.Errorf("in an outage: %v, want ErrUnavailable", err)
		}
		end()
		if err := process(t.Context(), worker, ticket, works); err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}

func TestAccountIsFreeAfterADetachThatWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		if _, err := accept(t.Context(), srv.Client(), "17", 48*time.Hour); !errors.Is(err, relock.ErrInvalidOption) {
			t.Errorf("kept for two days: %v, want ErrInvalidOption", err)
		}
		srv.AssertFree("accounts/17")
	})
}

// A pauseError stops its reader, as a process stands still, for longer than a lease.
type pauseError struct{}

func (pauseError) Error() string {
	virtual.Sleep(time.Minute)
	return "given up"
}

// A lost hold that nobody has released would bar its owner.
func TestOwnerLocksAgainAfterALossBehindARefusedDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, owner := relocktest.New(t), relock.WithOwner(t.Context(), "request 4711")
		ctx, giveUp := context.WithCancelCause(owner)
		client := srv.Client(relock.Defaults(relock.NoWatchdog()), relock.Trace(relock.Hooks{
			Acquired: func(context.Context, relock.Event) { giveUp(pauseError{}) },
		}))
		if _, err := accept(ctx, client, "17", time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that Detach refused an ended context", err)
		}
		if _, err := accept(owner, client, "17", time.Minute); err != nil {
			t.Error(err)
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
