package relock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/room"
)

// This file is what a call says at the end of its wait: that the lock is taken, which
// somebody must have told it, or what was the matter with Redis.

// errLateAnswers is why answers are of no use: clocks that are minutes apart, or a slot
// that is moving.
var errLateAnswers = errors.New("redis has answered nothing but that the request came too late, or to a server that lacks one of its keys")

// unanswered is the error of a request that has waited for so long.
func unanswered(d time.Duration) error {
	return &requestError{fmt.Errorf("redis has not answered for %v", d.Round(time.Microsecond))}
}

// A waitError is the cause with which the wait of a TryLock ends.
type waitError time.Duration

func (waitError) Error() string { return "wait is over" }

// over is the error of a call whose context ends while it stands in line, or while
// the acquisition waits for which it has asked. It says what was the matter with Redis.
func (w *waiting) over(a *acquisition) error {
	k := w.keeper
	var of *room.Acquisition
	if a != nil {
		of = &a.Acquisition
	}
	k.mu.Lock()
	now := k.c.clock.Now()
	taken, trouble := k.room.Hears(w.want(), of, w.began, now)
	k.mu.Unlock()
	w.taken = w.taken || taken
	switch {
	case trouble.Err != nil:
		return w.overOr(trouble.Err)
	case trouble.Is():
		return w.overOr(unanswered(trouble.Silent))
	case !w.taken:
		return w.overOr(unanswered(now.Sub(w.began)))
	}
	return w.overOr(nil)
}

// overOr returns the context's error if that has ended, with err as what was
// the matter until then; else err.
func (w *waiting) overOr(err error) error {
	switch {
	case err == nil:
		return ended(w.ctx)
	case w.ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", ended(w.ctx), err)
	}
	return err
}

// failed is the error of a request that failed: where the context has ended
// meanwhile it went unanswered, since sent.
func failed(ctx context.Context, err error, now, sent clock.Instant) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return unanswered(now.Sub(sent))
	}
	return &requestError{err}
}

// verdict makes of the end of a TryLock's wait what that returns: ErrNotAcquired where
// it was told that the lock is taken, by Redis or by who holds it in this client;
// else an error, as nobody knows who has it.
func (w *waiting) verdict(err error) error {
	wait, bounded := errors.AsType[waitError](context.Cause(w.ctx))
	switch {
	case !bounded || !errors.Is(err, wait):
		return err
	case w.occupied:
		return errOccupied
	case w.taken && wait > 0:
		return fmt.Errorf("%w within %v", ErrNotAcquired, time.Duration(wait))
	case w.taken:
		return ErrNotAcquired
	}
	if trouble, is := errors.AsType[*requestError](err); is {
		return trouble
	}
	return unanswered(w.keeper.c.clock.Now().Sub(w.began))
}
