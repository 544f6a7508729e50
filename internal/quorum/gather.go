package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Attempt asks all primaries at once. If several callers split them, the caller that has the first answering
// primary keeps what it has. The others give everything back and queue on that primary, unless once is set.
// So only one caller at a time holds primaries while it waits for the rest. Callers that disagree on which
// primary answers may wait for each other, but only for their patience and the time of an answer.
//
// Attempt returns the error Taken if a majority has answered that another owner holds, and ErrFewAnswer if
// too few have answered. Other errors are those of primaries, or of ctx.
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
		// ctx ended during this part, but the majority's earlier answer still counts.
		if err != nil && ctx.Err() != nil && !l.Errors.Final(err) {
			err = l.Errors.Taken
		}
	}
	if err == nil {
		err = h.elect(ctx)
	}
	if err != nil {
		return nil, err
	}
	if l.MaxHold > 0 { // MaxHold starts at the grant; a primary that is acquired again does not start it again
		h.until = time.Now().Add(l.MaxHold + l.TTL)
	}
	go h.keep() // until the hold has ended
	return h, nil
}

// collect gathers, and then checks that the primaries that answered are different servers.
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

// gather asks the primaries that are not held. It returns when a majority is held, when all have answered, or
// when the time is over.
func (h *Majority) gather(ctx context.Context, wait time.Duration) error {
	unlink := h.linkTo(ctx)
	defer unlink()
	for i, m := range h.snapshot() {
		if m.hold == nil {
			h.seek(i, wait)
		}
	}
	// A primary's answer at the end of the wait still needs the time of an answer.
	h.await(ctx, wait+h.lock.patience(), func(m member) (counts, open bool) { return m.hold != nil, m.asking })
	return h.tally()
}

// linkTo makes requests in flight end with the call, until unlink is called.
func (h *Majority) linkTo(ctx context.Context) (unlink func() bool) {
	return context.AfterFunc(ctx, func() { h.stop(context.Cause(ctx)) })
}

// await returns when a majority counts, when nothing is open any more, or after limit.
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

// tally returns nil if a majority is held and Taken if a majority has answered. Otherwise it returns what
// went wrong.
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

// first returns the first primary that has answered, and whether it is held.
func (h *Majority) first() (primary int, had bool) {
	for i, m := range h.snapshot() {
		if m.hold != nil || m.answered {
			return i, m.hold != nil
		}
	}
	return 0, false
}

// queue waits for the lock on one primary for as long as that primary answers.
func (h *Majority) queue(ctx context.Context, at int) error {
	unlink := h.linkTo(ctx)
	defer unlink()
	of, patience := h.lock.Primaries[at], h.lock.patience()
	waits, cancel := context.WithCancelCause(h.end)
	defer cancel(nil)
	of.Spawn(func() { // without Spawn, the client is closed, and Queue returns at once
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
	if err != nil { // a final error of one primary too: a majority must agree on it
		return fmt.Errorf("%w: primary %d: %w", ErrFewAnswer, at, err)
	}
	return nil
}

// seek asks one primary in the background.
func (h *Majority) seek(primary int, wait time.Duration) {
	h.mu.Lock()
	m := &h.members[primary]
	idle := !m.asking && m.hold == nil && !m.forced && h.err == nil // it may have been granted since the caller looked
	if idle {
		m.asking, m.since = true, time.Now()
	}
	h.mu.Unlock()
	if !idle {
		return
	}
	ctx := h.end
	if wait <= 0 { // a try without a wait ends soon by itself, and interrupting it would cost its connection
		ctx = context.WithoutCancel(ctx)
	}
	h.lock.beside(primary, func() {
		hold, err := h.lock.Primaries[primary].Try(ctx, wait)
		h.adopt(primary, hold, err)
	})
}

// adopt records the answer of a primary. A hold that comes after the end is given back. A hold that comes
// after the token was chosen counts once the primary knows that token.
func (h *Majority) adopt(primary int, hold Hold, err error) {
	said := member{err: err, answered: err == nil || errors.Is(err, h.lock.Errors.Taken)}
	if err == nil {
		said.hold, said.token, said.owner = hold, hold.Token(), hold.Owner()
	}
	kept, token := h.note(primary, said, 0)
	for token != 0 { // not recorded yet: the primary must know that token first
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

// note records the state of a primary and reports whether its hold is kept. If the majority has chosen
// another token in the meantime than the primary was told, note returns that token and records nothing.
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
