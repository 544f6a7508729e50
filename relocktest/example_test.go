package relocktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/relocktest"
)

var errBusy = errors.New("the report is being written")

// writeReport is the code under test: it waits for two hours, and then gives up.
func writeReport(ctx context.Context, client *relock.Client) error {
	ran, err := client.NewLock("report").TryDo(ctx, 2*time.Hour, func(ctx context.Context) error {
		select {
		case <-time.After(time.Minute): // the work
			return nil
		case <-ctx.Done(): // the lock is lost, or the caller has gone
			return context.Cause(ctx)
		}
	})
	if err == nil && !ran {
		return errBusy
	}
	return err
}

func TestReportIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		time.AfterFunc(time.Hour, srv.Hold("report"))
		if err := writeReport(t.Context(), srv.Client()); err != nil {
			t.Error(err)
		}
		srv.AssertFree("report")
	})
}

func TestReportIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		srv.Hold("report")
		if err := writeReport(t.Context(), srv.Client()); !errors.Is(err, errBusy) {
			t.Errorf("%v, want %v", err, errBusy)
		}
	})
}

func TestReportEndsWithItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		client, done := srv.Client(), make(chan error, 1)
		go func() { done <- writeReport(t.Context(), client) }()
		synctest.Wait() // until it is at work
		srv.Lose("report")
		if err := <-done; !errors.Is(err, relock.ErrLost) {
			t.Errorf("%v, want that the lock was lost", err)
		}
	})
}

func TestReportIsNotWrittenInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		defer srv.Outage()()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := writeReport(ctx, srv.Client())
		if err == nil || errors.Is(err, errBusy) {
			t.Errorf("%v, want what is the matter with Redis", err)
		}
	})
}

// A Fake is enough for code that is given a Locker.
func ExampleFake() {
	charge := func(ctx context.Context, account relock.Locker) error {
		if free, err := account.TryLock(ctx, time.Second); err != nil || !free {
			return fmt.Errorf("not charged: free %v, %w", free, err)
		}
		return account.Unlock()
	}

	var account relocktest.Fake
	fmt.Println(charge(context.Background(), &account), account.Locks())

	account.Fail(errors.New("redis is down"))
	fmt.Println(charge(context.Background(), &account))
	// Output:
	// <nil> 1
	// not charged: free false, redis is down
}
