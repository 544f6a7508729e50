package relock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

const (
	// batchSize is how many commands go out in one pipeline, pollSize how many
	// waiters of one lock in one command.
	batchSize = 128
	pollSize  = 64
)

// runDue is the watchdog: it renews held sessions, keeps the places of queued
// ones, and notices those whose trust has ended. It runs on the schedule's
// goroutine, so it only sorts; what waits for Redis goes on goroutines of its own.
func (c *Client) runDue(due []*renewal.Task) {
	d := dues{c: c, now: c.clock.Now()}
	var todo []func()
	for i, t := range due {
		if t == &c.watchTask {
			c.watchDue()
			continue
		}
		if e, ok := t.Of.(*ear); ok {
			c.checkEcho(e)
			continue
		}
		a, ok := t.Of.(*acquisition)
		if !ok {
			continue
		}
		if i%batchSize == 0 {
			d.now = c.clock.Now()
		}
		todo = append(todo, d.add(a)...)
	}
	d.send()
	c.tellApart(todo...)
}

// dues are what is due, sorted by what goes out together.
type dues struct {
	c          *Client
	now        instant // of the latest look at the clock: no sending time is later
	statements map[lot][]statement
	renewals   map[lot][]renewing
	polls      map[*room][]poll
}

// add takes up one acquisition. What has followed is for the caller to do.
func (d *dues) add(a *acquisition) (todo []func()) {
	a.room.mu.Lock()
	switch {
	case a.over:
	case a.session == nil:
		d.heartbeat(a.entry)
	default:
		d.renewal(a.session)
	}
	return a.room.unlockFirst()
}

// heartbeat needs room.mu.
func (d *dues) heartbeat(e *entry) {
	if e.busy {
		return
	}
	e.busy, e.again = true, false
	if d.polls == nil {
		d.polls = make(map[*room][]poll)
	}
	d.polls[e.room] = append(d.polls[e.room], e.send(d.now))
}

// renewal needs room.mu.
func (d *dues) renewal(s *session) {
	c, now := d.c, d.now
	s.check(now)
	ttl, renew := s.renewal(now)
	if s.over {
		return
	}
	if renew && !s.busy {
		s.busy = true
		need := s.need()
		of := lot{s.within(need), need, ttl}
		if s.plain(need) && c.transport.OneServer() && !c.onlyOne.Load() {
			if d.renewals == nil {
				d.renewals = make(map[lot][]renewing)
			}
			d.renewals[of] = append(d.renewals[of], renewing{s, now})
		} else {
			d.state(of, s, now)
		}
	}
	s.schedule(now)
}

// state adds a renewal that goes out as a statement of its own. It needs room.mu.
func (d *dues) state(of lot, s *session, now instant) {
	if d.statements == nil {
		d.statements = make(map[lot][]statement)
	}
	s.op++
	n := s.ledger.Meant()
	d.statements[of] = append(d.statements[of], statement{s: s, sent: now, call: d.c.wire.Hold(s.wireSession(), s.op, n, of.ttl)})
}

func (d *dues) send() {
	c := d.c
	for of, all := range d.renewals {
		if len(all) < fewRenewals {
			for _, one := range all {
				one.s.room.mu.Lock()
				if !one.s.over { // else it has been released since, and holds nothing
					d.state(of, one.s, one.sent)
				}
				one.s.room.mu.Unlock()
			}
			continue
		}
		for batch := range slices.Chunk(all, renewSize) {
			c.spawn(func(ctx context.Context) { runAll(c.renewMany(ctx, of, batch)) })
		}
	}
	for of, rest := range d.statements {
		for batch := range slices.Chunk(rest, batchSize) {
			c.spawn(func(ctx context.Context) { runAll(c.renew(ctx, of, batch)) })
		}
	}
	for r, waiters := range d.polls {
		c.spawn(func(ctx context.Context) { c.poll(ctx, r, waiters) })
	}
}

// poll sends the heartbeats of one lock's waiters: their entries' leases are
// extended, and each hears whether it holds, or who stands in the way until when.
func (c *Client) poll(ctx context.Context, r *room, waiters []poll) {
	r.mu.Lock()
	// In the order of their places: where Redis has lost its data, the first that asks holds.
	slices.SortFunc(waiters, func(a, b poll) int { return cmp.Compare(a.e.ticket, b.e.ticket) })
	r.mu.Unlock()
	for len(waiters) > 0 {
		n := min(len(waiters), pollSize)
		c.pollSome(ctx, r, waiters[:n])
		waiters = waiters[n:]
	}
}

func (c *Client) pollSome(ctx context.Context, r *room, waiters []poll) {
	call, timeout := c.pollCall(r, waiters)
	raw, err := c.transport.Do(ctx, timeout, call)
	var reply wire.AcquireReply
	if err == nil {
		reply, err = wire.DecodeAcquire(raw, len(waiters), 1)
	}
	if err == nil {
		r.sample(reply.Now)
		if slices.ContainsFunc(reply.Answers, func(a wire.Answer) bool { return a.Code == wire.Queued }) {
			c.expectEcho(r.ear, waiters[0].sent)
		}
	} else {
		c.cfg.log.Warn("heartbeat of waiters failed, trying again", slog.String("lock", r.hash), slog.Int("waiters", len(waiters)), slog.Any("err", err))
	}
	for i, p := range waiters {
		r.mu.Lock()
		p.e.busy = false
		p.e.settled(err)
		var said wire.Answer
		if err == nil {
			said = reply.Answers[i]
		}
		wasted := c.polled(p, said, err)
		r.mu.Unlock()
		if wasted == manyWasted {
			c.logWasted(p.e.terms.ttl, r)
		}
	}
	if reply.More {
		c.settle(r.keys())
	}
}

// pollCall makes one call of the heartbeats, which is waited for as long as any allows.
func (c *Client) pollCall(r *room, waiters []poll) (call transport.Call, timeout time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := make([]wire.Request, len(waiters))
	timeout, notAfter := waiters[0].e.attempt(), waiters[0].notAfter
	for i, p := range waiters {
		requests[i] = p.e.request(p.op, p.e.ticket)
		timeout = min(timeout, p.e.attempt())
		// No entry's copy may count for longer than its own doubt: the estimate of the
		// server's clock may have moved while they were numbered.
		notAfter = min(notAfter, p.notAfter)
	}
	return c.wire.Acquire(r.keys(), r.kind, notAfter, true, requests...), timeout
}

// polled takes the answer to one heartbeat. It returns how many grants had ended when
// they were heard of, where this is one. It needs room.mu.
func (c *Client) polled(p poll, said wire.Answer, err error) (wasted int) {
	e, now := p.e, c.clock.Now()
	switch {
	case !e.waits(): // it has been granted while the heartbeat was under way, or given up
	case err != nil && transport.Hopeless(err):
		n := e.note() // its place stays: a grant that comes for it is handed back
		e.fail(&requestError{err})
		c.forget(e.acquisition, n, false)
	case err != nil:
		e.retry(now)
	case said.Code == wire.OfKind:
		e.fail(fmt.Errorf("%w: it is a %s lock now", ErrKind, said.Kind))
	case said.Code == wire.Upgrade:
		e.fail(ErrUpgrade)
	case said.Code == wire.Ended:
		e.fail(errGone)
	case said.Code == wire.Late:
		e.retry(now)
	default:
		c.apply(p, said, 0)
		if e.waits() && said.Code != wire.Queued {
			e.wasted++
			wasted = e.wasted
			e.retry(now) // held, but the lease had run out before its answer came
		}
		if e.waits() && e.again {
			e.again = false
			e.kick(now)
		}
	}
	return wasted
}
