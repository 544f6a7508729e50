package redisson

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
)

// renewable says that the watchdog keeps the hold.
func (h *Hold) renewable(now clock.Instant) bool {
	switch {
	case h.released || h.lost != nil || h.terms.fixed:
		return false
	case h.terms.maxHold > 0:
		return !now.Reached(h.acquired.Add(h.terms.maxHold))
	}
	return true
}

// arm sets when the session is looked at next: when a renewal is due, or a hold is lost.
// It needs the client's mu.
func (s *session) arm(now clock.Instant) {
	var next clock.Instant
	for _, h := range s.holds {
		if h.released || h.lost != nil {
			continue
		}
		at := h.trust.Until
		if h.renewable(now) && !s.renewing {
			due := h.trust.Due(h.terms.ttl)
			at = h.trust.Within(clock.Max(due, s.retry))
		}
		if next.IsZero() || next.Until(at) < 0 {
			next = at
		}
	}
	if next.IsZero() || s.gone {
		s.c.watchdog.Drop(&s.task)
		return
	}
	s.c.watchdog.Set(&s.task, next)
}

// lease is what the session is to be renewed for, and 0 where that is not due. It needs
// the client's mu.
func (s *session) lease(now clock.Instant) (lease time.Duration) {
	due := false
	for _, h := range s.holds {
		if !h.renewable(now) {
			continue
		}
		lease = max(lease, h.terms.ttl)
		at := h.trust.Due(h.terms.ttl)
		due = due || now.Reached(clock.Max(at, s.retry))
	}
	if !due || s.renewing || s.gone {
		return 0
	}
	return lease
}

// lose ends all holds of the session. It needs the client's mu.
func (s *session) lose(why error) (todo []func()) {
	for _, h := range s.holds {
		todo = append(todo, h.lose(why)...)
	}
	return todo
}

// A round is one session's part in a batch of renewals.
type round struct {
	s     *session
	call  transport.Call
	holds []*Hold // that are renewed

	shortest time.Duration // of their TTLs
}

// runDue is run by the watchdog's goroutine: it finds what is lost, and sends out what is
// to be renewed.
func (c *Client) runDue(due []*renewal.Task) {
	now := c.clock.Now()
	var rounds []round
	var todo []func()
	timeout := 2 * time.Second
	c.mu.Lock()
	for _, t := range due {
		s := t.Of.(*session)
		for _, h := range s.holds {
			_, lost := h.judge(now)
			todo = append(todo, lost...)
		}
		if lease := s.lease(now); lease > 0 {
			r := round{s: s, call: s.renewCall(lease), shortest: lease}
			for _, h := range s.holds {
				if h.renewable(now) {
					r.holds = append(r.holds, h)
					r.shortest = min(r.shortest, h.terms.ttl)
					timeout = min(timeout, trust.Attempt(h.terms.ttl))
				}
			}
			rounds = append(rounds, r)
			s.renewing = true
		}
		s.arm(now)
	}
	c.mu.Unlock()
	if len(todo) > 0 || len(rounds) > 0 {
		c.spawn(timeout+slack, func(ctx context.Context) {
			run(todo)
			c.renew(ctx, rounds, timeout)
		})
	}
}

// renew sends a batch, and judges each answer alone.
func (c *Client) renew(ctx context.Context, rounds []round, timeout time.Duration) {
	if len(rounds) == 0 {
		return
	}
	calls := make([]transport.Call, len(rounds))
	for i, r := range rounds {
		calls[i] = r.call
	}
	sent := c.clock.Now()
	results := c.transport.DoAll(ctx, timeout, calls)
	var todo []func()
	c.mu.Lock()
	for i, r := range rounds {
		todo = append(todo, r.renewed(results[i], sent, c.clock.Now())...)
	}
	c.mu.Unlock()
	run(todo)
}

// renewed takes the answer to a renewal. It needs the client's mu.
func (r round) renewed(got transport.Result, sent, now clock.Instant) (todo []func()) {
	s := r.s
	s.renewing = false
	switch {
	case got.Err != nil || len(got.Reply) != 2:
		s.retry = now.Add(min(r.shortest/10, time.Second))
	case got.Reply[0] == int64(0):
		todo = s.lose(fmt.Errorf("%w: it is not in Redis any more", relock.ErrLost))
	default:
		left, _ := got.Reply[1].(int64)
		s.retry = clock.Instant{}
		for _, h := range r.holds {
			if !h.released && h.lost == nil && !h.trust.Over(now) {
				// An owner's other hold may have a longer lease, and a reader in Java may cut all
				// leases of readers, of which none of ours asks for more than Java's.
				rest := min(time.Duration(left)*time.Millisecond, h.terms.ttl)
				h.trust.Extend(trust.Until(sent, rest))
			}
		}
	}
	s.arm(now)
	return todo
}
