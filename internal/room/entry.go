package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/trust"
)

// The places that a request can ask for; any other is a ticket it has.
const (
	PlaceNone = -1 // do not queue
	PlaceNew  = 0
)

// An Entry is an acquisition that waits: Redis has not answered yet, or has queued it.
type Entry struct {
	*Acquisition
	Waiter any    // to be woken when it waits no more; nil: nobody
	OneKey bool   // the slot migrates: requests name the hash alone
	Await  *Await // what it is to hold again; nil: it has not held before

	queued    bool
	busy      bool // a heartbeat is in flight
	again     bool // a look came meanwhile: one more is to follow
	fails     int32
	wasted    int           // grants that had ended when they were heard of
	ticket    int64         // its place in the queue
	sent      []stamp       // sending times of the last answered request and those after it
	one       [1]stamp      // the place of the first
	answered  int64         // op of the last request that was answered "queued"
	heartbeat clock.Instant // when the next one is due
	expires   clock.Instant // when the holder's lease ends: time to look
	owes      silence
	given     *Acquisition // by whose grant its call holds; it is over
}

// A stamp says when a request was sent.
type stamp struct {
	op int64
	at clock.Instant
}

// An Await is how an entry waits on a condition. A session that waits becomes an entry again, under the same nonce. It
// keeps its holds, which are not trusted until it is granted the lock again.
type Await struct {
	Op     int64  // of the statement by which it gave up its holds; all copies have it
	Writes uint32 // holds that it is to have again
	Token  int64  // of those
	Shaken any    // to be woken when its server may have lost a signal; nil: it has been, or nobody
}

// The partings.
const (
	OwnerElsewhere Parting = iota - 2 // its owner also holds by another session
	OwnerReads                        // or reads
	NotHeld                           // any more
	Parted                            // it waits, or has since it was told to
)

// A Parting is what Redis says of a session that is to wait on a condition.
type Parting int64

// Waits says that it is what its acquisition waits by.
func (e *Entry) Waits() bool { return e.Acquisition.Entry == e && !e.over }

// Queued says that Redis has it in the queue.
func (e *Entry) Queued() bool { return e.queued }

// Ticket is its place in the queue.
func (e *Entry) Ticket() int64 { return e.ticket }

// Wasted is how many grants had ended when they were heard of.
func (e *Entry) Wasted() int { return e.wasted }

// Given is what its call goes on with, where it holds by another's grant.
func (e *Entry) Given() *Acquisition { return e.given }

// Beat is the heartbeat of an entry that is due; false: one is under way, or the entry is of a
// session that is about to wait on a condition. The watchdog may have taken up that session's
// renewal before: asked for now, the lock is the session's still, and it would hold again.
func (e *Entry) Beat(at *Step) (q Request, due bool) {
	if e.busy || !e.queued {
		return q, false
	}
	e.busy, e.again = true, false
	return e.Send(at), true
}

// Rejoin undoes a Part of which Redis has done nothing.
func (e *Entry) Rejoin(at *Step) {
	s := e.Session
	if !e.Waits() {
		return
	}
	s.Acquisition.Entry = nil
	s.Room.sessions.add(s)
	s.busy = false // a renewal that was under way has been given up, or is stale
	s.schedule(at)
	s.Check(at)
	s.CatchUp(at) // a hold may have ended meanwhile
}

// Parted notes that Redis has the waiter. doubted: what has become of it since is to be asked.
func (e *Entry) Parted(doubted bool, at *Step) {
	if !e.Waits() {
		return // it holds again
	}
	e.Room.handClaim(e.Acquisition, PlaceNew, at)
	e.queue(e.Await.Op, &Answer{Code: Awaits}, at)
	if doubted {
		e.Kick(at)
	}
}

// Shake wakes a waiter on a condition whose server may be another one: it may have lost a
// signal, and a wake-up too many does no harm.
func (e *Entry) Shake(at *Step) {
	if e.Await != nil && e.Await.Shaken != nil {
		at.do(Effect{Do: Wake, Who: e.Await.Shaken})
		e.Await.Shaken = nil
	}
}

// Silent is for how long Redis owes the entry an answer.
func (e *Entry) Silent(now clock.Instant) time.Duration {
	if e.owes.since.IsZero() {
		return 0
	}
	return now.Sub(e.owes.since)
}

// Block is how many tokens a grant reserves: one for each local hold.
func (e *Entry) Block() int {
	switch {
	case !e.passable():
		return 1
	case e.front:
		return 1 + maxPasses
	case e.Room.Runs:
		return 1 + maxRun
	}
	return 1
}

// Writes is how many holds a grant is for.
func (e *Entry) Writes() uint32 {
	if e.Await == nil {
		return 1
	}
	return e.Await.Writes
}

// Send numbers a request and notes when it leaves.
func (e *Entry) Send(at *Step) Request {
	e.op++
	e.sent = append(e.sent, stamp{e.op, at.Now})
	if len(e.sent) > maxStamps {
		e.sent = e.sent[1:]
	}
	q := Request{e, e.op, at.Now, at.Server + LateAfter.Milliseconds()}
	e.doubts(q.NotAfter)
	e.owe(at.Now)
	return q
}

// sentAt returns when the request was sent.
func (e *Entry) sentAt(op int64) (clock.Instant, bool) {
	for _, st := range e.sent {
		if st.op == op {
			return st.at, true
		}
	}
	return clock.Instant{}, false
}

// queue notes that the request op was answered "queued".
func (e *Entry) queue(op int64, said *Answer, at *Step) {
	sent, ok := e.sentAt(op)
	if !e.Waits() || op < e.answered || !ok {
		return
	}
	e.queued, e.ticket, e.answered, e.fails = true, said.Ticket, op, 0
	e.Room.gather() // who comes to stand in line goes by what is said now
	e.Room.word(e.Acquisition, at.Now)
	for e.sent[0].op < op { // their answers are older
		e.sent = e.sent[1:]
	}
	beat := trust.Pulse(e.Terms.TTL)
	e.heartbeat = e.Room.align(at.Now, sent.Add(beat), beat/4)
	if e.again && !e.busy {
		e.again, e.heartbeat = false, at.Now
	}
	e.expires = at.Now.Add(max(said.Wait, minPoll))
	if said.Code == Awaits {
		e.expires = at.Now.Add(e.Terms.TTL) // it waits for a signal, whoever holds
	} else if !said.First {
		// The head asks first; the others only where nobody there does.
		e.expires = e.expires.Add(followDelay)
	}
	e.schedule(at)
}

// grant makes a session of the entry by a request sent at the given time, which so
// many replicas have acknowledged. False: the lease has already run out, as
// after a pause.
func (e *Entry) grant(low, high int64, sent clock.Instant, remaining time.Duration, acks int, at *Step) bool {
	trusted := trust.Trust{Until: e.trusted(sent, remaining)}
	if !e.Waits() || trusted.Over(at.Now) {
		return false
	}
	s := e.Session
	if s == nil {
		s = &Session{Acquisition: e.Acquisition}
		s.reserve()
		s.Ledger.Granted()
	} else {
		s.renewed = sent
		s.wake(e.Await, low, at)
	}
	s.trust, s.renewed, s.token, s.left = trusted, sent, low, uint8(min(high-low, maxPasses))
	s.unproven = acks < s.Need().N
	e.Session, e.Acquisition.Entry = s, nil
	e.Room.sessions.add(s)
	e.Room.word(e.Acquisition, at.Now)
	e.paid(nil)
	switch {
	case e.front && e.Named():
		e.Room.admit(s, at)
	case e.front:
		e.Room.passes, e.Room.since = 0, at.Now
	}
	e.finished(at)
	s.schedule(at)
	return true
}

// Granted takes a grant message for the rest of the lease of a request. It is
// believed once, and only if no later request was answered "queued": then the
// grant had ended before that. Those of behind stand right behind it in the queue.
func (e *Entry) Granted(op, low, high int64, behind []*Acquisition, at *Step) {
	a := e.Acquisition
	sent, known := e.sentAt(op)
	if !known || op < e.answered || !e.grant(low, high, sent, e.Terms.TTL, 0, at) {
		e.Kick(at)
		return
	}
	a.Session.handed = true
	a.Session.follow(behind)
}

// finished wakes who waits for the entry.
func (e *Entry) finished(at *Step) {
	if e.Waiter != nil {
		at.do(Effect{Do: Wake, Who: e.Waiter})
		e.Waiter = nil
	}
}

// schedule sets when the next heartbeat is due.
func (e *Entry) schedule(at *Step) {
	if !e.queued || e.busy || !e.Waits() {
		return
	}
	due := e.heartbeat
	if e.expires.Until(due) > 0 {
		due = e.expires
	}
	at.timer(e.Acquisition, due, 0)
}

// Kick makes a waiter ask now: what it was told may be out of date.
func (e *Entry) Kick(at *Step) {
	if !e.Waits() {
		return
	}
	if e.busy || !e.queued {
		e.again = true // what is under way may have been answered before this
		return
	}
	e.heartbeat = at.Now
	e.schedule(at)
}

// retry schedules another heartbeat soon after one that failed, and within most.
func (e *Entry) retry(most time.Duration, at *Step) {
	e.fails++
	e.heartbeat = at.Now.Add(at.Pause(int(e.fails), most))
	at.timer(e.Acquisition, e.heartbeat, 0)
}

// Fail ends an entry: it will not be granted.
func (e *Entry) Fail(why error, at *Step) {
	if e.Session != nil {
		e.Session.Lose(why, at)
		return
	}
	e.lost = why
	e.end(at)
	e.finished(at)
	at.do(Effect{Do: Forget, Of: e.Acquisition})
}

// refuse is Fail by Redis' own answer. A copy of an earlier request that was not answered
// may yet come there, and would be granted to nobody: its nonce is ended.
func (e *Entry) refuse(said Answer, at *Step) {
	e.Fail(&Refusal{said}, at)
	if e.Session == nil && e.doubt != 0 {
		at.do(Effect{Do: Release, Of: e.Acquisition})
	}
}

// owe notes that a request of the entry leaves.
func (e *Entry) owe(now clock.Instant) {
	e.owes.asked(now)
	if line := e.line(); line != nil {
		line.owes.asked(now)
	}
}

const (
	// maxStamps bounds the sending times kept while Redis is away: a grant for an
	// older request is asked about instead of believed.
	maxStamps = 16
	// LateAfter is how long after its sending a request may reach Redis and
	// still count.
	LateAfter = 10 * time.Second
	// minPoll keeps a heartbeat at a deadline that is just about to pass from spinning.
	minPoll = 5 * time.Millisecond
	// followDelay is how much later than the head the others look after a dead holder.
	followDelay = 100 * time.Millisecond
)
