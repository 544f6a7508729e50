package relock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// This file is how a QuorumHold comes by its majority, and keeps it.

// attempt asks all primaries at once. Where that splits them among several callers, who
// has the first that answers keeps what it has; the others give all back and queue there.
// So one at a time waits for the rest while it holds anything. Callers who do not agree
// on which primary answers may wait for each other: for no longer than their patience.
func (l *QuorumLock) attempt(ctx context.Context, m manner) (_ *QuorumHold, err error) {
	h := l.newHold(ctx, m)
	defer func() {
		if err != nil {
			h.giveBack(ctx)
		}
	}()
	if ctx.Err() != nil {
		return nil, l.unasked(ctx)
	}
	err = h.gather(ctx, 0)
	if !m.once && errors.Is(err, ErrNotAcquired) {
		gate, had := h.gate()
		if !had {
			h.giveBack(ctx)
			h = l.newHold(ctx, m)
			err = h.queue(ctx, gate)
		}
		if had || err == nil {
			err = h.gather(ctx, l.patience())
		}
	}
	if err == nil {
		err = h.elect(ctx)
	}
	return h, err
}

// gather asks the primaries that are not had, and returns when a majority is, or all
// have answered, or none does any more.
func (h *QuorumHold) gather(ctx context.Context, wait time.Duration) error {
	unlink := context.AfterFunc(ctx, func() { h.stop(context.Cause(ctx)) })
	defer unlink()
	for i, m := range h.snapshot() {
		if m.hold == nil {
			h.seek(i, wait)
		}
	}
	h.await(ctx, max(wait, h.lock.patience()), func(m member) (counts, open bool) { return m.hold != nil, m.asking })
	return h.tally()
}

// await returns when a majority counts, or nothing is open any more, or after limit.
func (h *QuorumHold) await(ctx context.Context, limit time.Duration, judge func(m member) (counts, open bool)) {
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
		if had >= h.lock.need || !more {
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

// tally is nil where a majority has been gathered, ErrNotAcquired where one has answered,
// and else what is the matter.
func (h *QuorumHold) tally() error {
	var had, answered, final int
	var last, why error
	for i, m := range h.snapshot() {
		switch {
		case m.hold != nil:
			had++
			answered++
		case m.answered:
			answered++
		case isFinal(m.err):
			final++
			why = m.err
		case m.err != nil:
			last = fmt.Errorf("primary %d: %w", i, m.err)
		}
	}
	n, need := len(h.lock.members), h.lock.need
	switch {
	case had >= need:
		return nil
	case final > n-need:
		return why
	case answered >= need:
		return ErrNotAcquired
	case last == nil:
		last = errors.New("no reply in time")
	}
	return fmt.Errorf("%w: %d of %d, and %d are needed: %w", errFewAnswer, answered, n, need, last)
}

// gate is the first primary that has answered, and whether it is had.
func (h *QuorumHold) gate() (i int, had bool) {
	for i, m := range h.snapshot() {
		if m.hold != nil || m.answered {
			return i, m.hold != nil
		}
	}
	return 0, false
}

// queue waits for one primary, for as long as it answers.
func (h *QuorumHold) queue(ctx context.Context, gate int) error {
	unlink := context.AfterFunc(ctx, func() { h.stop(context.Cause(ctx)) })
	defer unlink()
	of := h.lock.members[gate]
	waits, cancel := context.WithCancelCause(h.end)
	defer cancel(nil)
	of.c.spawn(func(context.Context) { // a closed client answers without being watched
		for transport.Pause(waits, nil, h.lock.patience()) {
			asks, done := context.WithTimeout(waits, 2*h.lock.patience())
			_, err := of.Info(asks)
			done()
			if err != nil {
				cancel(errFewAnswer)
				return
			}
		}
	})
	hold, err := (&Lock{spec: of.spec, hash: of.hash}).Acquire(waits)
	h.adopt(gate, hold, err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ErrNotAcquired // that it is taken has been said
	case errors.Is(context.Cause(waits), errFewAnswer):
		return fmt.Errorf("%w: primary %d: %w", errFewAnswer, gate, err)
	}
	return err
}

// seek asks one primary, beside the caller.
func (h *QuorumHold) seek(i int, wait time.Duration) {
	h.mu.Lock()
	idle := !h.members[i].asking && h.err == nil
	h.members[i].asking = h.members[i].asking || idle
	h.mu.Unlock()
	of := h.lock.members[i]
	if idle {
		ctx := h.end
		if wait <= 0 { // it is soon over: a request that is cut short costs its connection
			ctx = context.WithoutCancel(ctx)
		}
		of.c.beside(func() {
			// A handle of its own: a lost hold that is not released occupies its handle.
			hold, err := (&Lock{spec: of.spec, hash: of.hash}).TryAcquire(ctx, wait)
			h.adopt(i, hold, err)
		})
	}
}

// adopt takes what a primary has answered. What comes after the end goes back; what
// comes after the token has been made counts when the primary knows that.
func (h *QuorumHold) adopt(i int, hold *Hold, err error) {
	h.mu.Lock()
	token := h.token
	h.mu.Unlock()
	counts := hold != nil && token != 0 && h.raise(hold, token)
	h.mu.Lock()
	m := &h.members[i]
	m.asking, m.err = false, err
	m.answered = err == nil || errors.Is(err, ErrNotAcquired)
	kept := hold != nil && h.err == nil && (token != 0) == (h.token != 0) && (counts || token == 0)
	if kept {
		m.hold, m.raised = hold, counts
	}
	h.mu.Unlock()
	switch {
	case hold != nil && !kept:
		_ = hold.forgo()
	case kept:
		context.AfterFunc(hold.Context(h.end), func() { signal(h.gone) })
	}
	signal(h.votes)
}

// elect makes the majority's largest token the hold's, and has a majority know it.
func (h *QuorumHold) elect(ctx context.Context) error {
	h.mu.Lock()
	for _, m := range h.members {
		if m.hold != nil {
			if token := m.hold.Token(); token > h.token {
				h.token, h.owner = token, m.hold.Owner()
			}
		}
	}
	token := h.token
	for i, m := range h.members {
		h.members[i].raised = m.hold != nil && m.hold.Token() == token
		h.members[i].asking = m.asking || m.hold != nil && !h.members[i].raised
	}
	h.mu.Unlock()
	for i, m := range h.snapshot() {
		if m.hold != nil && !m.raised {
			m.hold.lock.c.beside(func() { h.tell(i, m.hold, token) })
		}
	}
	h.await(ctx, h.lock.patience(), func(m member) (counts, open bool) { return m.raised, m.asking })
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case h.trust().IsZero():
		return fmt.Errorf("%w: a majority was lost before it had the token", errFewAnswer)
	}
	l := h.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = append(l.holds, h)
	go h.keep()
	return nil
}

// tell has a primary know the token, or gives it back.
func (h *QuorumHold) tell(i int, hold *Hold, token int64) {
	counts := h.raise(hold, token)
	h.mu.Lock()
	h.members[i].asking, h.members[i].raised = false, counts
	if !counts {
		h.members[i].hold = nil
	}
	h.mu.Unlock()
	if !counts {
		_ = hold.forgo()
	}
	signal(h.votes)
}

// raise has a primary's counter of tokens be as large as the hold's: whoever holds a
// majority later has a grant of one of these.
func (h *QuorumHold) raise(m *Hold, token int64) (held bool) {
	if m.Token() == token {
		return true
	}
	c := m.lock.c
	s := wire.Session{Hash: m.keeper().keys().Hash, Nonce: m.acquisition().nonce.String(), Owner: m.Owner()}
	raw, err := c.transport.Do(context.WithoutCancel(h.end), h.lock.patience(), c.wire.Raise(s, token, m.lock.terms.TTL))
	if err == nil {
		held, err = wire.DecodeRaise(raw)
	}
	return held && err == nil
}

// keep takes primaries that come back, and notices the loss of the majority.
func (h *QuorumHold) keep() {
	terms := h.lock.members[0].terms
	pace := min(max(terms.TTL/10, 50*time.Millisecond), time.Second)
	for h.judge() == nil {
		if !terms.Fixed && (terms.MaxHold == 0 || time.Since(h.began) < terms.MaxHold) {
			h.renew()
		}
		transport.Pause(h.end, h.gone, min(pace, max(time.Until(h.trust()), time.Millisecond)))
	}
}

// renew asks the primaries that do not count once more.
func (h *QuorumHold) renew() {
	for i, m := range h.snapshot() {
		if m.asking || m.hold != nil && m.hold.Err() == nil {
			continue
		}
		if m.hold != nil {
			h.mu.Lock()
			h.members[i].hold = nil
			h.mu.Unlock()
			m.hold.lock.c.beside(func() { _ = m.hold.Release() }) // of what it may have still
		}
		h.seek(i, 4*h.lock.patience())
	}
}
