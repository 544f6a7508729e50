package relock

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/relock-go/relock/internal/listener"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/replay"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

const (
	// batchSize is how many commands go out in one pipeline, pollSize how many
	// waiters of one lock in one command.
	batchSize = 128
	pollSize  = 64
)

// NoWatchdog leaves a hold the lease it was acquired with: it is lost after its
// TTL unless it was released. Other holds of its owner do not change that: they
// go on, and so the lock stays with the owner until the last of them ends.
func NoWatchdog() LockOption {
	return lockOption(func(t *terms) error {
		t.Fixed = true
		return nil
	})
}

// MaxHold ends renewal d after the hold was acquired, so that a holder that
// hangs but lives gives way: its hold is lost when the last lease ends, at most
// a TTL after d. Other holds of its owner do not change that: where a nested call
// may hang, it needs a MaxHold too, or the lock stays with the owner. From 1 ms to
// 10 years.
func MaxHold(d time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		t.MaxHold = d
		return between("MaxHold", d, time.Millisecond, 10*365*24*time.Hour)
	})
}

// runDue is the watchdog: it renews held sessions, keeps the places of queued
// ones, and notices those whose trust has ended. It runs on the schedule's
// goroutine, so it only sorts; what waits for Redis goes on goroutines of its own.
func (c *Client) runDue(due []*renewal.Task) {
	d := dues{c: c, now: c.clock.Now()}
	var todo []func()
	for i, t := range due {
		if t == &c.replayTask {
			c.journal.Due()
			continue
		}
		if e, ok := t.Of.(*listener.Listener); ok {
			c.listeners.Check(e)
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
	c.labels.Keep(0, d.now)
	c.tellApart(todo...)
}

// dues are what is due, sorted by what goes out together.
type dues struct {
	c          *Client
	now        instant // of the latest look at the clock: no sending time is later
	statements map[room.Renewal][]room.Statement
	renewals   map[room.Renewal][]renewing
	polls      map[*keeper][]room.Request
}

// add takes up one acquisition. What has followed is for the caller to do.
func (d *dues) add(a *acquisition) (todo []func()) {
	k := a.keeper
	at := k.begin()
	at.Now = d.now
	switch {
	case a.Over():
	case a.Waits():
		at.Server = k.serverNow()
		if q, due := a.Entry.Beat(&at); due {
			d.heartbeat(k, q)
		}
	default:
		if r, due := a.Session.Due(&at); due {
			d.renewal(r, a)
		}
	}
	return k.endFirst(&at)
}

func (d *dues) heartbeat(k *keeper, q room.Request) {
	if d.polls == nil {
		d.polls = make(map[*keeper][]room.Request)
	}
	d.polls[k] = append(d.polls[k], q)
}

// renewal adds what is due. It needs the keeper's mu.
func (d *dues) renewal(r room.Renewal, a *acquisition) {
	if !r.Plain || !d.c.transport.OneServer() || d.c.onlyOne.Load() {
		d.state(r, a.Session, d.now)
		return
	}
	if d.renewals == nil {
		d.renewals = make(map[room.Renewal][]renewing)
	}
	d.renewals[r] = append(d.renewals[r], renewing{a, d.now})
}

// state adds a renewal that goes out as a statement of its own, if the session is still
// held. It needs the keeper's mu.
func (d *dues) state(r room.Renewal, s *room.Session, sent instant) {
	st, held := s.Renew(r, sent)
	if !held {
		return
	}
	if d.statements == nil {
		d.statements = make(map[room.Renewal][]room.Statement)
	}
	r.Plain = false // it shares a batch with others of its kind
	d.statements[r] = append(d.statements[r], st)
}

// stateFew makes statements of renewals that are too few to go together.
func (d *dues) stateFew() {
	for of, all := range d.renewals {
		if len(all) >= fewRenewals {
			continue
		}
		for _, one := range all {
			one.a.keeper.mu.Lock()
			d.state(of, one.a.Session, one.sent)
			one.a.keeper.mu.Unlock()
		}
		delete(d.renewals, of)
	}
}

func (d *dues) send() {
	c := d.c
	d.stateFew()
	for of, all := range d.renewals {
		for batch := range slices.Chunk(all, renewSize) {
			c.spawn(func(ctx context.Context) { runAll(c.renewMany(ctx, of, batch)) })
		}
	}
	for of, rest := range d.statements {
		for batch := range slices.Chunk(rest, batchSize) {
			c.spawn(func(ctx context.Context) { runAll(c.renew(ctx, of, batch)) })
		}
	}
	for k, waiters := range d.polls {
		c.spawn(func(ctx context.Context) { c.poll(ctx, k, waiters) })
	}
}

// poll sends the heartbeats of one lock's waiters: their entries' leases are
// extended, and each hears whether it holds, or who stands in the way until when.
func (c *Client) poll(ctx context.Context, k *keeper, waiters []room.Request) {
	k.mu.Lock()
	// In the order of their places: where Redis has lost its data, the first that asks holds.
	slices.SortFunc(waiters, func(a, b room.Request) int { return cmp.Compare(a.Ticket(), b.Ticket()) })
	k.mu.Unlock()
	for len(waiters) > 0 {
		n := min(len(waiters), pollSize)
		c.pollSome(ctx, k, waiters[:n])
		waiters = waiters[n:]
	}
}

func (c *Client) pollSome(ctx context.Context, k *keeper, waiters []room.Request) {
	call, timeout, block := c.pollCall(k, waiters)
	raw, err := c.transport.Do(ctx, timeout, call)
	var reply wire.AcquireReply
	if err == nil {
		reply, err = wire.DecodeAcquire(raw, len(waiters), block, waiters[0].Terms.TTL)
	}
	if err == nil {
		k.sample(reply.Now)
		if slices.ContainsFunc(reply.Answers, func(a room.Answer) bool { return a.Code == room.Queued || a.Code == room.Awaits }) {
			c.listeners.Expect(k.listener, waiters[0].Sent)
		}
	} else {
		c.cfg.log.Warn("heartbeat of waiters failed, trying again", slog.String("lock", k.hash), slog.Int("waiters", len(waiters)), slog.Any("err", err))
	}
	for i, q := range waiters {
		if err != nil {
			c.missed(k, q, err)
			continue
		}
		at := k.begin()
		wasted := q.Beaten(reply.Answers[i], &at)
		k.end(&at)
		if wasted == manyWasted {
			c.logWasted(q.Terms.TTL, k)
		}
	}
	if reply.More {
		c.settle(k.keys())
	}
}

// missed tells the room that a heartbeat failed.
func (c *Client) missed(k *keeper, q room.Request, err error) {
	a := acquired(q.Acquisition)
	at := k.begin()
	ended := q.Missed(failure(err), transport.Hopeless(err), &at)
	var n replay.Release
	if ended {
		n = a.note() // its place stays: a grant that comes for it is handed back
	}
	k.end(&at)
	if ended {
		c.forget(a, n, false)
	}
}

// pollCall makes one call of the heartbeats, which is waited for as long as any allows;
// block is how many tokens the first asks for.
func (c *Client) pollCall(k *keeper, waiters []room.Request) (call transport.Call, timeout time.Duration, block int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	requests := make([]wire.Request, len(waiters))
	timeout, notAfter := trust.Attempt(waiters[0].Terms.TTL), waiters[0].NotAfter
	for i, q := range waiters {
		requests[i] = wireRequest(q, q.Ticket())
		timeout = min(timeout, trust.Attempt(q.Terms.TTL))
		// No entry's copy may count for longer than its own doubt: the estimate of the
		// server's clock may have moved while they were numbered.
		notAfter = min(notAfter, q.NotAfter)
	}
	call = c.wire.Acquire(k.keys(), k.kind, notAfter, c.listeners.Echo(k.listener, true), requests...)
	call.Usual = nil // it waits
	return call, timeout, requests[0].Block
}

// linked is called when a channel has a new connection: any message may have
// been missed, and the server may be another one, which has lost the latest
// writes. Every waiter who would have heard of them there asks, and what was
// released of late is released again.
func (c *Client) linked(channel string, first bool) {
	if !first {
		now := c.clock.Now()
		c.labels.Doubt(now)
		c.journal.Suspect(now)
	}
	c.rouse(func(a *acquisition) bool { return a.keeper.listener.Channel == channel }, !first)
}

// rouse has waiters ask, and with elsewhere those who hold and have said so to another
// server say it again.
func (c *Client) rouse(which func(a *acquisition) bool, elsewhere bool) {
	c.mu.Lock()
	all := make([]*acquisition, 0, len(c.sessions))
	for _, a := range c.sessions {
		if which(a) {
			all = append(all, a)
		}
	}
	c.mu.Unlock()
	for _, a := range all {
		at := a.keeper.begin()
		if a.Waits() {
			a.Entry.Kick(&at)
		}
		if a.Away() && elsewhere {
			a.Entry.Shake(&at)
		}
		a.keeper.end(&at)
	}
}
