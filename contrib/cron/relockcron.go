// Package relockcron has jobs of robfig/cron run in one process of many.
package relockcron

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/relock-go/relock"
)

// Once returns a wrapper that runs a job at most once each time it is due, over all processes that use it under that
// name. After a run the name stays taken until nine tenths of every have passed since the run began, even if the job
// ends sooner. every is the shortest time between two runs of the job's schedule. The clocks of the processes may
// differ by up to a tenth of it. A job that is still running when it is due again is skipped. If Redis does not answer,
// the job does not run. With an Owner among the options it never runs, and the logger gets ErrOwnerMismatch: runs of
// one owner would not exclude each other.
//
// The logger is told of a skipped run as information, and of a failure, such as a bad option, as an error. nil means
// silence. A job whose lock is lost runs on, because cron cannot tell it. Meanwhile this process skips its runs, and
// others may run it. When the job has ended, the logger gets relock.ErrLost. A job that must know of the loss calls
// relock.Lock.TryDo itself.
func Once(client *relock.Client, name string, every time.Duration, logger cron.Logger, opts ...relock.LockOption) cron.JobWrapper {
	if logger == nil {
		logger = cron.DiscardLogger
	}
	rest := (every / 10 * 9).Truncate(time.Millisecond) // AtLeast only accepts whole ms
	lock := client.NewLock(name, append(slices.Clip(opts), relock.AtLeast(rest))...)
	return func(j cron.Job) cron.Job {
		return cron.FuncJob(func() {
			ran, err := lock.TryDo(relock.WithNewOwner(context.Background()), 0, func(context.Context) error {
				j.Run()
				return nil
			})
			if !ran && errors.Is(err, relock.ErrLost) {
				err = nil // an earlier run goes on here: it has lost the lock, and not unlocked it yet
			}
			switch {
			case err != nil:
				logger.Error(err, "lock", "name", name, "ran", ran)
			case !ran:
				logger.Info("skip", "name", name)
			}
		})
	}
}
