package room

import (
	"errors"
	"math"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/trust"
)

// Why a session is lost, as far as the room knows.
var (
	ErrExpired = loss.Because(loss.Unreachable, "its lease could not be renewed in time")
	ErrRemoved = loss.Because(loss.DataLost, "redis no longer has it")
	ErrLeft    = errors.New("its last hold has ended while its owner waited on a condition")
)

// expired is ErrExpired with why the latest renewal extended nothing: too few replicas had it.
type expired struct{ why error }

func (e *expired) Error() string   { return ErrExpired.Error() + ": " + e.why.Error() }
func (e *expired) Unwrap() []error { return []error{loss.Replicas, ErrExpired, e.why} }

// A Session is an acquisition that Redis has granted, from then to the last unlock
// of the holds that share it.
type Session struct {
	*Acquisition

	busy bool // a renewal is in flight
	// several: Redis has it as one of several that hold, whose statements name the queue.
	several bool
	handed  bool // granted by a message, for the rest of the entry's lease
	// unproven: replicas that the terms ask for have not acknowledged it: no hold may
	// be made of it, and it is passed on to nobody.
	unproven bool
	waking   bool  // it holds again, and its call has yet to say so
	ends     bool  // nothing is due but the end of its trust
	left     uint8 // tokens of the block, for holds that are passed on locally
	fails    uint8 // of its renewals, since the last that worked: so many at least
	Used     int32 // holds that calls have had, where the name is to rest after them
	longest  int32 // lease that any hold has asked for, in ms: Redis may keep it so long

	trust   trust.Trust   // until when nobody else can hold
	renewed clock.Instant // when the latest request left that Redis has answered with a lease
	token   int64         // of the next local hold
	holds   lone[Hold]    // that are not unlocked
	Ledger  ledger.Ledger // what Redis knows of them, and is to know
	shares  lone[share]   // the holds by what was asked for, where their number can change
	run     *run          // nil: it is passed on to nobody who is in the queue
	since   int64         // op by which it gave up its holds to wait on a condition; it holds again
}

// Until is when nobody else could hold, as things stand. Its holds may end before that.
func (s *Session) Until() clock.Instant { return s.trust.Until }

// Newest is its newest hold, or nil.
func (s *Session) Newest() *Hold {
	return s.holds.last()
}

// Live is how many holds it has that are not unlocked.
func (s *Session) Live() int { return s.holds.len() }

// Several says that Redis has it as one of several.
func (s *Session) Several() bool { return s.several }

// reserve counts the hold of a call that is about to make it; unreserve undoes that.
func (s *Session) reserve()   { s.Ledger.Reserved = s.Ledger.Reserved.And(ledger.One(s.Read)) }
func (s *Session) unreserve() { s.Ledger.Reserved = s.Ledger.Reserved.Less(ledger.One(s.Read)) }

// extend moves trust, never backwards: an older answer may arrive later. It
// rests on what enough replicas have, and on nothing else. until is by the answer to a
// request that left at sent.
func (s *Session) extend(sent, until clock.Instant, acks int) (done bool) {
	if s.over || s.Away() || acks < s.Need().N {
		return false
	}
	s.trust.Extend(until)
	s.renewed = clock.Max(s.renewed, sent)
	s.unproven, s.lost = false, nil
	return true
}

// schedule sets what is due next for the session: a renewal, or the end of a hold.
func (s *Session) schedule(at *Step) {
	if s.over || s.Away() {
		return
	}
	end := s.firstEnd()
	due, grain, renew := s.due(at.Now)
	s.ends = !renew || s.busy || due.Until(end) <= 0
	if s.ends {
		at.timer(s.Acquisition, end, 0)
		return
	}
	at.timer(s.Acquisition, due, grain)
}

// retry schedules another renewal soon after one that failed.
func (s *Session) retry(at *Step) {
	s.retryAt(at.Now.Add(s.pause(at)), at)
}

// pause counts a renewal that failed, and returns how long to wait after it.
func (s *Session) pause(at *Step) time.Duration {
	if s.fails < math.MaxUint8 {
		s.fails++
	}
	return at.Pause(int(s.fails), trust.Attempt(s.shortest(at.Now)))
}

func (s *Session) retryAt(soon clock.Instant, at *Step) {
	s.ends = false
	if end := s.firstEnd(); soon.Reached(end) {
		soon = end
	}
	at.timer(s.Acquisition, soon, 0)
}

// leased is the longest TTL of the session's holds.
func (s *Session) leased() time.Duration {
	ttl := s.Terms.TTL
	for terms := range s.asks() {
		ttl = max(ttl, terms.TTL)
	}
	return ttl
}

// Lose ends a session that no unlock ended.
func (s *Session) Lose(why error, at *Step) {
	if s.over {
		return
	}
	r := s.Room
	s.over, s.lost = true, why
	at.timer(s.Acquisition, clock.Instant{}, 0)
	r.sessions.remove(s)
	r.noWord(s.flow())
	r.handClaim(s.Acquisition, PlaceNew, at)
	s.dismiss(at)
	if e := s.Entry; e != nil { // it leaves its place
		at.do(Effect{Do: Release, Of: s.Acquisition})
		e.finished(at)
	} else {
		at.do(Effect{Do: Forget, Of: s.Acquisition})
	}
	at.do(Effect{Do: Lose, Of: s.Acquisition})
	for _, h := range s.holds.all() {
		h.lost = true
		at.do(Effect{Do: Lose, Of: s.Acquisition, Hold: h})
	}
}

// Close is Lose as the client ends. What no call has had yet is given back instead: nobody
// knows of it who would want its lease, nor what its name is to rest for. What is reserved
// stays so: the calls it is reserved for take it back, as from any session that is over.
func (s *Session) Close(why error, at *Step) {
	if s.over || s.Away() || s.Entry != nil || s.holds.first != nil {
		s.Lose(why, at)
		return
	}
	s.end(at)
	at.do(Effect{Do: Release, Of: s.Acquisition})
}

// LoseHeld is Lose for what Redis may go on having: it is to hear of that.
func (s *Session) LoseHeld(why error, at *Step) {
	if !s.over && s.Entry == nil {
		at.do(Effect{Do: Release, Of: s.Acquisition})
	}
	s.Lose(why, at)
}

// Gone is Lose for what Redis says it no longer has. A copy of a request that went
// unanswered may yet come there, and would be granted to nobody: its nonce is ended.
func (s *Session) Gone(why error, at *Step) {
	over := s.over
	s.Lose(why, at)
	if over || s.doubt == 0 {
		return
	}
	at.do(Effect{Do: Release, Of: s.Acquisition})
}

// ToConfirm says that no hold may be made yet: the rest of the queue entry's lease is
// not what a fixed lease promises, replicas have yet to acknowledge what a message or a
// heartbeat said, or a hold that waited on a condition has a longer lease than the one
// with which its session began, and which it was granted again.
func (s *Session) ToConfirm() bool {
	return s.Terms.Fixed && s.handed || s.unproven && !s.over || s.waking && s.leased() > s.Terms.TTL
}

// Confirmation is what is to be stated then.
func (s *Session) Confirmation() *ledger.Wish {
	x := s.Terms.Wish(ledger.Counts{})
	x.Lease = s.leased()
	return x
}

// Need is what the strictest of the session's holds asks of each statement that
// its trust is to rest on.
func (s *Session) Need() Replicas {
	need := s.Terms.Replicas
	n, timeout := s.Ledger.Strictest()
	need = need.or(Replicas{n, timeout})
	for terms := range s.asks() {
		need = need.or(terms.Replicas)
	}
	return need
}

// An Ending is what the end of a hold comes to.
type Ending int

// The endings.
const (
	Silent  Ending = iota // nothing is to be sent: the next in line holds, or Redis knows
	Fewer                 // Redis is to hear that there are fewer holds, or none
	Last                  // Redis is to hear that it is over
	WasLost               // it was over before
)

// finish ends what an unlocked hold was part of, which has been dropped: the next in
// line has the lock without any command, or Redis hears of it.
func (s *Session) finish(at *Step) Ending {
	switch {
	case s.counted():
		return Fewer
	case s.over:
		return WasLost
	case s.Room.passHold(s, at), s.Room.passAlong(s, at):
		return Silent
	}
	s.end(at)
	return Last
}

// finishApart is finish for a call that has gone: it does not wait for Redis.
func (s *Session) finishApart(at *Step) {
	if s.Absent() { // what it needs is stated when it holds again
		if s.holds.first == nil {
			s.LoseHeld(ErrLeft, at) // it would hold nothing then, and its signal is for others
		}
		return
	}
	switch s.finish(at) {
	case Fewer:
		at.do(Effect{Do: Tell, Of: s.Acquisition})
	case Last:
		at.do(Effect{Do: Release, Of: s.Acquisition})
	}
}
