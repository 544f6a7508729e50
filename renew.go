package relock

import (
	"context"
	"encoding/base64"
	"log/slog"
	"slices"
	"strconv"

	"github.com/relock-go/relock/internal/transport"
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

// plain says that renew.lua can renew the session: a writer's, and Redis has been
// told of what it holds. It needs room.mu.
func (s *session) plain(need replicas) bool {
	return need.n == 0 && s.count == s.intent && s.intent.reads == 0 && (s.room.kind == kindPlain || s.room.kind == kindFair)
}

// renewCall makes a call of those that are still held, and returns them.
func renewCall(c *Client, of lot, batch []renewing) (transport.Call, []renewing) {
	keys := make([]string, 0, len(batch))
	text := make([]byte, 0, 128*len(batch))
	owner := make([]byte, 0, 64)
	alive := batch[:0]
	for _, one := range batch {
		s := one.s
		s.room.mu.Lock()
		s.op++
		op, writes, held := s.op, s.intent.writes, s.phase == held
		s.room.mu.Unlock()
		if !held {
			continue
		}
		alive = append(alive, one)
		keys = append(keys, s.room.hash)
		text = append(base64.RawURLEncoding.AppendEncode(text, s.nonce[:]), ' ')
		text = append(strconv.AppendInt(text, op, 10), ' ')
		text = append(strconv.AppendInt(text, int64(writes), 10), " 0 "...)
		owner = s.appendOwner(owner[:0])
		text = append(strconv.AppendInt(text, int64(len(owner)), 10), ' ')
		text = append(text, owner...)
	}
	return transport.Call{Script: scriptRenew, Keys: keys, Args: []any{
		c.id, of.ttl.Milliseconds(), c.cfg.tokenKeep.Milliseconds(), text,
	}}, alive
}

// decodeRenew returns which of so many sessions were not renewed, by index.
func decodeRenew(raw []any, sessions int) (now int64, left []int, err error) {
	cur := scriptRenew.Read(raw)
	now = serverTime(cur)
	for cur.More() {
		left = append(left, int(cur.Within("number", int64(len(left))+1, int64(sessions)))-1)
	}
	return now, left, cur.Err()
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
		if now, left, err = decodeRenew(raw, len(batch)); err == nil {
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
		tell := s.check(now)
		alive := s.phase == held
		extended := alive && s.extend(one.sent, one.sent.Add(of.ttl-margin(of.ttl)), 0)
		switch {
		case extended:
			s.fails = 0
			s.schedule(now)
		case alive: // replicas are asked for since
			s.retry(now)
		}
		s.room.mu.Unlock()
		tells = append(tells, tell)
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
		s := batch[i].s
		s.room.mu.Lock()
		if s.phase == held {
			d.state(of, s, d.now)
		}
		s.room.mu.Unlock()
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
		if s.phase == held {
			s.fails++
			if soon.IsZero() {
				soon = c.clock.Now().Add(backoff(int(s.fails)))
			}
			s.retryAt(soon)
		}
		s.room.mu.Unlock()
	}
	c.cfg.log.Warn("renewal failed, trying again", slog.Int("locks", len(batch)), slog.Any("err", err))
}
