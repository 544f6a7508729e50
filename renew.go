package relock

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
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
	a    *acquisition
	sent instant
}

// renewCall makes a call of those that are still held, and returns their statements.
func renewCall(c *Client, of room.Renewal, batch []renewing) (transport.Call, []room.Statement) {
	all := make([]wire.Renewal, 0, len(batch))
	alive := make([]room.Statement, 0, len(batch))
	for _, one := range batch {
		one.a.keeper.mu.Lock()
		st, held := one.a.Session.Renew(of, one.sent)
		one.a.keeper.mu.Unlock()
		if held {
			alive = append(alive, st)
			all = append(all, wire.Renewal{Session: one.a.session(false), Op: st.Said.Op, Writes: st.Said.Writes, Reads: st.Said.Reads})
		}
	}
	return c.wire.Renew(of.Lease, all), alive
}

// renewMany renews sessions by one command. Each is judged alone: what the command
// leaves is stated by itself, and so is everything where it was not run. A server
// that refuses it may keep keys in several places: it is not asked again.
func (c *Client) renewMany(ctx context.Context, of room.Renewal, all []renewing) (tells []func()) {
	call, batch := renewCall(c, of, all)
	if len(batch) == 0 {
		return nil
	}
	call.Apart = true // that no connection takes all leases along
	var left []int
	raw, err := c.transport.Do(ctx, of.Within, call)
	if err == nil {
		var now int64
		if now, left, err = wire.DecodeRenew(raw, of.Lease, len(batch)); err == nil {
			for _, st := range batch {
				keeperOf(st).sample(now)
			}
		}
	}
	if err != nil {
		outcome := transport.Classify(err)
		if outcome == transport.Refused {
			c.onlyOne.Store(true)
		}
		if outcome == transport.Unknown {
			return c.notRenewed(batch, err)
		}
		left = make([]int, len(batch))
		for i := range left {
			left[i] = i
		}
	}
	tells = c.renewed(batch, left)
	if len(left) > 0 {
		tells = append(tells, c.restate(ctx, of, batch, left)...)
	}
	return tells
}

func keeperOf(st room.Statement) *keeper { return acquired(st.Session.Acquisition).keeper }

// renewed takes the answer for all but those left, which are in order.
func (c *Client) renewed(batch []room.Statement, left []int) (tells []func()) {
	now := c.clock.Now()
	for i, st := range batch {
		if len(left) > 0 && left[0] == i {
			left = left[1:]
			continue
		}
		k := keeperOf(st)
		at := k.begin()
		at.Now = now
		extended := st.Renewed(&at)
		tells = append(tells, k.endFirst(&at)...)
		if extended {
			tells = append(tells, c.renewedHook(st))
		}
	}
	return tells
}

// restate asks hold about each of those left.
func (c *Client) restate(ctx context.Context, of room.Renewal, batch []room.Statement, left []int) (tells []func()) {
	d := dues{c: c, now: c.clock.Now()}
	for _, i := range left {
		d.restate(of, batch[i])
	}
	of.Plain = false
	for part := range slices.Chunk(d.statements[of], batchSize) {
		tells = append(tells, c.renew(ctx, of, part)...)
	}
	return tells
}

// notRenewed tries again soon what may or may not have been renewed: together, or a
// server that was too slow for one command would get one for each lock.
func (c *Client) notRenewed(batch []room.Statement, err error) (tells []func()) {
	var soon instant
	for _, st := range batch {
		k := keeperOf(st)
		at := k.begin()
		again := st.Session.UnrenewedWith(&soon, &at)
		if tells = append(tells, k.endFirst(&at)...); again {
			tells = append(tells, c.unrenewedHook(st, err))
		}
	}
	c.cfg.log.Warn("renewal failed, trying again", slog.Int("locks", len(batch)), slog.Any("err", err))
	return tells
}

// renew sends a batch of renewals that are alike in how long they are waited for: so no
// lock waits for the replicas of another. Each reply is judged alone: one that failed
// is tried again soon, until the trust ends, and holds back no other. What it returns
// is to be run when nothing of the watchdog's round is left to do: hooks may block.
func (c *Client) renew(ctx context.Context, of room.Renewal, batch []room.Statement) (tells []func()) {
	calls := make([]transport.Call, len(batch))
	for i := range batch {
		calls[i] = acquired(batch[i].Session.Acquisition).statementCall(&batch[i])
	}
	further := dues{c: c, now: c.clock.Now()}
	for i, result := range c.doAll(ctx, of.Within, of.Need, calls) {
		st := batch[i]
		err := result.Err
		if err == nil {
			var todo []func()
			todo, err = further.take(of, st, result)
			if tells = append(tells, todo...); errors.Is(err, errAgain) {
				continue
			}
		}
		if err == nil {
			tells = append(tells, c.renewedHook(st))
			continue
		}
		tells = append(tells, c.unrenewed(st, err)...)
	}
	return append(tells, c.renewRest(ctx, of, further.statements[of])...)
}

// unrenewed has a renewal tried again soon that failed.
func (c *Client) unrenewed(st room.Statement, err error) (tells []func()) {
	k := keeperOf(st)
	var short error
	if errors.Is(err, ErrReplicas) {
		short = err
	}
	at := k.begin()
	again := st.Session.Unrenewed(short, &at)
	if tells = k.endFirst(&at); again {
		owner := acquired(st.Session.Acquisition).owner()
		tells = append(tells, func() {
			c.cfg.log.Warn("renewal failed, trying again", slog.String("lock", k.hash), slog.String("owner", owner), slog.Any("err", err))
		}, c.unrenewedHook(st, err))
	}
	return tells
}

// take takes the answer to a renewal. errAgain: it is added, to be made once more.
func (d *dues) take(of room.Renewal, st room.Statement, result transport.Acked) (todo []func(), err error) {
	k := keeperOf(st)
	k.mu.Lock()
	st.Session.Tried()
	k.mu.Unlock()
	more, todo, err := acquired(st.Session.Acquisition).stated(&st, result.Reply, result.Acks)
	if more {
		d.restate(of, st)
		err = errAgain
	}
	return todo, err
}

// restate adds the renewal of a session that is still held.
func (d *dues) restate(of room.Renewal, st room.Statement) {
	k := keeperOf(st)
	k.mu.Lock()
	defer k.mu.Unlock()
	d.state(of, st.Session, d.now)
}

// renewRest renews what has turned out to be one of several sessions.
func (c *Client) renewRest(ctx context.Context, of room.Renewal, rest []room.Statement) []func() {
	if len(rest) == 0 {
		return nil
	}
	return c.renew(ctx, of, rest)
}
