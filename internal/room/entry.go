package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/trust"
)

// Special places that a request can ask for. Any other value is a place in the queue that an entry got earlier.
const (
	PlaceNone = -1 // do not queue the request
	PlaceNew  = 0  // at the end of the queue
)

// An Entry is an acquisition that waits: Redis has not answered yet, has queued it, or has it wait on a condition.
type Entry struct {
	*Acquisition
	Waiter   any    // the call to wake when the wait is over; nil: no call waits
	HashOnly bool   // the slot is migrating: requests name only the hash
	Await    *Await // what it held before it began to wait on a condition; nil: it has not held

	// Only the room writes these.
	Place  int64        // its place in Redis' queue
	Wasted int          // how many grants had ended before this client heard of them
	Given  *Acquisition // set if another session serves its call: the acquisition of that; this entry is over then

	queued      bool          // Redis has answered that it waits
	busy        bool          // a heartbeat is in flight
	again       bool          // it must ask again after the request in flight
	fails       int32         // retries since the last answer "queued"
	sent        []stamp       // sending times of the last request that was answered "queued", and of those after it
	one         [1]stamp      // memory for the first element of sent
	heartbeat   clock.Instant // when the next heartbeat is due
	checkHolder clock.Instant // when a heartbeat is due because the holder's lease may have ended: see noteWaiting
	silence     silence       // whether Redis owes it an answer
	revoked     error         // why nothing grants before the next request; nil: something may. See Acquisition.Revoke
}

// A stamp says when a request was sent.
type stamp struct {
	op int64
	at clock.Instant
}

// Waits reports whether its acquisition waits, and waits by this entry.
func (e *Entry) Waits() bool { return e.Acquisition.Entry == e && !e.Over }

// Silent returns for how long Redis has owed the entry an answer, or 0 if it owes none.
func (e *Entry) Silent(now clock.Instant) time.Duration {
	if e.silence.since.IsZero() {
		return 0
	}
	return now.Sub(e.silence.since)
}

// Block returns how many tokens a grant takes: one for its hold, and one for each that may follow within the process.
func (e *Entry) Block() int {
	switch {
	case !e.passable():
		return 1
	case e.Terms.Sticky > 0:
		return stickyTokens
	case e.hasClaim:
		return 1 + maxPasses
	case e.Room.Runs:
		return 1 + maxRun
	}
	return 1
}

// NextRequest makes the next request: it numbers the request and notes its sending time. What messages have said about
// earlier requests does not count for this one. The caller sends it at once.
func (e *Entry) NextRequest(at *Step) Request {
	e.op++
	e.wantedByMessage, e.revoked = false, nil
	e.sent = append(e.sent, stamp{e.op, at.Now})
	if len(e.sent) > maxStamps {
		e.sent = e.sent[1:]
	}
	q := Request{e, e.op, at.Now, at.Server + LateAfter.Milliseconds()}
	e.copies++
	e.doubt = max(e.doubt, q.NotAfter) // until then Redis may execute a late copy
	e.silence.asked(at.Now)
	if line := e.line(); line != nil {
		line.silence.asked(at.Now)
	}
	return q
}

// sentAt returns when the request with this op was sent, or false if that is not remembered.
func (e *Entry) sentAt(op int64) (clock.Instant, bool) {
	for _, st := range e.sent {
		if st.op == op {
			return st.at, true
		}
	}
	return clock.Instant{}, false
}

// noteWaiting records what the answer to the request op says: that the entry waits, in the queue or on a condition. It
// sets when to ask Redis next. An answer to an old request changes nothing. Call it only while the entry waits.
func (e *Entry) noteWaiting(op int64, said *Answer, at *Step) {
	sent, ok := e.sentAt(op)
	if !ok {
		return
	}
	e.queued, e.Place, e.fails = true, said.Place, 0
	e.Room.needRare() // it has the line, where noteTaken notes for calls that come later, too
	e.Room.noteTaken(e.Acquisition)
	for e.sent[0].op < op { // a grant that names one of these is not believed any more, and an answer to one is old
		e.sent = e.sent[1:]
	}
	beat := trust.Pulse(e.Terms.TTL)
	e.heartbeat = e.Room.align(at.Now, sent.Add(beat), beat/4)
	if e.again && !e.busy {
		e.again, e.heartbeat = false, at.Now
	}
	switch wait := max(said.Wait, minPoll); {
	case said.Code == Awaits: // it waits for a signal, not for the holder's lease
		e.checkHolder = at.Now.Add(e.Terms.TTL)
	case said.First:
		e.checkHolder = at.Now.Add(wait)
	default: // the head asks first; the others ask in case the head is gone
		e.checkHolder = at.Now.Add(wait + followDelay)
	}
	e.schedule(at)
}

// schedule sets the timer of a queued entry to the next heartbeat, or to the end of the holder's lease if sooner.
func (e *Entry) schedule(at *Step) {
	if e.busy {
		return // the answer to the heartbeat in flight sets the timer
	}
	due := e.heartbeat
	if e.checkHolder.Until(due) > 0 {
		due = e.checkHolder
	}
	at.timer(e.Acquisition, due, 0)
}

// Beat returns the next heartbeat of an entry. due is false if one is in flight, or if the entry is not queued. A
// session that is about to wait on a condition is not queued: in Redis it still holds, so the answer would be a grant.
func (e *Entry) Beat(at *Step) (q Request, due bool) {
	if e.busy || !e.queued {
		return q, false
	}
	e.busy, e.again = true, false
	return e.NextRequest(at), true
}

// Kick makes the entry's heartbeat due now, because what it knows may be out of date. The watchdog sends it.
func (e *Entry) Kick(at *Step) {
	if !e.Waits() {
		return
	}
	if e.busy || !e.queued {
		e.again = true // Redis may have answered the request in flight before this
		return
	}
	e.heartbeat = at.Now
	e.schedule(at)
}

// retry schedules another heartbeat after one that failed, came too late, or brought a grant that had ended. The pause
// grows from retry to retry, up to most.
func (e *Entry) retry(most time.Duration, at *Step) {
	e.fails++
	e.heartbeat = at.Now.Add(at.Pause(int(e.fails), most))
	at.timer(e.Acquisition, e.heartbeat, 0)
}

// Granted takes a grant message: Redis has granted the lock for the rest of the lease of the request op. A message is
// believed once. If a later request was answered "queued", the grant is over, and the entry asks Redis. wanted says
// that others wait for the end of the grant. behind are this client's acquisitions right behind this one in the queue.
func (e *Entry) Granted(op, low, high int64, wanted bool, behind []*Acquisition, at *Step) {
	a := e.Acquisition
	sent, known := e.sentAt(op)
	if !known || !e.grant(low, high, sent, e.Terms.TTL, 0, at) {
		e.Kick(at)
		return
	}
	a.Session.handed = true
	if len(behind) > 0 && a.passable() { // the lock can be passed on to them without a command
		a.Session.run = &run{behind: behind}
	}
	a.wantedByMessage = false // an earlier message that others wait was about another grant
	a.noteWanted(wanted, at)
}

// grant turns the entry into a session with the tokens low to high. sent is when the granted request was sent, and acks
// how many replicas have it. grant returns false if the entry no longer waits, or if the grant has ended: by its
// lease, or as a message has said (revoked).
func (e *Entry) grant(low, high int64, sent clock.Instant, remaining time.Duration, acks int, at *Step) bool {
	until := e.trustedUntil(sent, remaining)
	if !e.Waits() || e.revoked != nil || at.Now.Reached(until) {
		return false
	}
	s, need := e.Session, e.Terms.Replicas.N
	if s == nil {
		s = &Session{Acquisition: e.Acquisition}
		s.Ledger.Reserved = ledger.One(s.Read) // for its call
		s.Ledger.Granted(s.Ledger.Reserved)
	} else {
		s.renewed = sent
		s.wake(e.Await, low, at)
		need = s.Need().N // its holds from before the wait may need more
	}
	s.trust, s.renewed, s.token, s.left = until, sent, low, uint16(min(high-low, stickyTokens))
	s.unproven = acks < need
	if e.Terms.Sticky > 0 && Keepable(low, high) {
		e.Room.kept.giveBack(at)
		e.Room.kept = &kept{of: s}
	}
	e.Session, e.Acquisition.Entry = s, nil
	e.Room.sessions.add(s)
	e.Room.noteTaken(e.Acquisition)
	e.noteSilence(nil)
	switch {
	case e.hasClaim && e.Named():
		e.Room.admit(s, at)
	case e.hasClaim:
		e.Room.passes, e.Room.grantedAt = 0, at.Now
	}
	e.finished(at)
	s.schedule(at)
	return true
}

// finished wakes the call that waits for the entry.
func (e *Entry) finished(at *Step) {
	if e.Waiter != nil {
		at.do(Effect{Do: Wake, Who: e.Waiter})
		e.Waiter = nil
	}
}

// Fail ends an entry that will not be granted, and its call returns why. If it waits on a condition, its session is
// lost. The release gives up its place, and makes Redis refuse late copies. A refused branch needs it too: it may have
// been granted the lock, and lost it with its ancestor's hold. Until its release it is in the way of others.
func (e *Entry) Fail(why error, at *Step) {
	if e.Session != nil {
		e.Session.Lose(why, at)
		return
	}
	e.why = why
	e.leaveRoom(at)
	at.do(Effect{Do: Release, Of: e.Acquisition}) // before its call is woken: its next attempt waits for that release
	e.finished(at)
}

const (
	// maxStamps bounds how many sending times an entry keeps while Redis does not answer. A grant that names an older
	// request is not believed: the entry asks Redis.
	maxStamps = 16
	// LateAfter is how long after its sending a request may reach Redis and still be executed.
	LateAfter = 10 * time.Second
	// minPoll is the shortest wait for the end of a holder's lease: heartbeats must not spin when it is about to end.
	minPoll = 5 * time.Millisecond
	// followDelay is how much later than the head the other waiters ask at the end of the holder's lease.
	followDelay = 100 * time.Millisecond
)

// An Await describes the wait of a session on a condition. The session becomes an entry again, under the same nonce. It
// keeps its holds, which are not trusted until it is granted the lock again.
type Await struct {
	Op         int64   // of the request that gave up its holds, and of all copies of it
	Writes     uint32  // how many write holds it gets back
	Token      int64   // the token of these holds before the wait
	DoubtWaker any     // the call to wake when the server may have lost a signal; nil: no call waits, or it was woken
	holds      []*Hold // what the wait gives up: Session.Return puts them back on their handles
}

// An AwaitReply is Redis' answer to the request by which a session begins to wait on a condition.
type AwaitReply int64

// The replies.
const (
	OwnerElsewhere AwaitReply = iota - 1 // refused: its owner also holds in another session
	NotHeld                              // refused: the session does not hold
	OnCondition                          // it waits, or has waited in the meantime
)

// WaitBegun records that the session waits in Redis: heartbeats begin, and its claim goes to the next call in line.
// doubted says that a copy of the request went unanswered, so the wait is uncertain: the entry asks at once.
func (e *Entry) WaitBegun(doubted bool, at *Step) {
	if !e.Waits() {
		return // it holds again, or is over
	}
	e.Room.handClaim(e.Acquisition, PlaceNew, at)
	e.noteWaiting(e.Await.Op, &Answer{Code: Awaits}, at)
	if doubted {
		e.Kick(at)
	}
}

// Rejoin undoes Session.BeginWait, because the session does not wait in Redis. It goes on holding here, but is lost if
// its lease has ended meanwhile, or if a message has ended its grant. Its holds are off their handles until Return.
func (e *Entry) Rejoin(at *Step) {
	s := e.Session
	if !e.Waits() {
		return
	}
	s.Acquisition.Entry = nil
	s.Room.sessions.add(s)
	if s.isWanted() { // a waiter may have come in the meantime
		s.markWanted(at)
	}
	s.busy = false // an answer to a renewal that came in the meantime was ignored
	s.schedule(at)
	s.Check(at) // the lease may have ended while it was away
	if e.revoked != nil {
		s.Lose(e.revoked, at)
	}
	s.CatchUp(at) // a hold may have ended in the meantime
}

// DoubtSignal ends the wait on a condition as if signalled: the server may be another one now, which may have lost the
// signal. The caller of a Wait checks its condition anyway.
func (e *Entry) DoubtSignal(at *Step) {
	if e.Await != nil && e.Await.DoubtWaker != nil {
		at.do(Effect{Do: Wake, Who: e.Await.DoubtWaker})
		e.Await.DoubtWaker = nil
	}
}

// Codes of Redis' answer to a request for the lock.
const (
	Held     = 1
	Queued   = 2
	Taken    = 3  // it is taken, and the request does not queue
	Late     = -2 // its not-after has passed, or is too far in the future
	OfKind   = -3 // the name is in use as another kind of lock
	Awaits   = 4  // it waits on a condition
	Ended    = -4 // the nonce has ended, and is never granted again
	QueueKey = -5 // the script needs the queue, and the request must name its key, too
	Upgrade  = -6 // the owner reads, and wants to write
)

// A Request is one request of an entry.
type Request struct {
	*Entry
	Op       int64
	Sent     clock.Instant
	NotAfter int64 // server time (ms) after which Redis ignores it
}

// Answered takes the answer to a request of a waiting call. acks is how many replicas have acknowledged it. If the
// grant has ended already, said.Code becomes Ended. short means that Redis granted the lock, but too few replicas have
// acknowledged that, so the grant must be given up.
func (q Request) Answered(said *Answer, acks int, at *Step) (short bool) {
	e, a := q.Entry, q.Acquisition
	e.HashOnly = e.HashOnly && said.Code != QueueKey
	if short = said.Code == Held && acks < a.Terms.Replicas.N && !a.Held(); !short {
		q.apply(said, acks, at)
	}
	if said.Code == Held && !a.Held() {
		// The grant is given up, or it had ended before the answer came: Redis may not have noticed. With the doubt
		// kept, GiveUp sends a release, by which Redis also refuses late copies of the request.
		said.Code, a.keepsDoubt = Ended, true
	}
	a.settled(nil) // after that, because it clears a doubt that is not kept
	return short
}

// Unanswered records that a request failed. hashOnly says that the next request must name only the hash.
func (q Request) Unanswered(f Failure, hashOnly bool) {
	q.settled(&f)
	q.HashOnly = hashOnly
}

// apply carries out what an answer says. acks is how many replicas have acknowledged it.
func (q Request) apply(said *Answer, acks int, at *Step) {
	e, a := q.Entry, q.Acquisition
	switch {
	case a.Entry != nil && a.Entry != e:
		// The acquisition has held since this request, and waits on a condition now, by another entry.
	case said.Code == Held && a.Held():
		a.Session.extend(q.Sent, a.trustedUntil(q.Sent, said.Remaining), acks)
		a.noteWanted(said.Wanted, at)
	case said.Code == Held:
		if e.grant(said.Low, said.High, q.Sent, said.Remaining, acks, at) {
			a.Session.handed = said.Remaining < a.Terms.TTL
			a.noteWanted(said.Wanted, at)
		}
	case (said.Code == Queued || said.Code == Awaits) && e.Waits():
		e.noteWaiting(q.Op, said, at)
	case said.Code == Taken:
		a.Room.needRare()
		a.Room.noteTaken(a)
	}
	if said.Ghost != "" {
		at.do(Effect{Do: Disown, Nonce: said.Ghost, Of: a, At: q.Sent})
	}
}

// Missed records that a heartbeat failed. Another one follows: at once if the entry was kicked meanwhile, since the
// link may be back. If asking again is hopeless, the entry ends. fails counts its retries in a row.
func (q Request) Missed(f Failure, hopeless bool, at *Step) (fails int) {
	e := q.Entry
	e.busy = false
	e.settled(&f)
	switch {
	case !e.Waits(): // it was granted or given up while the heartbeat was in flight
	case hopeless:
		e.Fail(f.Err, at)
	case e.again:
		e.Kick(at)
	default:
		e.retry(trust.Attempt(e.Terms.TTL), at)
	}
	return int(e.fails)
}

// BeatAnswered takes the answer to a heartbeat. If that is a grant that has ended already, wasted is how many such
// grants the entry has had. Otherwise it is 0.
func (q Request) BeatAnswered(said Answer, at *Step) (wasted int) {
	e := q.Entry
	e.busy = false
	e.settled(nil)
	switch {
	case !e.Waits(): // it was granted or given up while the heartbeat was in flight
	case said.Code == OfKind, said.Code == Upgrade, said.Code == Ended:
		e.Fail(&Refusal{said}, at)
	case said.Code == Late:
		e.retry(trust.Attempt(e.Terms.TTL), at)
	default:
		q.apply(&said, 0, at)
		if e.Waits() && said.Code != Queued && said.Code != Awaits {
			e.Wasted++
			wasted = e.Wasted
			// The grant had ended before the answer came, so it only kept the lock from others. So the pauses grow.
			e.retry(time.Minute, at)
		}
		if e.Waits() && e.again {
			e.Kick(at)
		}
	}
	return wasted
}

// An Answer is Redis' answer to one request.
type Answer struct {
	Code      int64
	Low, High int64         // held: the tokens
	Remaining time.Duration // held: what is left of the lease
	Wanted    bool          // held: others wait for its end
	Place     int64         // queued: its place
	Wait      time.Duration // queued or taken: until the holder's lease ends
	First     bool          // queued: at the head
	Ghost     string        // queued or taken: the nonce of the holding session, if it is of this client
	Kind      string        // OfKind: the kind in use
	More      bool          // the queue was too long for one call of the script
}

// A Refusal is the error of an entry that was ended by an answer: OfKind, Upgrade or Ended. Callers look at the answer.
type Refusal struct{ Answer } //nolint:errname // an answer, which ends a call as an error does

func (r *Refusal) Error() string { return "the request is refused" }

// A silence records since when Redis has owed an answer. The zero value means that it owes none.
type silence struct {
	since clock.Instant // when the first unanswered request was sent
	last  error         // error of the latest request that failed since; nil: all are in flight
}

// asked records that a request is sent.
func (s *silence) asked(now clock.Instant) {
	if s.since.IsZero() {
		s.since = now
	}
}

// ended records how a request ended. f is nil if it was answered.
func (s *silence) ended(f *Failure) {
	if f == nil {
		*s = silence{}
	} else if !s.since.IsZero() {
		s.last = f.Err
	}
}

// trouble returns what is wrong with Redis now.
func (s *silence) trouble(now clock.Instant) Trouble {
	switch {
	case s.since.IsZero():
	case s.last != nil:
		return Trouble{Err: s.last}
	case now.Sub(s.since) > calm:
		return Trouble{Silent: now.Sub(s.since)}
	}
	return Trouble{}
}

// A Trouble says what is wrong with Redis. The zero value means that nothing is wrong.
type Trouble struct {
	Err    error         // how the latest request failed
	Silent time.Duration // or for how long it has not answered
}

// calm is how long a request may be in flight before a wait that ends calls it unanswered. Redis answered the request
// before it, so it will probably answer this one too.
const calm = 100 * time.Millisecond
