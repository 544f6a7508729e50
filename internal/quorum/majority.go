package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Majority is one acquisition of a Lock. It is held while a majority of the primaries is held, for as long
// as the best majority can be trusted. Without one it is lost. Its methods may be called from any goroutine.
type Majority struct {
	lock  *Lock
	until time.Time       // by MaxHold; zero: without limit. It is set before any caller has the Majority
	end   context.Context // has the values of the call's context; ends with the hold, and its cause says why
	stop  context.CancelCauseFunc
	votes chan struct{} // a primary has answered, or a member has changed; capacity one
	gone  chan struct{} // interrupts a pause: a primary was lost; capacity one
	lost  chan struct{}

	mu      sync.Mutex // guards the following fields; nothing is called under it
	token   int64      // 0 while it is acquired
	owner   string     // the owner that the token belongs to
	err     error      // why the Majority has ended
	members []member   // by primary
}

// A member is the state of one primary in a Majority.
type member struct {
	hold     Hold
	token    int64 // of the hold, as is owner
	owner    string
	raised   bool      // its counter has the majority's token, so it counts
	asking   bool      // a request is in flight
	leaving  bool      // its hold is being given back
	since    time.Time // when the request or the giving back began
	answered bool      // since the attempt began
	forced   bool      // an operator has ended its hold, so the primary is not asked again
	err      error     // of the latest failed request, or why its hold was lost
}

func (l *Lock) begin(ctx context.Context) *Majority {
	h := &Majority{lock: l, votes: make(chan struct{}, 1), gone: make(chan struct{}, 1), lost: make(chan struct{})}
	h.members = make([]member, len(l.Primaries))
	h.end, h.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	return h
}

func (h *Majority) snapshot() []member {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.members)
}

// Err returns why the Majority has ended, judged by the clock, or nil.
func (h *Majority) Err() error {
	h.mu.Lock()
	err := h.err
	h.mu.Unlock()
	if err != nil || !h.trust().IsZero() {
		return err
	}
	return h.finish(h.why())
}

// why returns the error of a lost majority.
func (h *Majority) why() error {
	open, errs := len(h.members), h.lock.Errors
	for _, m := range h.snapshot() {
		if m.hold != nil && errors.Is(m.hold.Err(), errs.Closed) || errors.Is(m.err, errs.Closed) {
			open--
		}
	}
	if open < h.lock.need() {
		return fmt.Errorf("%w: %w", errs.Lost, errs.Closed)
	}
	return errs.Lost
}

// finish ends the Majority for that reason, unless it has ended before. It returns the reason that counts.
func (h *Majority) finish(why error) (ended error) {
	h.mu.Lock()
	if h.err == nil {
		h.err = why
		if errors.Is(why, h.lock.Errors.Lost) {
			close(h.lost)
		}
	}
	ended = h.err
	h.mu.Unlock()
	h.stop(ended)
	return ended
}

// Lose marks the Majority as lost, unless it has ended: another owner has a later majority.
func (h *Majority) Lose() { _ = h.finish(h.lock.Errors.Lost) }

// trust returns until when the best majority can be trusted.
func (h *Majority) trust() time.Time {
	var untils []time.Time
	for _, m := range h.snapshot() {
		if m.hold != nil && m.raised {
			untils = append(untils, m.hold.TrustedUntil())
		}
	}
	until := Trust(h.lock.need(), untils)
	switch {
	case h.until.IsZero() || until.Before(h.until):
		return until
	case time.Now().Before(h.until):
		return h.until
	}
	return time.Time{}
}

// TrustedUntil returns until when the Majority can be trusted as things stand. It is the zero time once it is
// lost or released.
func (h *Majority) TrustedUntil() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	return h.trust()
}

// Lost returns a channel that is closed when the Majority is lost.
func (h *Majority) Lost() <-chan struct{} { return h.lost }

// AfterEnd calls f on its own goroutine when the Majority has ended, unless stop is called before. why is the
// reason.
func (h *Majority) AfterEnd(f func(why error)) (stop func() bool) {
	return context.AfterFunc(h.end, func() { f(context.Cause(h.end)) })
}

// Token returns the fencing token and the owner that it belongs to.
func (h *Majority) Token() (token int64, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token, h.owner
}

// Release ends the Majority. It returns nil if it was held until now, and otherwise why it had ended. It
// returns the error Lost if the primaries say so, and Unconfirmed if too few have confirmed it for another
// owner to hold a majority.
func (h *Majority) Release() error {
	before := h.Err()
	_ = h.finish(h.lock.Errors.NotHeld)
	h.mu.Lock()
	h.err = h.lock.Errors.NotHeld // from now on, even after a loss
	h.mu.Unlock()
	found := h.release(context.Background(), Hold.Release)
	if before != nil {
		return before
	}
	return found
}

// GiveBack ends what a failed call has acquired, until ctx ends. It waits no longer than an attempt does,
// because the call may be a single attempt.
func (h *Majority) GiveBack(ctx context.Context) {
	_ = h.finish(h.lock.Errors.NotHeld)
	h.mu.Lock()
	for i := range h.members {
		if m := &h.members[i]; m.hold != nil {
			m.leaving, m.since = true, time.Now()
		}
	}
	h.mu.Unlock()
	for i, m := range h.snapshot() {
		if m.hold != nil {
			h.lock.beside(i, func() { _ = m.hold.Forgo(); h.settled(i) })
		}
	}
	left, done := func() {}, make(chan struct{})
	if h.lock.Leaving != nil {
		left = h.lock.Leaving()
	}
	h.lock.beside(0, func() {
		defer left()
		patience := h.lock.patience()
		h.await(context.Background(), patience, func(m member) (counts, open bool) { return !m.leaving, m.leaving })
		close(done)
		// Later attempts also wait for the rest, because the remains of several calls can add up to a
		// majority. They do not wait for a primary that has been silent for long.
		h.await(context.Background(), patience, func(m member) (counts, open bool) {
			return false, (m.asking || m.leaving) && time.Since(m.since) < patience
		})
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// settled records that no request to a primary is in flight and that nothing is held there.
func (h *Majority) settled(primary int) {
	h.mu.Lock()
	h.members[primary].asking, h.members[primary].leaving = false, false
	h.mu.Unlock()
	signal(h.votes)
}

// release gives back what the primaries have granted. It waits until another owner could hold a majority, and
// until it is known whether this one was held. The rest goes on in the background. A primary that does not
// answer may have been held.
func (h *Majority) release(ctx context.Context, end func(Hold) error) (unconfirmed error) {
	free, need := len(h.members), h.lock.need()
	results := make(chan error, free)
	for i, m := range h.snapshot() {
		if m.hold != nil {
			free--
			h.lock.beside(i, func() { results <- end(m.hold) })
		}
	}
	left := len(h.members) - free
	held, mayHave := 0, left // held until now for certain, and held until now perhaps
	for ; left > 0 && (free < need || held < need && mayHave >= need); left-- {
		select {
		case err := <-results:
			switch {
			case errors.Is(err, h.lock.Errors.Unconfirmed):
				unconfirmed = err
				continue
			case err == nil:
				held++
			default: // the primary no longer had the hold, so nobody knew of the loss
				mayHave--
			}
			free++
		case <-ctx.Done():
			return nil
		}
	}
	switch {
	case mayHave < need:
		return h.lock.Errors.Lost
	case free >= need:
		return nil
	}
	return unconfirmed
}
