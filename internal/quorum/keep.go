package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// choose returns the token of the majority: the largest one, unless a majority of the primaries has the same
// one already. That is the token of an outer hold, and it stays. A primary that was acquired for the outer
// hold later may have a larger one, but a resource that has seen the larger one would refuse the outer hold.
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

// elect chooses the hold's token and raises the counters of a majority to it.
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

// tell raises a primary's counter to the token, or gives the primary back.
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

// raise raises a primary's token counter to the majority's token. A later majority includes one of these
// primaries, so its token is larger.
func (h *Majority) raise(hold Hold, own, token int64) (counts bool) {
	return own == token || hold.Raise(context.WithoutCancel(h.end), h.lock.patience(), token)
}

// keep acquires primaries that come back, and notices the loss of the majority.
func (h *Majority) keep() {
	l := h.lock
	pace := min(max(l.TTL/10, 50*time.Millisecond), time.Second)
	for h.Err() == nil {
		if !l.Fixed && (h.until.IsZero() || time.Until(h.until) > l.TTL) {
			h.renew()
		}
		pause(h.end, h.gone, min(pace, max(time.Until(h.trust()), time.Millisecond)))
	}
	if errors.Is(h.Err(), l.Errors.Lost) { // the holder may hang, and the rest would be renewed for ever
		_ = h.release(context.Background(), Hold.Release)
	}
}

// renew asks again the primaries that do not count. It skips a primary whose hold an operator has ended.
// Otherwise forcing a majority of the primaries could never end a holder that hangs.
func (h *Majority) renew() {
	for i, m := range h.snapshot() {
		if m.asking || m.hold != nil && m.hold.Err() == nil {
			continue
		}
		if m.hold != nil {
			why := m.hold.Err()
			h.mu.Lock()
			lost := &h.members[i]
			lost.hold, lost.err = nil, why // the majority may be lost before the primary answers
			lost.forced = errors.Is(why, h.lock.Errors.Forced)
			h.mu.Unlock()
			h.lock.beside(i, func() { _ = m.hold.Release() }) // releases what the primary may still have
		}
		h.seek(i, 4*h.lock.patience())
	}
}
