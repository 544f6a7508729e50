package relock

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// This file is how the sessions of many locks on one server are renewed by one
// command. Where it says of a session that it is not as usual, hold is asked.

const (
	// renewSize is how many locks one command renews: the server does nothing else
	// meanwhile, for some hundreds of microseconds.
	renewSize = 128
	// fewRenewals go out as statements.
	fewRenewals = 8
)

// A renewing is one session to be renewed, and when that was sent or before.
type renewing struct {
	s    *session
	sent instant
}

// plain says that the session can be renewed together with others: a writer's, and Redis has been
// told of what it holds. It needs room.mu.
func (s *session) plain(need replicas) bool {
	return need.n == 0 && s.ledger.Settled() && s.ledger.Meant().Reads == 0 && !s.several && (s.room.kind == wire.KindPlain || s.room.kind == wire.KindFair)
}

// renewCall makes a call of those that are still held, and returns them.
func renewCall(c *Client, of lot, batch []renewing) (transport.Call, []renewing) {
	all := make([]wire.Renewal, 0, len(batch))
	alive := batch[:0]
	for _, one := range batch {
		s := one.s
		s.room.mu.Lock()
		s.op++
		r, held := wire.Renewal{Session: s.wireSession(), Op: s.op, Writes: s.ledger.Meant().Writes}, !s.over
		s.room.mu.Unlock()
		if held {
			alive, all = append(alive, one), append(all, r)
		}
	}
	return c.wire.Renew(of.ttl, all), alive
}

// renewMany renews sessions by one command. Each is judged alone: what the command
// leaves is stated by itself, and so is everything where it was not run. A server
// that refuses it may keep keys in several places: it is not asked again.
func (c *Client) renewMany(ctx context.Context, of lot, batch []renewing) (tells []func()) {
	call, batch := renewCall(c, of, batch)
	if len(batch) == 0 {
		return nil
	}
	var left []int
	raw, err := c.transport.Do(ctx, of.timeout, call)
	if err == nil {
		var now int64
		if now, left, err = wire.DecodeRenew(raw, len(batch)); err == nil {
			for _, one := range batch {
				one.s.room.sample(now)
			}
		}
	}
	if err != nil {
		outcome := transport.Classify(err)
		if outcome == transport.Refused {
			c.onlyOne.Store(true)
		}
		if outcome == transport.Unknown {
			c.notRenewed(batch, err)
			return nil
		}
		left = make([]int, len(batch))
		for i := range left {
			left[i] = i
		}
	}
	tells = c.renewed(of, batch, left)
	if len(left) > 0 {
		tells = append(tells, c.restate(ctx, of, batch, left)...)
	}
	return tells
}

// renewed takes the answer for all but those left, which are in order.
func (c *Client) renewed(of lot, batch []renewing, left []int) (tells []func()) {
	now := c.clock.Now()
	for i, one := range batch {
		if len(left) > 0 && left[0] == i {
			left = left[1:]
			continue
		}
		s := one.s
		s.room.mu.Lock()
		s.busy = false
		s.check(now)
		alive := !s.over
		extended := alive && s.extend(one.sent, trust.Until(one.sent, of.ttl), 0)
		switch {
		case extended:
			s.fails = 0
			s.schedule(now)
		case alive: // replicas are asked for since
			s.retry(now)
		}
		tells = append(tells, s.room.unlockFirst()...)
		if extended {
			tells = append(tells, c.renewedHook(s))
		}
	}
	return tells
}

// restate asks hold about each of those left.
func (c *Client) restate(ctx context.Context, of lot, batch []renewing, left []int) (tells []func()) {
	d := dues{c: c, now: c.clock.Now()}
	for _, i := range left {
		d.restate(of, batch[i].s)
	}
	for part := range slices.Chunk(d.statements[of], batchSize) {
		tells = append(tells, c.renew(ctx, of, part)...)
	}
	return tells
}

// notRenewed tries again soon what may or may not have been renewed: together, or a
// server that was too slow for one command would get one for each lock.
func (c *Client) notRenewed(batch []renewing, err error) {
	var soon instant
	for _, one := range batch {
		s := one.s
		s.room.mu.Lock()
		s.busy = false
		if !s.over {
			s.fails++
			if soon.IsZero() {
				soon = c.clock.Now().Add(transport.Backoff(int(s.fails)))
			}
			s.retryAt(soon)
		}
		s.room.mu.Unlock()
	}
	c.cfg.log.Warn("renewal failed, trying again", slog.Int("locks", len(batch)), slog.Any("err", err))
}

// A lot is what renewals have in common that share batches: how long they are
// waited for, replicas included. So no lock waits for the replicas of another.
type lot struct {
	timeout time.Duration
	need    replicas
	ttl     time.Duration
}

// A statement is what Redis is told of a session: a renewal in a batch, or a new count.
type statement struct {
	s    *session
	sent instant
	call transport.Call
	said ledger.Statement // a new count
	need replicas
}

// renew sends a batch of renewals. Each reply is judged alone: one that failed
// is tried again soon, until the trust ends, and holds back no other. What it returns
// is to be run when nothing of the watchdog's round is left to do: hooks may block.
func (c *Client) renew(ctx context.Context, of lot, batch []statement) (tells []func()) {
	calls := make([]transport.Call, len(batch))
	for i, st := range batch {
		calls[i] = st.call
	}
	further := dues{c: c, now: c.clock.Now()}
	for i, result := range c.doAll(ctx, of.timeout, of.need, calls) {
		st := batch[i]
		st.s.room.mu.Lock()
		st.s.busy = false
		st.s.room.mu.Unlock()
		err := result.Err
		if err == nil {
			var todo []func()
			todo, err = further.take(of, st, result)
			if tells = append(tells, todo...); errors.Is(err, errAgain) {
				continue
			}
		}
		if err == nil {
			tells = append(tells, c.renewedHook(st.s))
			continue
		}
		st.s.room.mu.Lock()
		again := !st.s.over
		if again {
			if errors.Is(err, ErrReplicas) {
				st.s.lost = err
			}
			st.s.retry(c.clock.Now())
		}
		st.s.room.mu.Unlock()
		if again {
			tells = append(tells, func() {
				c.cfg.log.Warn("renewal failed, trying again", slog.String("lock", st.s.room.hash), slog.String("owner", st.s.owner()), slog.Any("err", err))
			})
		}
	}
	return append(tells, c.renewRest(ctx, of, further.statements[of])...)
}

// take takes the answer to a renewal. errAgain: it is added, to be made once more.
func (d *dues) take(of lot, st statement, result transport.Acked) (todo []func(), err error) {
	more, todo, err := st.s.stated(result.Reply, st.sent, result.Acks)
	if more {
		d.restate(of, st.s)
		err = errAgain
	}
	return todo, err
}

// restate adds the renewal of a session that is still held.
func (d *dues) restate(of lot, s *session) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if !s.over {
		s.busy = true
		d.state(of, s, d.now)
	}
}

// renewRest renews what has turned out to be one of several sessions.
func (c *Client) renewRest(ctx context.Context, of lot, rest []statement) []func() {
	if len(rest) == 0 {
		return nil
	}
	return c.renew(ctx, of, rest)
}

// renewedHook returns what calls the hook.
func (c *Client) renewedHook(s *session) func() {
	return func() {
		hook := c.cfg.hooks.Renewed
		if hook == nil {
			return
		}
		s.room.mu.Lock()
		h := s.holds.last()
		s.room.mu.Unlock()
		if h != nil {
			hook(h.event(nil))
		}
	}
}
