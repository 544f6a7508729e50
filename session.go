package relock

import (
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
)

// maxStamps bounds the sending times kept while Redis is away: a grant for an
// older request is asked about instead of believed.
const maxStamps = 16

type phase uint8

const (
	asking phase = iota // no answer yet
	queued              // waits in Redis
	held                // Redis has granted it, and we trust that
	over                // released, lost, or given up
)

// A session is one acquisition as Redis knows it, by its nonce: from the first
// request, through the queue, to the last unlock of the holds that share it.
// The requests of one session carry growing numbers (op), so that Redis can
// tell a late copy from news.
//
// A process may hold very many: what a session has only while it waits, or only
// where its count can change, is in records of their own.
type session struct {
	room  *room
	nonce nonce
	own   int64        // number of the owner made for it; 0: it has a name
	terms *terms       // of the handle that asked
	task  renewal.Task // its next heartbeat, poll or renewal, or the end of its trust

	// turn has one place: who states a new count waits for the statement before. It
	// and the rest of stating are nil unless the count can change: a named owner's, or
	// that of a read/write lock.
	turn chan struct{}
	*stating

	// named and read do not change. room.mu guards all that follows them.

	named  bool
	read   bool // asked for in shared mode
	phase  phase
	front  bool // carries the room's claim: its anonymous holds may be passed on locally
	maybe  bool // a request has gone unanswered for good
	busy   bool // the watchdog has a request of this session in flight
	again  bool // a look came meanwhile: poll once more
	oneKey bool // the slot migrates: requests name the hash alone
	handed bool // granted by a message, for the rest of the entry's lease
	// unproven: held, but replicas that the terms ask for have not acknowledged
	// it: no hold may be made of it, and it is passed on to nobody.
	unproven bool
	left     uint8 // tokens of the block, for holds that are passed on locally
	reserved int32 // calls that have waited for what was granted, and have not made their holds yet
	copies   int32 // requests in flight
	fails    int32 // of its heartbeats or renewals, since the last that worked

	*asked // nil once it is held
	ticket int64
	op     int64
	doubt  int64 // server ms until which an unanswered copy of a request may still act; 0: there is none

	trust   clock.Instant // held: until then nobody else can hold
	renewed clock.Instant // when the last request that trust rests on was sent
	next    int64         // the token of the next local hold
	count   counts        // holds that Redis has been told of
	intent  counts        // holds in the newest statement
	holds   few[Hold]     // that are not unlocked

	// why it is over, where no unlock ended it; while it is held, why the latest
	// renewal extended nothing, though Redis has it
	lost error
}

// asked is what a session has until it is held. room.mu guards it.
type asked struct {
	// done is closed when the session is granted, or over before that. Who waits
	// for it makes it.
	done      chan struct{}
	sent      []stamp // sending times of the last answered request and those after it
	one       [1]stamp
	answered  int64         // op of the last request that was answered "queued"
	heartbeat clock.Instant // when the next one is due
	owes      silence
	told      clock.Instant // when the holder's lease ends
	wasted    int           // grants that had ended when they were heard of
}

// stating is what a session has whose count can change.
type stating struct {
	name string // the owner's; "": it is one made for the session

	// Guarded by room.mu:

	joining replicas      // what a hold under way asks for
	longest time.Duration // lease that any hold has asked for: Redis may keep it so long
	outer   counts        // holds that Redis is to know of
	local   counts        // and the others
	shares  []share       // the same holds by what was asked for
}

// A stamp says when a request was sent.
type stamp struct {
	op int64
	at clock.Instant
}

// newSession needs r.mu.
func (r *room) newSession(owner string, l *Lock) *session {
	s := &session{room: r, nonce: newNonce(), named: owner != "", read: l.read, terms: &l.terms, asked: &asked{}}
	s.sent = s.one[:0]
	if s.named || r.kind == kindRW || r.kind == kindFairRW {
		s.turn = make(chan struct{}, 1)
		s.stating = &stating{name: owner}
	}
	if !s.named {
		s.own = r.c.owners.Add(1)
	}
	s.task.Of = s
	return s
}

// margin is what is taken off a lease before it is trusted: clocks that run at
// different rates (up to 1 %), and the millisecond that Redis counts in.
func margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// attempt is how long one request is waited for before it is sent again.
func (s *session) attempt() time.Duration { return attempt(s.terms.ttl) }

// attempt is how long a call takes that makes one attempt, replicas included.
func (t *terms) attempt() time.Duration {
	if t.replicas.n == 0 {
		return attempt(t.ttl)
	}
	return max(attempt(t.ttl), t.replicas.timeout+t.ttl/12)
}

func attempt(ttl time.Duration) time.Duration { return min(max(ttl/3, minTTL), 2*time.Second) }

// longestPulse is how long a waiter relies on messages, however long its lease is:
// one that was lost leaves the lock idle until the next heartbeat, and a link that
// is idle for minutes is forgotten by what lies on the way.
const longestPulse = 10 * time.Second

// pulse is the time between two heartbeats.
func pulse(ttl time.Duration) time.Duration { return min(ttl/3, longestPulse) }

// block is how many tokens a grant reserves: one for each local hold.
func (s *session) block() int {
	if s.front && s.passable() {
		return 1 + maxPasses
	}
	return 1
}

// passable says that holds of these terms can follow each other without a command.
func (s *session) passable() bool {
	return !s.named && !s.terms.fixed && s.terms.maxHold == 0
}

// send numbers a request and notes when it leaves. It needs room.mu.
func (s *session) send(now clock.Instant) (op, notAfter int64) {
	s.op++
	s.copies++
	s.sent = append(s.sent, stamp{s.op, now})
	if len(s.sent) > maxStamps {
		s.sent = s.sent[1:]
	}
	notAfter = s.room.serverNow() + lateAfter.Milliseconds()
	s.doubt = max(s.doubt, notAfter)
	s.owe(now)
	return s.op, notAfter
}

// settled notes how a request ended. It needs room.mu.
func (s *session) settled(err error) {
	s.copies--
	s.paid(err)
	if err != nil && transport.Classify(err) == transport.Unknown {
		s.maybe = true
	}
	if s.copies == 0 && !s.maybe {
		s.doubt = 0
	}
}

// sentAt returns when the request was sent. It needs room.mu.
func (s *session) sentAt(op int64) (clock.Instant, bool) {
	for _, st := range s.sent {
		if st.op == op {
			return st.at, true
		}
	}
	return clock.Instant{}, false
}

// forget drops the stamps before op, whose answer has come. It needs room.mu.
func (s *session) forget(op int64) {
	for len(s.sent) > 0 && s.sent[0].op < op {
		s.sent = s.sent[1:]
	}
}

// queue notes that the request op was answered "queued". It needs room.mu.
func (s *session) queue(op int64, a answer, now clock.Instant) {
	if s.phase > queued || op < s.answered {
		return
	}
	sent, ok := s.sentAt(op)
	if !ok {
		return
	}
	s.phase, s.ticket, s.answered, s.fails = queued, a.ticket, op, 0
	s.room.gather() // who comes to stand in line goes by what is said now
	s.room.word(s, now)
	s.forget(op)
	beat := pulse(s.terms.ttl)
	s.heartbeat = s.room.align(now, sent.Add(beat), beat/4)
	if s.again && !s.busy {
		s.again, s.heartbeat = false, now
	}
	s.told = now.Add(max(a.wait, minPoll))
	if !a.first {
		// The head asks first; the others only where nobody there does.
		s.told = s.told.Add(followDelay)
	}
	s.schedule(now)
}

// grant makes the session held by a request sent at the given time, which so
// many replicas have acknowledged. False: the lease has already run out, as
// after a pause. It needs room.mu.
func (s *session) grant(low, high int64, sent clock.Instant, remaining time.Duration, now clock.Instant, acks int) bool {
	trust := s.trusted(sent, remaining)
	if s.phase >= held {
		s.extend(sent, trust, acks)
		return s.phase == held
	}
	if now.Reached(trust) {
		return false
	}
	s.phase, s.fails, s.reserved = held, 0, 1
	s.unproven = acks < s.need().n
	s.count = s.claims()
	s.intent = s.count
	s.next, s.left = low, uint8(min(high-low, maxPasses))
	s.trust, s.renewed = trust, sent
	s.room.sessions.add(s)
	s.room.word(s, now)
	s.paid(nil)
	switch {
	case s.front && s.named:
		s.room.admit(s)
	case s.front:
		s.room.passes, s.room.since = 0, now
	}
	s.finished()
	s.asked = nil
	s.schedule(now)
	return true
}

// wasHanded says that the session has what was left of its entry's lease.
func (s *session) wasHanded() bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.handed
}

// trusted returns how long a lease of which a request sent at the given time was
// told the rest can be trusted. No lease is longer than was ever asked for; it
// only looks so while the server's clock is behind the one it was granted by,
// and it ends at once when that clock is put right. It needs room.mu.
func (s *session) trusted(sent clock.Instant, remaining time.Duration) clock.Instant {
	remaining = min(remaining, s.lasts())
	return sent.Add(remaining - margin(remaining))
}

// waitable returns a channel that is closed when the session is granted, or over
// before that. It needs room.mu.
func (s *session) waitable() <-chan struct{} {
	if s.phase > queued {
		return closed
	}
	if s.done == nil {
		s.done = make(chan struct{})
	}
	return s.done
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// finished needs room.mu.
func (s *session) finished() {
	if s.done != nil {
		close(s.done)
	}
}

// extend moves trust, never backwards: an older answer may arrive later. It
// rests on what enough replicas have, and on nothing else. It needs room.mu.
func (s *session) extend(sent, trust clock.Instant, acks int) (done bool) {
	if s.phase != held || acks < s.need().n {
		return false
	}
	s.trust = clock.Max(s.trust, trust)
	s.renewed = clock.Max(s.renewed, sent)
	s.unproven, s.lost = false, nil
	return true
}

// grain is how much earlier than a third of a lease a renewal may go out, so that
// those of many locks go out together.
func grain(lease time.Duration) time.Duration { return lease / 192 }

// schedule sets what the watchdog does next for the session. It needs room.mu.
func (s *session) schedule(now clock.Instant) {
	w := s.room.c.watchdog
	switch {
	case s.phase == queued && !s.busy:
		due := s.heartbeat
		if s.told.Until(due) > 0 {
			due = s.told
		}
		w.Set(&s.task, due)
	case s.phase == held && s.busy:
		w.Set(&s.task, s.trust)
	case s.phase == held:
		if _, ok := s.renewal(now); ok {
			lease := s.leased()
			if next := s.renewed.Add(lease / 3); next.Until(s.trust) > 0 {
				w.SetAbout(&s.task, next, grain(lease))
				return
			}
		}
		w.Set(&s.task, s.trust)
	case s.phase == over:
		w.Drop(&s.task)
	}
}

// kick makes a waiter poll now: what it was told may be out of date. It needs room.mu.
func (s *session) kick(now clock.Instant) {
	if s.phase > queued {
		return
	}
	if s.busy || s.phase == asking {
		s.again = true // what is under way may have been answered before this
		return
	}
	s.heartbeat = now
	s.schedule(now)
}

// retry schedules another try soon after one that failed. It needs room.mu.
func (s *session) retry(now clock.Instant) {
	s.fails++
	s.retryAt(now.Add(backoff(int(s.fails))))
}

// retryAt needs room.mu.
func (s *session) retryAt(soon clock.Instant) {
	switch s.phase {
	case queued:
		s.heartbeat = soon
		s.room.c.watchdog.Set(&s.task, soon)
	case held:
		if soon.Reached(s.trust) {
			soon = s.trust
		}
		s.room.c.watchdog.Set(&s.task, soon)
	}
}

// lasts is how long Redis keeps what the session has there, at most. Holds that
// are unlocked count: a lease never gets shorter. It needs room.mu.
func (s *session) lasts() time.Duration {
	if s.stating == nil {
		return s.terms.ttl
	}
	return max(s.terms.ttl, s.longest)
}

// leased is the longest TTL of the session's holds. It needs room.mu.
func (s *session) leased() time.Duration {
	ttl := s.terms.ttl
	for terms := range s.asks() {
		ttl = max(ttl, terms.ttl)
	}
	return ttl
}

// renewal returns the lease to ask for, and whether any hold has a watchdog
// that still renews. It needs room.mu.
func (s *session) renewal(now clock.Instant) (time.Duration, bool) {
	if s.holds.first == nil {
		// Granted, and the call that waits for it has not made its hold yet.
		return s.terms.ttl, !s.terms.fixed
	}
	for terms := range s.asks() {
		if !terms.fixed && (terms.maxHold == 0 || now.Sub(s.latest(terms)) < terms.maxHold) {
			return s.leased(), true
		}
	}
	return 0, false
}

// check judges the session by the clock, before anything is answered from it:
// a timer that should have ended it may yet have to fire. It needs room.mu, and
// its result is to be run without it.
func (s *session) check(now clock.Instant) (tell func()) {
	if s.phase == held && now.Reached(s.trust) {
		why := fmt.Errorf("%w: its lease could not be renewed in time", ErrLost)
		if s.lost != nil {
			why = fmt.Errorf("%w: %w", why, s.lost)
		}
		tell := s.lose(why, now)
		until := s.doubt
		return func() {
			// A renewal that went unanswered may keep it in Redis for another lease.
			s.releaseLater(until)
			tell()
		}
	}
	return nil
}

// claims is how many holds Redis is to know of: those that the session has or is
// about to have. Local ones stand behind another of their mode, and count as one
// when that has ended. It needs room.mu.
func (s *session) claims() counts { return s.claimsAnd(counts{}) }

// claimsAnd is claims with more that Redis is to be told of. It needs room.mu.
func (s *session) claimsAnd(n counts) counts {
	if s.read {
		n.reads += uint32(s.reserved)
	} else {
		n.writes += uint32(s.reserved)
	}
	outer, local := s.holding()
	n.writes += outer.writes
	n.reads += outer.reads
	n.writes = max(n.writes, min(local.writes, 1))
	n.reads = max(n.reads, min(local.reads, 1))
	return n
}

// lose ends a held session that no unlock ended. It needs room.mu, and its
// result is to be run without it.
func (s *session) lose(why error, now clock.Instant) (tell func()) {
	if s.phase != held {
		return nil
	}
	s.phase, s.lost = over, why
	s.room.c.losses.Add(1)
	s.schedule(now)
	s.room.remove(s)
	s.room.noWord(s.flow())
	var cancels, tells []func()
	for _, h := range s.holds.all() {
		cancel, tell := h.lose(why, now)
		cancels, tells = append(cancels, cancel), append(tells, tell)
	}
	s.room.passClaim(s)
	return func() {
		s.room.c.unregister(s)
		for _, cancel := range cancels {
			cancel()
		}
		runAll(tells)
	}
}

// gone is lose for what Redis says it no longer has. A copy of a request that went
// unanswered may yet come there, and would be granted to nobody: its nonce is ended.
// It needs room.mu, and its result is to be run without it.
func (s *session) gone(why error, now clock.Instant) (tell func()) {
	until, lost := s.doubt, s.lose(why, now)
	if lost == nil || until == 0 {
		return lost
	}
	return func() {
		lost()
		s.releaseLater(until)
	}
}

// run calls what a method that needed a mutex wants to be called without it.
func run(tell func()) {
	if tell != nil {
		tell()
	}
}

// runAll calls each of them, though a hook that one calls panics or ends its goroutine.
func runAll(tells []func()) {
	if len(tells) == 0 {
		return
	}
	defer runAll(tells[1:])
	run(tells[0])
}

// hopeless says that asking again would get the same answer.
func hopeless(err error) bool {
	outcome := transport.Classify(err)
	return outcome == transport.Refused || outcome == transport.Closed
}

// isRefused says that Redis answered with an error that is not a passing one.
func isRefused(err error) bool { return transport.Classify(err) == transport.Refused }

// isClosed says that no call through the user's Redis client can succeed any more.
func isClosed(err error) bool {
	return err != nil && transport.Classify(err) == transport.Closed
}
