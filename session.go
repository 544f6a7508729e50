package relock

import (
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// A session is an acquisition that Redis has granted, from then to the last unlock
// of the holds that share it. room.mu guards it.
type session struct {
	*acquisition
	// turn has one place: who states a new count waits for the statement before. It
	// is nil where none has been stated, and none can be but by the call that waits.
	turn chan struct{}

	busy bool // a renewal is in flight
	// several: Redis has it as one of several that hold, whose statements name the queue.
	several bool
	handed  bool // granted by a message, for the rest of the entry's lease
	// unproven: replicas that the terms ask for have not acknowledged it: no hold may
	// be made of it, and it is passed on to nobody.
	unproven bool
	left     uint8 // tokens of the block, for holds that are passed on locally
	fails    int32 // of its renewals, since the last that worked

	term    trust.Term    // until when nobody else can hold
	next    int64         // the token of the next local hold
	longest time.Duration // lease that any hold has asked for: Redis may keep it so long
	holds   few[Hold]     // that are not unlocked
	ledger  ledger.Ledger // what Redis knows of them, and is to know
	shares  []share       // the holds by what was asked for, where their number can change
}

// reserve counts the hold of a call that is about to make it; unreserve undoes that.
// They need room.mu.
func (s *session) reserve()   { s.ledger.Reserved = s.ledger.Reserved.And(ledger.One(s.read)) }
func (s *session) unreserve() { s.ledger.Reserved = s.ledger.Reserved.Less(ledger.One(s.read)) }

// attempt is how long a call takes that makes one attempt, replicas included.
func (t *terms) attempt() time.Duration { return t.replicas.within(t.ttl) }

// counted says that the number of the acquisition's holds can change: a named owner's,
// and that of a read/write lock, where an anonymous writer may downgrade.
func (a *acquisition) counted() bool {
	return a.named() || a.room.kind == wire.KindRW || a.room.kind == wire.KindFairRW
}

// extend moves trust, never backwards: an older answer may arrive later. It
// rests on what enough replicas have, and on nothing else. It needs room.mu.
func (s *session) extend(sent, until clock.Instant, acks int) (done bool) {
	if s.over || acks < s.need().n {
		return false
	}
	s.term.Extend(sent, until)
	s.unproven, s.lost = false, nil
	return true
}

// schedule sets what the watchdog does next for the session. It needs room.mu.
func (s *session) schedule(now clock.Instant) {
	if s.over {
		return
	}
	w := s.room.c.watchdog
	if _, renew := s.renewal(now); renew && !s.busy {
		lease := s.leased()
		if due, renew := s.term.Due(lease); renew {
			w.SetAbout(&s.task, due, trust.Grain(lease))
			return
		}
	}
	w.Set(&s.task, s.term.Until)
}

// retry schedules another renewal soon after one that failed. It needs room.mu.
func (s *session) retry(now clock.Instant) {
	s.fails++
	s.retryAt(now.Add(transport.Backoff(int(s.fails))))
}

// retryAt needs room.mu.
func (s *session) retryAt(soon clock.Instant) {
	s.room.c.watchdog.Set(&s.task, s.term.Within(soon))
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
// a timer that should have ended it may yet have to fire. It needs room.mu.
func (s *session) check(now clock.Instant) {
	if s.over || !s.term.Over(now) {
		return
	}
	why := fmt.Errorf("%w: its lease could not be renewed in time", ErrLost)
	if s.lost != nil {
		why = fmt.Errorf("%w: %w", why, s.lost)
	}
	// A renewal that went unanswered may keep it in Redis for another lease.
	s.room.then(s.releaseLater)
	s.lose(why, now)
}

// lose ends a session that no unlock ended. It needs room.mu.
func (s *session) lose(why error, now clock.Instant) {
	if s.over {
		return
	}
	r := s.room
	s.over, s.lost = true, why
	r.c.losses.Add(1)
	r.c.watchdog.Drop(&s.task)
	r.remove(s)
	r.noWord(s.flow())
	r.handClaim(s.acquisition, wire.PlaceNew)
	r.c.unregister(s.acquisition)
	var tells []func()
	for _, h := range s.holds.all() {
		cancel, tell := h.lose(why, now)
		r.then(cancel...) // of all holds, before a hook is called
		tells = append(tells, tell)
	}
	r.then(tells...)
}

// gone is lose for what Redis says it no longer has. A copy of a request that went
// unanswered may yet come there, and would be granted to nobody: its nonce is ended.
// It needs room.mu.
func (s *session) gone(why error, now clock.Instant) {
	over := s.over
	s.lose(why, now)
	if over || s.doubt.until == 0 {
		return
	}
	s.room.then(s.releaseLater)
}

// runAll calls each of them, though a hook that one calls panics or ends its goroutine.
func runAll(todo []func()) {
	if len(todo) == 0 {
		return
	}
	defer runAll(todo[1:])
	todo[0]()
}

// firstHold makes the hold for which a call has waited. It needs room.mu.
func (s *session) firstHold(l *Lock, now clock.Instant) (*Hold, error) {
	s.check(now)
	switch {
	case s.over:
		return nil, errGone
	case s.room.c.ending.Load():
		// Close came while the answer was under way, and has not seen the grant.
		s.lose(errors.Join(ErrLost, ErrClosed), now)
		return nil, ErrClosed
	}
	s.unreserve()
	return s.newHold(l, now), nil
}

// toConfirm says that no hold may be made yet: the rest of the queue entry's lease is
// not what a fixed lease promises, and replicas have yet to acknowledge what a message
// or a heartbeat said. It needs room.mu.
func (s *session) toConfirm() bool {
	return s.terms.fixed && s.handed || s.unproven && !s.over
}

// confirm states a hold that was granted by a message: one with a fixed lease
// has its full TTL then, and replicas acknowledge this statement where they did
// not the grant. If it fails the grant goes to the next in the queue.
func (s *session) confirm(w *waiting) error {
	x := s.terms.wish(ledger.Counts{})
	s.room.mu.Lock()
	if s.turn == nil {
		s.turn = make(chan struct{}, 1)
	}
	s.ledger.Wish(x)
	s.room.mu.Unlock()
	_, err := s.tell(w.ctx, x, w.once)
	s.room.mu.Lock()
	s.ledger.Withdraw(x)
	s.room.mu.Unlock()
	if errors.Is(err, errTurn) {
		err = w.overOr(errTurn)
	}
	if err != nil {
		s.giveUp()
	}
	return err
}
