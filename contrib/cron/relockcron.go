// Package relockcron has jobs of robfig/cron run in one process of many.
package relockcron

import (
	"context"
	"slices"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/relock-go/relock"
)

// Once returns a wrapper by which a job runs at most once each time it is due, over all
// processes that have it under that name: after a run the name stays taken until nine
// tenths of every, in whole milliseconds, have passed since the run began, however soon the
// job ends. every is the shortest time between two runs of the job's schedule; the clocks
// of the processes may differ by up to a tenth of it. A job that is still running when it
// is due again is skipped.
//
// The logger is told of a run that is skipped as information, and of what goes wrong as
// an error; nil is for silence. A job whose lock is lost meanwhile runs on, as cron has no
// way to tell it: one that must hear of it calls relock.Lock.TryDo by itself.
func Once(client *relock.Client, name string, every time.Duration, logger cron.Logger, opts ...relock.LockOption) cron.JobWrapper {
	if logger == nil {
		logger = cron.DiscardLogger
	}
	rest := (every / 10 * 9).Truncate(time.Millisecond) // others are refused
	lock := client.NewLock(name, append(slices.Clip(opts), relock.AtLeast(rest))...)
	return func(j cron.Job) cron.Job {
		return cron.FuncJob(func() {
			ran, err := lock.TryDo(context.Background(), 0, func(context.Context) error {
				j.Run()
				return nil
			})
			switch {
			case err != nil:
				logger.Error(err, "lock", "name", name, "ran", ran)
			case !ran:
				logger.Info("skip", "name", name)
			}
		})
	}
}
