package relockgocron_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

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
	)
	return scheduler, err
}

func oneRuns(ctx context.Context, client *relock.Client) (gocron.Scheduler, error) {
	election := client.NewElection("scheduler")
	go func() { _ = election.Run(ctx, relockgocron.Lead) }()
	scheduler, err := gocron.NewScheduler(
		gocron.WithDistributedElector(relockgocron.Elector(election)),
	)
	return scheduler, err
}

func TestPageOfGocronRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, ran := relocktest.New(t).Client(), new(runs)
		s, err := firstRuns(client, ran.note)
		must(t, err)
		s.Start()
		defer func() { must(t, s.Shutdown()) }()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		leads, err := oneRuns(ctx, client)
		must(t, err)
		_, err = leads.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(ran.note))
		must(t, err)
		leads.Start()
		defer func() { must(t, leads.Shutdown()) }()
		virtual.Sleep(time.Minute + time.Second)
		if ran.count() != 2 {
			t.Errorf("%d runs, want one of each scheduler", ran.count())
		}
	})
}
