package relock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// This file is what a call says at the end of its wait: that the lock is taken, which
// somebody must have told it, or what was the matter with Redis.

// calm is how long a request may be under way before the end of a wait calls it
// unanswered: another one was answered before it, and this one is likely to be.
const calm = 100 * time.Millisecond

// A silence is since when Redis owes an answer. The zero value: it does not.
type silence struct {
	since clock.Instant // when the first request left that has not been answered
	last  error         // how the latest of them failed; nil: it is under way
}

// asked notes that a request leaves.
func (s *silence) asked(now clock.Instant) {
	if s.since.IsZero() {
		s.since = now
	}
}

// ended notes how a request ended: nil, it was answered.
func (s *silence) ended(err error) {
	if err == nil {
		*s = silence{}
	} else if !s.since.IsZero() {
		s.last = err
	}
}

// trouble is what is the matter, or nil.
func (s *silence) trouble(now clock.Instant) error {
	switch {
	case s.since.IsZero():
		return nil
	case s.last != nil:
		return &requestError{s.last}
	case now.Sub(s.since) > calm:
		return unanswered(now.Sub(s.since))
	}
	return nil
}

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

// word notes that Redis has answered a request of the line's, at some time: whoever
// stands in it has asked nothing, and goes by that. It needs r.mu.
func (r *room) word(a *acquisition, now clock.Instant) {
	if line := a.line(); line != nil {
		line.said = now
	}
}

// noWord forgets what Redis has said: it is out of date. It needs r.mu.
func (r *room) noWord(of flow) {
	if line := r.lineOf(of); line != nil {
		line.said, line.owes = clock.Instant{}, silence{}
	}
}

// line returns who stands behind the acquisition, or nil. It needs room.mu.
func (a *acquisition) line() *line {
	if !a.front {
		return nil
	}
	return a.room.lineOf(a.flow())
}

// owe notes that a request of the entry leaves. It needs room.mu.
func (e *entry) owe(now clock.Instant) {
	e.owes.asked(now)
	if line := e.line(); line != nil {
		line.owes.asked(now)
	}
}

// paid notes how a request ended: nil, it was answered. Redis owes the answer still
// where only its caller has gone. It needs room.mu.
func (a *acquisition) paid(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	if a.entry != nil {
		a.entry.owes.ended(err)
	}
	if line := a.line(); line != nil {
		line.owes.ended(err)
	}
}

// hears returns whether who stands in line since began knows from Redis that the
// lock is taken: this client holds it for one of the line, or Redis has said so to
// the front since, or before and owes no answer. trouble is what is the matter with
// Redis at the end, or nil. It needs r.mu.
func (r *room) hears(of flow, began, now clock.Instant) (taken bool, trouble error) {
	for _, s := range r.sessions.all() {
		if s.front && s.flow() == of && !s.over && !s.term.Over(now) {
			return true, nil
		}
	}
	line := r.lineOf(of)
	if line == nil {
		return false, nil
	}
	trouble = line.owes.trouble(now)
	return !line.said.IsZero() && (trouble == nil || began.Until(line.said) >= 0), trouble
}

// over is the error of a call whose context ends while it stands in line, or while
// the acquisition waits for which it has asked. It says what was the matter with Redis.
func (w *waiting) over(a *acquisition) error {
	r := w.room
	r.mu.Lock()
	now := r.c.clock.Now()
	taken, trouble := r.hears(w.flow(), w.began, now)
	if a != nil && !a.front {
		taken, trouble = false, nil
		if a.entry != nil {
			trouble = a.entry.owes.trouble(now)
		}
	}
	w.taken = w.taken || taken
	if trouble == nil && !w.taken {
		trouble = unanswered(now.Sub(w.began))
	}
	r.mu.Unlock()
	return w.overOr(trouble)
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
	return unanswered(w.room.c.clock.Now().Sub(w.began))
}
