//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/relock-go/relock"
)

// once is do for a command that runs at most once in each interval.
func (j *job) once(ctx context.Context, signals <-chan os.Signal) (status int, err error) {
	var l *link
	err = j.interruptible(ctx, signals, func(ctx context.Context) (err error) {
		l, err = j.connect(ctx, j.about...)
		return err
	})
	if err != nil {
		if l != nil {
			l.close()
		}
		return 0, err
	}
	stop := func() {}
	defer func() {
		l.close()
		stop()
	}()
	ran, err := l.locks.Once(ctx, j.name, j.every, func(held context.Context) (err error) {
		select {
		case s := <-signals:
			return errors.Join(interrupted{s.(syscall.Signal)}, relock.ErrUnspent)
		default:
		}
		hold, _ := relock.FromContext(held, j.name)
		defer func() { stop = l.hurry(signals) }()
		if status, err = j.supervise(ctx, hold, signals); err == nil && (status == exitNotAcquired || !j.started) {
			err = relock.ErrUnspent
		}
		return err
	}, j.options()...)
	l.lost = errors.Is(err, relock.ErrLost) // do not wait to tell a Redis that has not answered
	switch _, stopped := errors.AsType[interrupted](err); {
	case err == nil && !ran:
		j.sayWhy(ctx, l)
		return j.unrun, nil
	case err == nil:
		return status, nil
	case ran && !stopped && errors.Is(err, relock.ErrClosed): // a signal has interrupted the release
		j.warn("%s", trimName(unreleased{err}))
		return status, nil
	case stopped, errors.Is(err, relock.ErrLost):
		return 0, err
	case errors.Is(err, relock.ErrUnconfirmed):
		j.warn("%s", trimName(unreleased{err}))
		return status, nil
	case errors.Is(err, relock.ErrUnspent):
		return status, nil
	}
	return 0, fmt.Errorf("the command did not run: %w", err)
}

// sayWhy reports why the command does not run.
func (j *job) sayWhy(ctx context.Context, l *link) {
	ctx, cancel := context.WithTimeout(ctx, hasty)
	defer cancel()
	info, _ := l.locks.NewLock(j.name).Info(ctx)
	switch {
	case len(info.Holders) > 0:
		j.note("skipped %q: it is still running, %s", j.name, whoHas(info))
	case info.Resting > 0:
		j.note("skipped %q: it has already run in this interval, which ends in %v", j.name, info.Resting.Round(time.Second))
	default:
		j.note("skipped %q: it has already run in this interval", j.name)
	}
}
