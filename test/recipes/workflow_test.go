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

// transfer takes both accounts, in one order. With one account twice it returns ErrInvalidOption.
func transfer(ctx context.Context, client *relock.Client, from, to string, move func(ctx context.Context) error) error {
	both := relock.NewMulti(client.NewLock("accounts/"+from), client.NewLock("accounts/"+to))
	return both.Do(ctx, move)
}

func TestTransfersInOppositeDirectionsDoNotBlockEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error, 20)
		for i := range cap(done) {
			from, to := "a", "b"
			if i%2 > 0 {
				from, to = to, from
			}
			client := srv.Client()
			go func() {
				done <- transfer(ctx, client, from, to, func(context.Context) error {
					virtual.Sleep(time.Second)
					return nil
				})
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTransferToTheSameAccountIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := transfer(t.Context(), relocktest.New(t).Client(), "a", "a", func(context.Context) error {
			t.Error("it was made")
			return nil
		})
		if !errors.Is(err, relock.ErrInvalidOption) {
			t.Errorf("%v, want ErrInvalidOption", err)
		}
	})
}

// checkout is a workflow: it locks the cart, and so do the steps that it calls.
func checkout(ctx context.Context, client *relock.Client, cart string) error {
	ctx = relock.WithNewOwner(ctx) // what is called under ctx enters what is held
	return client.NewLock("carts/"+cart).Do(ctx, func(ctx context.Context) error {
		return reserve(ctx, client, cart)
	})
}

// reserve may be called by itself as well.
func reserve(ctx context.Context, client *relock.Client, cart string) error {
	return client.NewLock("carts/"+cart).Do(ctx, func(ctx context.Context) error {
		return ctx.Err()
	})
}

func TestStepsEnterWhatTheirWorkflowHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		client := srv.Client()
		if err := errors.Join(checkout(t.Context(), client, "17"), reserve(t.Context(), client, "17")); err != nil {
			t.Error(err)
		}
		srv.AssertFree("carts/17")
	})
}
