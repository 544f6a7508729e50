// Package relockgocron lets schedulers of gocron, in any number of processes, run each job in one
// of them. With [Locker] the first process runs the job. With [Elector] one process runs all jobs
// for as long as it leads.
package relockgocron

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/relock-go/relock"
)

// ErrNotLeader is the error of an Elector in a process that does not lead: its scheduler runs no job.
var ErrNotLeader = errors.New("this process does not lead")

// Locker returns a gocron.Locker for jobs of the interval every. It runs each of them at most once in nine tenths of
// that time, over all schedulers, even if their clocks differ: the job's name stays taken for that long from the
// beginning of a run. Without that rest, a job shorter than the difference of the clocks would run in every scheduler,
// because gocron unlocks when the job ends.
//
// The lock's name is the job's name (gocron.WithName). A Locker is for jobs of one interval. Give it to
// gocron.WithDistributedJobLocker, or to gocron.WithDistributedLocker if all jobs of the scheduler have that interval.
// For a crontab the interval is the shortest time between two runs. If nine tenths of it are out of the bounds of
// relock.AtLeast, each Lock returns relock.ErrInvalidOption. With an Owner among the options it returns
// relock.ErrOwnerMismatch, because runs of one owner would enter each other.
//
// The second scheduler does not wait. Its job does not run, and gocron calls AfterLockError with an error that is
// relock.ErrNotAcquired. If Redis does not answer, the job does not run either, and that error is
// relock.ErrUnavailable. A job that takes longer than the interval keeps its name. If its lock is lost, the job goes
// on: only the client's Logger and Hooks tell.
func Locker(client *relock.Client, every time.Duration, opts ...relock.LockOption) gocron.Locker {
	rest := (every / 10 * 9).Truncate(time.Millisecond) // AtLeast only accepts whole ms
	return &locker{client: client, opts: append(slices.Clip(opts), relock.AtLeast(rest))}
}

type locker struct {
	client *relock.Client
	opts   []relock.LockOption
}

func (l *locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	hold, err := l.client.NewLock(key, l.opts...).TryAcquire(relock.WithNewOwner(ctx), 0)
	if err != nil {
		return nil, err
	}
	return held{hold}, nil
}

// held is a hold with gocron's Unlock.
type held struct{ *relock.Hold }

// Unlock does not depend on ctx, which may have ended with the scheduler.
func (h held) Unlock(context.Context) error { return h.Release() }

// Elector returns a gocron.Elector that judges by the clock, without I/O. Its IsLeader returns the error of its context
// if that has ended, nil if this process leads, and else ErrNotLeader. gocron asks before each job: one that has begun
// goes on after a loss.
//
// The process must also campaign: call e.Run(ctx, Lead) on a goroutine of its own, and heed its error. After an error
// this process runs no job, and gocron tells nobody. End ctx only after the scheduler's Shutdown has returned nil.
// Otherwise a job that still runs here can run beside one of the next leader.
func Elector(e *relock.Election) gocron.Elector { return elector{e} }

type elector struct{ election *relock.Election }

func (e elector) IsLeader(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !e.election.IsLeader():
		return ErrNotLeader
	}
	return nil
}

// Lead is for [relock.Election.Run], to lead without doing anything: it blocks until ctx ends, and returns the cause of
// that. So a process leads until its hold is lost, and then Run campaigns again, or until the context of Run ends.
func Lead(ctx context.Context, _ relock.Term) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
