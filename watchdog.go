package relock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
)

const (
	// batchSize is how many commands go out in one pipeline, pollSize how many
	// waiters of one lock in one command.
	batchSize = 128
	pollSize  = 64
	// echoGrace is how long an echo may take before the inbox counts as deaf.
	echoGrace = time.Second
)

// runDue is the watchdog: it renews held sessions, keeps the places of queued
// ones, and notices those whose trust has ended. It runs on the schedule's
// goroutine, so it only sorts; what waits for Redis goes on goroutines of its own.
func (c *Client) runDue(due []*renewal.Task) {
	d := dues{c: c, now: c.clock.Now()}
	var tells []func()
	for i, t := range due {
		if t == &c.watchTask {
			c.watchDue()
			continue
		}
		if e, ok := t.Of.(*ear); ok {
			c.checkEcho(e)
			continue
		}
		s, ok := t.Of.(*session)
		if !ok {
			continue
		}
		if i%batchSize == 0 {
			d.now = c.clock.Now()
		}
		if tell := d.add(s); tell != nil {
			tells = append(tells, tell)
		}
	}
	d.send()
	c.tellApart(tells...)
}

// dues are what is due, sorted by what goes out together.
type dues struct {
	c          *Client
	now        instant // of the latest look at the clock: no sending time is later
	statements map[lot][]statement
	renewals   map[lot][]renewing
	polls      map[*room][]poll
}

// add takes up one session. Its result is to be run without a mutex.
func (d *dues) add(s *session) (tell func()) {
	c, now := d.c, d.now
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	tell = s.check(now)
	switch {
	case s.phase == queued && !s.busy:
		s.busy, s.again = true, false
		op, notAfter := s.send(now)
		if d.polls == nil {
			d.polls = make(map[*room][]poll)
		}
		d.polls[s.room] = append(d.polls[s.room], poll{s, op, now, notAfter})
	case s.phase == held && !s.busy:
		if ttl, ok := s.renewal(now); ok {
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
	case s.phase == held:
		s.schedule(now)
	}
	return tell
}

// state adds a renewal that goes out as a statement of its own. It needs room.mu.
func (d *dues) state(of lot, s *session, now instant) {
	if d.statements == nil {
		d.statements = make(map[lot][]statement)
	}
	s.op++
	d.statements[of] = append(d.statements[of], statement{s, now, holdCall(d.c, s, s.op, s.intent, of.ttl)})
}

func (d *dues) send() {
	c := d.c
	for of, all := range d.renewals {
		if len(all) < fewRenewals {
			for _, one := range all {
				one.s.room.mu.Lock()
				if one.s.phase == held { // else it has been released since, and holds nothing
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

// A lot is what renewals have in common that share batches: how long they are
// waited for, replicas included. So no lock waits for the replicas of another.
type lot struct {
	timeout time.Duration
	need    replicas
	ttl     time.Duration
}

// A statement is one renewal in a batch.
type statement struct {
	s    *session
	sent instant
	call transport.Call
}

// renew sends a batch of renewals. Each reply is judged alone: one that failed
// is tried again soon, until the trust ends, and holds back no other. What it returns
// is to be run when nothing of the watchdog's round is left to do: hooks may block.
func (c *Client) renew(ctx context.Context, of lot, batch []statement) (tells []func()) {
	calls := make([]transport.Call, len(batch))
	for i, st := range batch {
		calls[i] = st.call
	}
	for i, result := range c.doAll(ctx, of.timeout, of.need, calls) {
		st := batch[i]
		st.s.room.mu.Lock()
		st.s.busy = false
		st.s.room.mu.Unlock()
		err := result.Err
		if err == nil {
			var tell func()
			_, tell, err = st.s.stated(result.Reply, st.sent, result.Acks)
			tells = append(tells, tell)
		}
		if err == nil {
			tells = append(tells, c.renewedHook(st.s))
			continue
		}
		st.s.room.mu.Lock()
		again := st.s.phase == held
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
	return tells
}

// renewedHook returns the call of the hook, or nil.
func (c *Client) renewedHook(s *session) func() {
	hook := c.cfg.hooks.Renewed
	if hook == nil {
		return nil
	}
	return func() {
		s.room.mu.Lock()
		h := s.holds.last()
		s.room.mu.Unlock()
		if h != nil {
			hook(h.event(nil))
		}
	}
}

// A poll is one waiter's heartbeat.
type poll struct {
	s        *session
	op       int64
	sent     instant
	notAfter int64
}

// poll sends the heartbeats of one lock's waiters: their entries' leases are
// extended, and each hears whether it holds, or who stands in the way until when.
func (c *Client) poll(ctx context.Context, r *room, waiters []poll) {
	r.mu.Lock()
	// In the order of their places: where Redis has lost its data, the first that asks holds.
	slices.SortFunc(waiters, func(a, b poll) int { return cmp.Compare(a.s.ticket, b.s.ticket) })
	r.mu.Unlock()
	for len(waiters) > 0 {
		n := min(len(waiters), pollSize)
		c.pollSome(ctx, r, waiters[:n])
		waiters = waiters[n:]
	}
}

func (c *Client) pollSome(ctx context.Context, r *room, waiters []poll) {
	requests := make([]request, len(waiters))
	r.mu.Lock()
	timeout, notAfter := waiters[0].s.attempt(), waiters[0].notAfter
	for i, p := range waiters {
		requests[i] = p.s.request(p.op, p.s.ticket)
		timeout = min(timeout, p.s.attempt())
		// No session's copy may count for longer than its own doubt: the estimate of the
		// server's clock may have moved while they were numbered.
		notAfter = min(notAfter, p.notAfter)
	}
	r.mu.Unlock()
	raw, err := c.transport.Do(ctx, timeout, acquireCall(c, r.keys(), r.kind, notAfter, true, requests...))
	var reply acquireReply
	if err == nil {
		reply, err = decodeAcquire(raw, len(waiters))
	}
	if err == nil {
		r.sample(reply.now)
		if slices.ContainsFunc(reply.answers, func(a answer) bool { return a.code == answerQueued }) {
			c.expectEcho(r.ear, waiters[0].sent)
		}
	} else {
		c.cfg.log.Warn("heartbeat of waiters failed, trying again", slog.String("lock", r.hash), slog.Int("waiters", len(waiters)), slog.Any("err", err))
	}
	for i, p := range waiters {
		r.mu.Lock()
		p.s.busy = false
		p.s.settled(err)
		var a answer
		if err == nil {
			a = reply.answers[i]
		}
		wasted := c.polled(p, a, err)
		r.mu.Unlock()
		if wasted == manyWasted {
			c.logWasted(p.s.terms.ttl, r)
		}
	}
	if reply.more {
		c.settle(r.keys())
	}
}

// settle goes on where a script stopped because the queue was too long for one
// call: nobody whom it has served can be relied on to ask again. A nonce that
// nobody has is released, which changes nothing but that.
func (c *Client) settle(keys key.Keys) {
	c.background(lateAfter, func(ctx context.Context) {
		call := releaseCall(c, keys, newNonce().String(), "", 0)
		for try := 1; ; {
			raw, err := c.transport.Do(ctx, 2*time.Second, call)
			if err == nil {
				if _, _, more, err := decodeRelease(raw); err != nil || !more {
					return
				}
				continue
			}
			if hopeless(err) || !pause(ctx, nil, backoff(try)) {
				return
			}
			try++
		}
	})
}

// polled takes the answer to one heartbeat. It returns how many grants had ended when
// they were heard of, where this is one. It needs room.mu.
func (c *Client) polled(p poll, a answer, err error) (wasted int) {
	s, now := p.s, c.clock.Now()
	switch {
	case s.phase != queued:
		// Granted while the heartbeat was under way: its renewal could not be
		// scheduled then. Or over, and nothing is.
		s.schedule(now)
	case err != nil && hopeless(err):
		c.remember(s, s.room.keys(), s.owner(), s.doubt) // its place stays: a grant that comes for it is handed back
		s.fail(&requestError{err})
	case err != nil:
		s.retry(now)
	case a.code == answerKind:
		s.fail(fmt.Errorf("%w: it is a %s lock now", ErrKind, a.kind))
	case a.code == answerUpgrade:
		s.fail(ErrUpgrade)
	case a.code == answerEnded:
		s.fail(errGone)
	case a.code == answerLate:
		s.retry(now)
	default:
		c.apply(s, p.op, p.sent, a, 0)
		if s.phase == queued && a.code != answerQueued {
			s.wasted++
			wasted = s.wasted
			s.retry(now) // held, but the lease had run out before its answer came
		}
		if s.phase == queued && s.again {
			s.again = false
			s.kick(now)
		}
	}
	return wasted
}

// fail ends a session that waits: it will not be granted. It needs room.mu.
func (s *session) fail(why error) {
	s.lost = why
	s.end()
	s.finished()
	s.room.c.unregister(s)
}

// deliver takes a message from the inbox. It runs on the inbox's goroutine and
// does not wait.
func (c *Client) deliver(payload string) {
	m, err := parseMessage(payload)
	if err != nil {
		c.cfg.log.Warn("message not understood", slog.Any("err", err))
		return
	}
	if m.verb == "echo" {
		return // the inbox has noted that it hears
	}
	s := c.lookup(m.nonce)
	if s == nil {
		if m.verb == "grant" {
			c.disown(m.nonce, nil, instant{})
		}
		return
	}
	s.room.mu.Lock()
	now := c.clock.Now()
	var tell func()
	switch m.verb {
	case "look":
		s.kick(now)
	case "lost":
		tell = s.gone(fmt.Errorf("%w: removed by ForceUnlock", ErrLost), now)
	case "grant":
		s.granted(m, now)
	}
	s.room.mu.Unlock()
	if tell != nil {
		c.tellApart(tell)
	}
}

// granted takes a grant message for the rest of the lease of a request. It is
// believed once, and only if no later request was answered "queued": then the
// grant had ended before that. It needs room.mu.
func (s *session) granted(m message, now instant) {
	if s.phase > queued {
		return
	}
	sent, known := s.sentAt(m.op)
	if !known || m.op < s.answered || !s.grant(m.low, m.high, sent, s.terms.ttl, now, 0) {
		s.kick(now)
		return
	}
	s.handed = true
}

// linked is called when a channel has a new connection: any message may have
// been missed, and the server may be another one, which has lost the latest
// writes. Every waiter who would have heard of them there asks, and what was
// released of late is released again.
func (c *Client) linked(channel string, first bool) {
	c.mu.Lock()
	sessions := make([]*session, 0, len(c.sessions))
	for _, s := range c.sessions {
		if s.room.ear.channel == channel {
			sessions = append(sessions, s)
		}
	}
	if !first {
		c.suspectServer(c.clock.Now())
	}
	c.mu.Unlock()
	for _, s := range sessions {
		s.room.mu.Lock()
		s.kick(c.clock.Now())
		s.room.mu.Unlock()
	}
}

// deaf is called when a channel cannot be subscribed: at once, and later less and
// less often.
func (c *Client) deaf(channel string, err error) {
	c.cfg.log.Warn("inbox cannot be subscribed, trying again", slog.String("channel", channel), slog.Any("err", err))
}

// expectEcho checks later that the echo of a heartbeat sent at the given time has come.
func (c *Client) expectEcho(e *ear, sent instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.since.IsZero() {
		// Only the oldest is waited for: heartbeats that follow each other
		// closely must not put the verdict off.
		e.since = sent
		c.watchdog.Set(&e.echo, c.clock.Now().Add(echoGrace))
	}
}

// checkEcho gives up a connection that did not hear what was published to it: it
// is half open, or with a server that serves the lock no more, and waiting on it
// would be in vain.
func (c *Client) checkEcho(e *ear) {
	c.mu.Lock()
	since := e.since
	e.since = instant{}
	c.mu.Unlock()
	if e.Heard().Before(since.Time()) {
		c.cfg.log.Warn("inbox does not hear, connecting again")
		e.Suspect()
	}
}

// backoff is how long to wait after the given number of failures in a row:
// 10 ms doubling to 1 s, half of it at random so that clients do not march in step.
func backoff(fails int) time.Duration {
	d := 10 * time.Millisecond << min(fails-1, 7)
	return min(d, time.Second)/2 + spread(min(d, time.Second)/2)
}

// spread draws a duration from 0 up to d. Tests that replay a schedule replace it.
var spread = func(d time.Duration) time.Duration { return rand.N(d) }

// pause waits, and reports whether neither ctx nor stop ended first.
func pause(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}
