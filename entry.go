package relock

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

const (
	// maxStamps bounds the sending times kept while Redis is away: a grant for an
	// older request is asked about instead of believed.
	maxStamps = 16
	// lateAfter is how long after its sending a request may reach Redis and
	// still count.
	lateAfter = 10 * time.Second
	// minPoll keeps a heartbeat at a deadline that is just about to pass from spinning.
	minPoll = 5 * time.Millisecond
	// followDelay is how much later than the head the others look after a dead holder.
	followDelay = 100 * time.Millisecond
)

// An entry is an acquisition that waits: Redis has not answered yet, or has queued
// it. room.mu guards it.
type entry struct {
	*acquisition
	queued    bool
	busy      bool // a heartbeat is in flight
	again     bool // a look came meanwhile: one more is to follow
	oneKey    bool // the slot migrates: requests name the hash alone
	fails     int32
	wasted    int           // grants that had ended when they were heard of
	ticket    int64         // its place in the queue
	sent      []stamp       // sending times of the last answered request and those after it
	one       [1]stamp      // the place of the first
	answered  int64         // op of the last request that was answered "queued"
	heartbeat clock.Instant // when the next one is due
	expires   clock.Instant // when the holder's lease ends: time to look
	owes      silence
	done      chan struct{} // closed when it waits no more; made by who waits for that
}

// A stamp says when a request was sent.
type stamp struct {
	op int64
	at clock.Instant
}

// newEntry needs r.mu. With front it carries the claim of its flow.
func (r *room) newEntry(owner string, l *Lock, front bool) *entry {
	a := &acquisition{room: r, nonce: wire.NewNonce(), name: owner, terms: &l.terms, read: l.read, front: front}
	if owner == "" {
		a.number = r.c.owners.Add(1)
	}
	a.task.Of = a
	e := &entry{acquisition: a}
	e.sent = e.one[:0]
	a.entry = e
	return e
}

// block is how many tokens a grant reserves: one for each local hold.
func (e *entry) block() int {
	if e.front && e.passable() {
		return 1 + maxPasses
	}
	return 1
}

// passable says that holds of these terms can follow each other without a command.
func (a *acquisition) passable() bool {
	return !a.named() && !a.terms.fixed && a.terms.maxHold == 0
}

// A poll is one request of one entry.
type poll struct {
	e        *entry
	op       int64
	sent     clock.Instant
	notAfter int64 // server ms: what arrives later does not count
}

// send numbers a request and notes when it leaves. It needs room.mu.
func (e *entry) send(now clock.Instant) poll {
	e.op++
	e.sent = append(e.sent, stamp{e.op, now})
	if len(e.sent) > maxStamps {
		e.sent = e.sent[1:]
	}
	p := poll{e, e.op, now, e.room.serverNow() + lateAfter.Milliseconds()}
	e.doubt.sent(p.notAfter)
	e.owe(now)
	return p
}

func (e *entry) request(op, place int64) wire.Request {
	return wire.Request{
		Nonce: e.nonce.String(), Op: op, Owner: e.owner(), Read: e.read,
		TTL: e.terms.ttl, Block: e.block(), Place: place,
	}
}

// sentAt returns when the request was sent. It needs room.mu.
func (e *entry) sentAt(op int64) (clock.Instant, bool) {
	for _, st := range e.sent {
		if st.op == op {
			return st.at, true
		}
	}
	return clock.Instant{}, false
}

// queue notes that the request op was answered "queued". It needs room.mu.
func (e *entry) queue(op int64, a wire.Answer, now clock.Instant) {
	sent, ok := e.sentAt(op)
	if e.over || op < e.answered || !ok {
		return
	}
	e.queued, e.ticket, e.answered, e.fails = true, a.Ticket, op, 0
	e.room.gather() // who comes to stand in line goes by what is said now
	e.room.word(e.acquisition, now)
	for e.sent[0].op < op { // their answers are older
		e.sent = e.sent[1:]
	}
	beat := trust.Pulse(e.terms.ttl)
	e.heartbeat = e.room.align(now, sent.Add(beat), beat/4)
	if e.again && !e.busy {
		e.again, e.heartbeat = false, now
	}
	e.expires = now.Add(max(a.Wait, minPoll))
	if !a.First {
		// The head asks first; the others only where nobody there does.
		e.expires = e.expires.Add(followDelay)
	}
	e.schedule()
}

// grant makes a session of the entry by a request sent at the given time, which so
// many replicas have acknowledged. False: the lease has already run out, as
// after a pause. It needs room.mu.
func (e *entry) grant(low, high int64, sent clock.Instant, remaining time.Duration, now clock.Instant, acks int) bool {
	term := trust.Term{Until: e.trusted(sent, remaining), Renewed: sent}
	if e.over || term.Over(now) {
		return false
	}
	s := &session{acquisition: e.acquisition, term: term, next: low, left: uint8(min(high-low, maxPasses))}
	s.unproven = acks < s.need().n
	if s.counted() {
		s.turn = make(chan struct{}, 1)
	}
	s.reserve()
	s.ledger.Granted()
	e.session, e.entry = s, nil
	e.room.sessions.add(s)
	e.room.word(e.acquisition, now)
	e.paid(nil)
	switch {
	case e.front && e.named():
		e.room.admit(s)
	case e.front:
		e.room.passes, e.room.since = 0, now
	}
	e.finished()
	s.schedule(now)
	return true
}

// granted takes a grant message for the rest of the lease of a request. It is
// believed once, and only if no later request was answered "queued": then the
// grant had ended before that. It needs room.mu.
func (e *entry) granted(m wire.Message, now clock.Instant) {
	a := e.acquisition
	sent, known := e.sentAt(m.Op)
	if !known || m.Op < e.answered || !e.grant(m.Low, m.High, sent, e.terms.ttl, now, 0) {
		e.kick(now)
		return
	}
	a.session.handed = true
}

// waitable returns a channel that is closed when the acquisition waits no more. It
// needs room.mu.
func (a *acquisition) waitable() <-chan struct{} {
	if !a.waits() {
		return closed
	}
	if a.entry.done == nil {
		a.entry.done = make(chan struct{})
	}
	return a.entry.done
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// finished wakes who waits for the entry. It needs room.mu.
func (e *entry) finished() {
	if e.done != nil {
		close(e.done)
	}
}

// schedule sets when the next heartbeat is due. It needs room.mu.
func (e *entry) schedule() {
	if !e.queued || e.busy {
		return
	}
	due := e.heartbeat
	if e.expires.Until(due) > 0 {
		due = e.expires
	}
	e.room.c.watchdog.Set(&e.task, due)
}

// kick makes a waiter ask now: what it was told may be out of date. It needs room.mu.
func (e *entry) kick(now clock.Instant) {
	if e.over {
		return
	}
	if e.busy || !e.queued {
		e.again = true // what is under way may have been answered before this
		return
	}
	e.heartbeat = now
	e.schedule()
}

// retry schedules another heartbeat soon after one that failed. It needs room.mu.
func (e *entry) retry(now clock.Instant) {
	e.fails++
	e.heartbeat = now.Add(transport.Backoff(int(e.fails)))
	e.room.c.watchdog.Set(&e.task, e.heartbeat)
}

// fail ends an entry: it will not be granted. It needs room.mu.
func (e *entry) fail(why error) {
	e.lost = why
	e.end()
	e.finished()
	e.room.c.unregister(e.acquisition)
}
