package relockgocron_test

import (
	"context"
	"errors"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/relock-go/relock"
	relockgocron "github.com/relock-go/relock/contrib/gocron"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// What README.md shows.

func firstRuns(client *relock.Client, report func()) (gocron.Scheduler, error) {
	scheduler, err := gocron.NewScheduler(
		gocron.WithDistributedLocker(relockgocron.Locker(client, time.Minute)),
	)
	if err != nil {
		return nil, err
	}
	_, err = scheduler.NewJob(
		gocron.DurationJob(time.Minute),
		gocron.NewTask(report),
		gocron.WithName("report"), // the name of the lock
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, name string, err error) {
			if !errors.Is(err, relock.ErrNotAcquired) {
				log.Printf("%s did not run: %v", name, err) // for example an outage of Redis
			}
		})),
	)
	return scheduler, err
}

func oneRuns(client *relock.Client, failed func(error)) (gocron.Scheduler, func() error, error) {
	election := client.NewElection("scheduler")
	ctx, resign := context.WithCancel(context.Background())
	go func() {
		if err := election.Run(ctx, relockgocron.Lead); ctx.Err() == nil {
			failed(err) // this process will not lead any more
		}
	}()
	scheduler, err := gocron.NewScheduler(
		gocron.WithDistributedElector(relockgocron.Elector(election)),
		gocron.WithStopTimeout(time.Minute), // longer than each job takes
	)
	end := func() error {
		if err := scheduler.Shutdown(); err != nil {
			return err // a job still runs: lead until the process has ended
		}
		resign()
		return nil
	}
	return scheduler, end, err
}

func TestPageOfGocronRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, ran := relocktest.New(t), new(runs)
		client := srv.Client()
		s, err := firstRuns(client, ran.note)
		must(t, err)
		s.Start()
		defer func() { must(t, s.Shutdown()) }()
		leads, end, err := oneRuns(client, func(err error) { t.Errorf("the campaign ended with %v", err) })
		must(t, err)
		_, err = leads.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(ran.note))
		must(t, err)
		leads.Start()
		virtual.Sleep(time.Minute + time.Second)
		if ran.count() != 2 {
			t.Errorf("%d runs, want one of each scheduler", ran.count())
		}
		must(t, end())
		synctest.Wait()
		srv.AssertFree("scheduler")
	})
}

// The name is in use as another kind of lock. Fails when the page's code leaves that untold: then no job ever runs.
func TestPageOfGocronTellsThatNoProcessCanLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := relocktest.New(t).Client()
		other, err := client.NewLock("scheduler").Acquire(t.Context())
		must(t, err)
		told := make(chan error, 1)
		_, end, err := oneRuns(client, func(err error) { told <- err })
		must(t, err)
		if err := <-told; !errors.Is(err, relock.ErrKind) {
			t.Errorf("told %v, want ErrKind", err)
		}
		must(t, end())
		must(t, other.Release())
	})
}
