package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Attempt asks all primaries at once. Where that splits them among several callers, who
// has the first that answers keeps what it has; the others give all back and queue there,
// unless one attempt is all they want. So one at a time waits for the rest while it holds
// anything. Callers who do not agree on which primary answers may wait for each other:
// for no longer than their patience, and until the answers to that are there.
//
// It fails with what is Taken where a majority has answered that somebody else holds, and
// with ErrFewAnswer where too few have answered; other errors are those of primaries, and
// of ctx.
func (l *Lock) Attempt(ctx context.Context, once bool) (_ *Majority, err error) {
	h := l.begin(ctx)
	defer func() {
		if err != nil {
			h.GiveBack(ctx)
		}
	}()
	err = h.collect(ctx, 0)
	if !once && errors.Is(err, l.Errors.Taken) {
		first, had := h.first()
		if !had {
			h.GiveBack(ctx)
			h = l.begin(ctx)
			err = h.queue(ctx, first)
		}
		if had || err == nil {
			err = h.collect(ctx, l.patience())
		}
		if err != nil && ctx.Err() != nil && !l.Errors.Final(err) { // which has cut this short, but not what a majority has said before
			err = l.Errors.Taken
		}
	}
	if err == nil {
		err = h.elect(ctx)
	}
	if err != nil {
		return nil, err
	}
	if l.MaxHold > 0 { // what was waited is no part of it, and a primary that is taken again begins none
		h.until = time.Now().Add(l.MaxHold + l.TTL)
	}
	go h.keep() // until it has ended
	return h, nil
}

// collect gathers, and checks that what has answered are servers of their own.
func (h *Majority) collect(ctx context.Context, wait time.Duration) error {
	err := h.gather(ctx, wait)
	if h.lock.Check == nil || err != nil && !errors.Is(err, h.lock.Errors.Taken) {
		return err
	}
	had, refused := make([]Hold, len(h.members)), []int(nil)
	for i, m := range h.snapshot() {
		switch {
		case m.hold != nil:
			had[i] = m.hold
		case m.answered:
			refused = append(refused, i)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, h.lock.patience())
	defer cancel()
	if same := h.lock.Check(ctx, had, refused); same != nil {
		return same
	}
	return err
}

// gather asks the primaries that are not had, and returns when a majority is, or all
// have answered, or none does any more.
func (h *Majority) gather(ctx context.Context, wait time.Duration) error {
	unlink := h.linkTo(ctx)
	defer unlink()
	for i, m := range h.snapshot() {
		if m.hold == nil {
			h.seek(i, wait)
		}
	}
	// What a primary says at the end of the wait is on its way for as long as any answer.
	h.await(ctx, wait+h.lock.patience(), func(m member) (counts, open bool) { return m.hold != nil, m.asking })
	return h.tally()
}

// linkTo has requests that are under way end with the call, until unlink.
func (h *Majority) linkTo(ctx context.Context) (unlink func() bool) {
	return context.AfterFunc(ctx, func() { h.stop(context.Cause(ctx)) })
}

// await returns when a majority counts, or nothing is open any more, or after limit.
func (h *Majority) await(ctx context.Context, limit time.Duration, judge func(m member) (counts, open bool)) {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		had, more := 0, false
		for _, m := range h.snapshot() {
			counts, open := judge(m)
			more = more || open
			if counts {
				had++
			}
		}
		if had >= h.lock.need() || !more {
			return
		}
		select {
		case <-h.votes:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tally is nil where a majority has been gathered, Taken where one has answered, and
// else what is the matter.
func (h *Majority) tally() error {
	var had, answered, final int
	var last, why error
	for i, m := range h.snapshot() {
		switch {
		case m.hold != nil:
			had++
			answered++
		case m.answered:
			answered++
		case m.err != nil && h.lock.Errors.Final(m.err):
			final++
			why = m.err
		case m.err != nil:
			last = fmt.Errorf("primary %d: %w", i, m.err)
		}
	}
	n, need := len(h.members), h.lock.need()
	switch {
	case had >= need:
		return nil
	case final > n-need:
		return why
	case answered >= need:
		return h.lock.Errors.Taken
	case last == nil:
		last = errors.New("no reply in time")
	}
	return fmt.Errorf("%w: %d of %d, and %d are needed: %w", ErrFewAnswer, answered, n, need, last)
}

// first is the first primary that has answered, and whether it is had.
func (h *Majority) first() (primary int, had bool) {
	for i, m := range h.snapshot() {
		if m.hold != nil || m.answered {
			return i, m.hold != nil
		}
	}
	return 0, false
}

// queue waits for one primary, for as long as it answers.
func (h *Majority) queue(ctx context.Context, at int) error {
	unlink := h.linkTo(ctx)
	defer unlink()
	of, patience := h.lock.Primaries[at], h.lock.patience()
	waits, cancel := context.WithCancelCause(h.end)
	defer cancel(nil)
	of.Spawn(func() { // a closed client answers without being watched
		for pause(waits, nil, patience) {
			asks, done := context.WithTimeout(waits, 2*patience)
			err := of.Probe(asks)
			done()
			if err != nil {
				cancel(err)
				return
			}
		}
	})
	hold, err := of.Queue(waits)
	h.adopt(at, hold, err)
	if err != nil { // also one that is final: that is for a majority to say
		return fmt.Errorf("%w: primary %d: %w", ErrFewAnswer, at, err)
	}
	return nil
}

// seek asks one primary, beside the caller.
func (h *Majority) seek(primary int, wait time.Duration) {
	h.mu.Lock()
	m := &h.members[primary]
	idle := !m.asking && m.hold == nil && !m.forced && h.err == nil // it may have been granted since it was looked at
	if idle {
		m.asking, m.since = true, time.Now()
	}
	h.mu.Unlock()
	if !idle {
		return
	}
	ctx := h.end
	if wait <= 0 { // it is soon over: a request that is cut short costs its connection
		ctx = context.WithoutCancel(ctx)
	}
	h.lock.beside(primary, func() {
		hold, err := h.lock.Primaries[primary].Try(ctx, wait)
		h.adopt(primary, hold, err)
	})
}

// adopt takes what a primary has answered. What comes after the end goes back; what
// comes after the token has been made counts when the primary knows that.
func (h *Majority) adopt(primary int, hold Hold, err error) {
	said := member{err: err, answered: err == nil || errors.Is(err, h.lock.Errors.Taken)}
	if err == nil {
		said.hold, said.token, said.owner = hold, hold.Token(), hold.Owner()
	}
	kept, token := h.note(primary, said, 0)
	for token != 0 { // it is not noted: the primary is to know that token first
		said.raised = h.raise(hold, said.token, token)
		kept, token = h.note(primary, said, token)
	}
	switch {
	case err == nil && !kept:
		_ = hold.Forgo()
		h.settled(primary)
	case kept:
		context.AfterFunc(hold.Context(h.end), func() { signal(h.gone) })
	}
	signal(h.votes)
}

// note is what is known of a primary from now on, and says whether its hold is kept; unless that
// has been told of another token than the hold's, which it returns then.
func (h *Majority) note(primary int, said member, told int64) (kept bool, token int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if said.hold != nil && h.err == nil && h.token != told {
		return false, h.token
	}
	m := &h.members[primary]
	kept = said.hold != nil && h.err == nil && (said.raised || told == 0)
	m.asking, m.err, m.answered = false, said.err, said.answered
	m.leaving, m.since = said.hold != nil && !kept, time.Now()
	if kept {
		m.hold, m.token, m.owner, m.raised = said.hold, said.token, said.owner, said.raised
	}
	return kept, 0
}
