package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// choose is the token of what a majority has granted: the largest, unless a majority has one
// already. That is an outer hold's, and stays, though a primary that was granted to it later
// gave a larger one: a resource that has seen the larger one refuses the outer hold.
func choose(members []member, need int) (token int64, owner string) {
	have := map[int64]int{}
	for _, m := range members {
		if m.hold == nil {
			continue
		}
		if have[m.token]++; have[m.token] == need {
			return m.token, m.owner
		}
		if m.token > token {
			token, owner = m.token, m.owner
		}
	}
	return token, owner
}

// elect makes one of the primaries' tokens the hold's, and has a majority know it.
func (h *Majority) elect(ctx context.Context) error {
	h.mu.Lock()
	h.token, h.owner = choose(h.members, h.lock.need())
	token := h.token
	for i := range h.members {
		m := &h.members[i]
		m.raised = m.hold != nil && m.token == token
		m.asking = m.asking || m.hold != nil && !m.raised
	}
	h.mu.Unlock()
	for i, m := range h.snapshot() {
		if m.hold != nil && !m.raised {
			h.lock.beside(i, func() { h.tell(i, m, token) })
		}
	}
	h.await(ctx, h.lock.patience(), func(m member) (counts, open bool) { return m.raised, m.asking })
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: its context ended before a majority had the token", ErrFewAnswer)
	case h.trust().IsZero():
		return fmt.Errorf("%w: a majority was lost before it had the token", ErrFewAnswer)
	}
	return nil
}

// tell has a primary know the token, or gives it back.
func (h *Majority) tell(primary int, of member, token int64) {
	counts := h.raise(of.hold, of.token, token)
	h.mu.Lock()
	m := &h.members[primary]
	m.asking, m.raised = false, counts
	if !counts {
		m.hold = nil
	}
	h.mu.Unlock()
	if !counts {
		_ = of.hold.Forgo()
	}
	signal(h.votes)
}

// raise has a primary's counter of tokens be as large as the majority's: whoever holds a
// majority later has a grant of one of these.
func (h *Majority) raise(hold Hold, own, token int64) (counts bool) {
	return own == token || hold.Raise(context.WithoutCancel(h.end), h.lock.patience(), token)
}

// keep takes primaries that come back, and notices the loss of the majority.
func (h *Majority) keep() {
	l := h.lock
	pace := min(max(l.TTL/10, 50*time.Millisecond), time.Second)
	for h.Err() == nil {
		if !l.Fixed && (h.until.IsZero() || time.Until(h.until) > l.TTL) {
			h.renew()
		}
		pause(h.end, h.gone, min(pace, max(time.Until(h.trust()), time.Millisecond)))
	}
	if errors.Is(h.Err(), l.Errors.Lost) { // who has lost it may hang: what is left of it would be renewed
		_ = h.release(context.Background(), Hold.Release)
	}
}

// renew asks the primaries that do not count once more. A primary whose hold an operator has
// ended is not asked: else a majority of forced primaries would never end a holder that hangs.
func (h *Majority) renew() {
	for i, m := range h.snapshot() {
		if m.asking || m.hold != nil && m.hold.Err() == nil {
			continue
		}
		if m.hold != nil {
			why := m.hold.Err()
			h.mu.Lock()
			lost := &h.members[i]
			lost.hold, lost.err = nil, why // the majority may be lost before it is answered
			lost.forced = errors.Is(why, h.lock.Errors.Forced)
			h.mu.Unlock()
			h.lock.beside(i, func() { _ = m.hold.Release() }) // of what it may have still
		}
		h.seek(i, 4*h.lock.patience())
	}
}
