package relockgocron_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/relock-go/relock"
	relockgocron "github.com/relock-go/relock/contrib/gocron"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// candidate is a process that runs the job while it leads.
func candidate(t *testing.T, c *relock.Client, ran *runs) {
	t.Helper()
	election := c.NewElection("scheduler")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- election.Run(ctx, relockgocron.Lead) }()
	start(t, ran.note, gocron.WithDistributedElector(relockgocron.Elector(election)))
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the campaign ended with %v", err)
		}
	})
}

func TestOneProcessRunsTheJobsAndAnotherTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		a, b := srv.Client(), srv.Client()
		var byA, byB runs
		candidate(t, a, &byA)
		synctest.Wait()
		candidate(t, b, &byB)

		virtual.Sleep(10*time.Minute + time.Second)
		if byA.count() != 10 || byB.count() != 0 {
			t.Errorf("the leader ran %d times, the other %d times, want 10 and none", byA.count(), byB.count())
		}
		heal := srv.Partition(a)
		virtual.Sleep(10 * time.Minute)
		if n := byB.count(); byA.count() != 10 || n < 9 {
			t.Errorf("after the partition the old leader ran %d times, the new one %d times", byA.count()-10, n)
		}
		heal()
		before := byB.count()
		virtual.Sleep(10 * time.Minute)
		if byA.count() != 10 || byB.count() != before+10 {
			t.Error("a leader that is healthy gave way")
		}
	})
}

// Run gives up the lead when its context ends, and knows nothing of jobs. So a job of the next leader begins beside one
// that still runs here: first the scheduler has to end, as the page's code has it.
func TestALeaderThatResignsBeforeItsJobsEndDoesNotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, end, ran := relocktest.New(t), make(chan struct{}), new(runs)
		election := srv.Client().NewElection("scheduler")
		ctx, resign := context.WithCancel(t.Context())
		go func() { _ = election.Run(ctx, relockgocron.Lead) }()
		synctest.Wait()
		start(t, func() {
			ran.note()
			<-end
		}, gocron.WithDistributedElector(relockgocron.Elector(election)))
		candidate(t, srv.Client(), ran)
		virtual.Sleep(time.Minute + time.Second)
		resign()
		virtual.Sleep(time.Minute)
		if ran.count() != 2 {
			t.Errorf("%d runs, want that the next leader ran the job beside the first", ran.count())
		}
		close(end)
	})
}

// Fails when a term ends with another error than the cause, or when a scheduler that has ended goes on to lead.
func TestLeadReturnsTheCauseOfItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		election := relocktest.New(t).Client().NewElection("scheduler")
		elector, cause := relockgocron.Elector(election), errors.New("the shop is closed")
		ctx, stop := context.WithCancelCause(t.Context())
		led, ended := make(chan error, 1), make(chan error, 1)
		go func() {
			ended <- election.Run(ctx, func(ctx context.Context, term relock.Term) error {
				led <- relockgocron.Lead(ctx, term)
				return nil
			})
		}()
		synctest.Wait()
		must(t, elector.IsLeader(t.Context()))
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := elector.IsLeader(over); !errors.Is(err, context.Canceled) {
			t.Errorf("a leader whose scheduler has ended: %v", err)
		}
		stop(cause)
		if err := <-led; !errors.Is(err, cause) {
			t.Errorf("Lead: %v, want the cause", err)
		}
		must(t, <-ended)
	})
}

func TestWhoDoesNotLeadIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elector := relockgocron.Elector(relocktest.New(t).Client().NewElection("scheduler"))
		if err := elector.IsLeader(t.Context()); !errors.Is(err, relockgocron.ErrNotLeader) {
			t.Errorf("%v, want ErrNotLeader", err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := elector.IsLeader(over); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that the scheduler has ended", err)
		}
	})
}
