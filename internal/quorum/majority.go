package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Majority is one success of a Lock. It is held while a majority of the primaries is,
// for as long as the best majority can be trusted, and lost when there is none. Its
// methods may be called from any goroutine.
type Majority struct {
	lock  *Lock
	until time.Time       // by MaxHold; zero: without end. It is set before anybody has it
	end   context.Context // with the values of the call's, ends with the hold, which is the cause
	stop  context.CancelCauseFunc
	votes chan struct{} // a primary has answered, or a member has changed; one place
	gone  chan struct{} // cuts a pause short: a primary has been lost; one place
	lost  chan struct{}

	mu      sync.Mutex // guards the following fields; nothing is called under it
	token   int64      // 0 while it is gathered
	owner   string     // whose the token is
	err     error      // why it has ended
	members []member   // by primary
}

// A member is what one primary is to a Majority.
type member struct {
	hold     Hold
	token    int64 // of the hold, and so is the owner
	owner    string
	raised   bool      // its counter has the majority's token: it counts
	asking   bool      // a request is under way
	leaving  bool      // what it has granted is being given back
	since    time.Time // when that, or the request for a hold, began
	answered bool      // since the attempt began
	forced   bool      // an operator has ended its hold: the primary is not asked again
	err      error     // of the latest request that failed, or why its hold was lost since
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

// Err returns why it has ended, or nil, judged by the clock.
func (h *Majority) Err() error {
	h.mu.Lock()
	err := h.err
	h.mu.Unlock()
	if err != nil || !h.trust().IsZero() {
		return err
	}
	return h.finish(h.why())
}

// why is why there is no majority.
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

// finish ends it for that reason, unless it has ended: it returns the reason then.
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

// Lose has it be lost, unless it has ended: somebody else has a later majority.
func (h *Majority) Lose() { _ = h.finish(h.lock.Errors.Lost) }

// trust is until when the best majority is certain.
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

// TrustedUntil returns until when it is certain as things stand; the zero time once it
// is lost or released.
func (h *Majority) TrustedUntil() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	return h.trust()
}

// Lost is closed when it is lost.
func (h *Majority) Lost() <-chan struct{} { return h.lost }

// AfterEnd has f called on a goroutine of its own with why it has ended, once it has,
// unless stop comes before.
func (h *Majority) AfterEnd(f func(why error)) (stop func() bool) {
	return context.AfterFunc(h.end, func() { f(context.Cause(h.end)) })
}

// Token returns the fencing token, and the owner whose it is.
func (h *Majority) Token() (token int64, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token, h.owner
}

// Release ends it. It returns nil when it was held until now, else why it had ended, or what
// is Lost where the primaries say so; and what is Unconfirmed when so few of them have
// confirmed it that nobody else can hold yet.
func (h *Majority) Release() error {
	before := h.Err()
	_ = h.finish(h.lock.Errors.NotHeld)
	h.mu.Lock()
	h.err = h.lock.Errors.NotHeld // from now on, also after a loss
	h.mu.Unlock()
	found := h.release(context.Background(), Hold.Release)
	if before != nil {
		return before
	}
	return found
}

// GiveBack ends what has been gathered in vain, for a call that ends with ctx. It waits for
// no longer than an attempt does: the call may be one that makes one attempt.
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
		// Later attempts also wait for the rest: the remains of several calls add up to a
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

// settled notes that nothing is asked of a primary any more, and nothing is had of it.
func (h *Majority) settled(primary int) {
	h.mu.Lock()
	h.members[primary].asking, h.members[primary].leaving = false, false
	h.mu.Unlock()
	signal(h.votes)
}

// release gives back what the primaries have granted, and waits until somebody else
// could hold a majority, and until it is known whether one was held; the rest goes on
// without the caller. A primary that does not answer may have held it.
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
	held, mayHave := 0, left // had it until now, and may have had it
	for ; left > 0 && (free < need || held < need && mayHave >= need); left-- {
		select {
		case err := <-results:
			switch {
			case errors.Is(err, h.lock.Errors.Unconfirmed):
				unconfirmed = err
				continue
			case err == nil:
				held++
			default: // it no longer had it, and so nobody knew of the loss
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
