// Package relockgocron has schedulers of gocron, in any number of processes, run a job in
// one of them. [Locker] lets whichever comes first run it; [Elector] has one process run
// all jobs for as long as it leads.
package relockgocron

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/relock-go/relock"
)

// ErrNotLeader is why a scheduler that does not lead runs no job.
var ErrNotLeader = errors.New("another process leads")

// Locker returns a gocron.Locker by which a job of that interval runs at most once in it,
// whichever scheduler starts it, and however their clocks differ: after a run the job's
// name stays taken until nine tenths of the interval, in whole milliseconds, have passed
// since the run began.
// gocron locks when a job starts and unlocks when it ends, so without that rest every
// scheduler would run a job that is shorter than the differences of their clocks, or whose
// schedulers were not started at the same instant.
//
// The lock's name is the job's (gocron.WithName). A Locker is for jobs of one interval:
// give it to gocron.WithDistributedJobLocker, or to gocron.WithDistributedLocker where
// all jobs of the scheduler have that interval. For a crontab it is the shortest time
// between two runs. An interval that is too short or too long is refused by each Lock.
//
// Who comes second does not wait: its job is not run, and gocron tells
// AfterLockError of an error that is relock.ErrNotAcquired.
func Locker(client *relock.Client, every time.Duration, opts ...relock.LockOption) gocron.Locker {
	rest := (every / 10 * 9).Truncate(time.Millisecond) // others are refused
	return &locker{client: client, opts: append(slices.Clip(opts), relock.AtLeast(rest))}
}

type locker struct {
	client *relock.Client
	opts   []relock.LockOption
}

func (l *locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	hold, err := l.client.NewLock(key, l.opts...).TryAcquire(ctx, 0)
	if err != nil {
		return nil, err
	}
	return held{hold}, nil
}

// held is a hold as gocron ends it.
type held struct{ *relock.Hold }

// Unlock does not depend on ctx, which may have ended with the scheduler.
func (h held) Unlock(context.Context) error { return h.Release() }

// Elector returns a gocron.Elector that asks whether this process leads: by the clock, and
// without asking Redis. Somebody has to campaign: run the election with [Lead] beside the
// scheduler, until the process ends.
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

// Lead is for [relock.Election.Run]: it leads for as long as it can.
func Lead(ctx context.Context, _ relock.Term) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
