package room

import (
	"math"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/trust"
)

// A Statement tells Redis how many holds a session has, and renews its lease.
type Statement struct {
	Session *Session
	Sent    clock.Instant
	Said    ledger.Statement
	Lease   time.Duration // 0: the lease stays as it is
	Need    Replicas      // how many must acknowledge it
	Several bool          // it names the queue, because other sessions hold the lock too
	renewal bool          // it is a renewal, which repeats the newest counts
}

// A Reply is Redis' reply to a statement.
type Reply struct {
	Held      bool
	Several   bool  // the session is one of several, so the statement must name the queue
	Now       int64 // server time in ms; 0: the clock was not read, and the lease left as it was
	Remaining time.Duration
	More      bool // downgrade: the queue was too long for one call
	Counted   bool // Waiting is set
	Waiting   int  // how many wait for the end of what the session holds
}

// A Verdict says what the reply to a statement means.
type Verdict int

// The verdicts.
const (
	Known Verdict = iota // Redis has the statement
	Short                // Redis has the statement, but too few replicas do: it extends no trust
	Again                // the statement must be made again at once
	Over                 // the session is over
)

// A Renewal says how a session is renewed. Sessions with equal renewals are renewed together.
type Renewal struct {
	Lease  time.Duration
	Within time.Duration // how long to wait for the answer, replicas included
	Need   Replicas
	// Together: one command can renew it together with others. It needs no replicas, and the lock is no read/write lock. The
	// session is alone as far as this client knows, and Redis has answered its newest statement.
	Together bool
}

// stale reports whether the session has begun to wait on a condition since the statement was made. Then the answer is
// about holds that it has given up.
func (st *Statement) stale() bool {
	return st.Session.Away() || st.Said.Op < st.Session.awaitOp
}

// Stated takes the reply to a statement. acks is how many replicas have acknowledged it. A statement that a later one
// has overtaken changed nothing in Redis, not even the lease. So trust and the next renewal follow only from the
// remaining lease in the reply.
func (st *Statement) Stated(reply Reply, acks int, at *Step) (v Verdict) {
	s := st.Session
	st.tried()
	s.Check(at)
	switch {
	case s.Over || st.stale():
		return Over
	case reply.Several && !st.Several: // even if another answer has set s.several in the meantime
		s.several = true
		return Again
	case !reply.Held:
		s.Lose(ErrRemoved, at)
		return Over
	}
	if reply.Counted {
		s.waitedFor(reply.Waiting, at)
	}
	switch {
	case reply.Now == 0: // the lease was left as it was
		s.fails = 0
	case s.extend(st.Sent, s.trustedUntil(st.Sent, reply.Remaining), acks):
		s.fails = 0
		s.schedule(at)
	default:
		v = Short
	}
	if reply.More {
		return Again
	}
	if !st.renewal {
		s.Ledger.Answered(st.Said, v == Known)
	}
	return v
}

// Renewed takes the answer to a renewal that one command made for many sessions. waiting is how many wait for the end
// of this session. extended says that trust was extended.
func (st *Statement) Renewed(waiting int, at *Step) (extended bool) {
	s := st.Session
	if st.stale() {
		return false
	}
	st.tried()
	s.Check(at)
	if extended = s.extend(st.Sent, s.trustedUntil(st.Sent, st.Lease), 0); extended {
		s.fails = 0
		s.waitedFor(waiting, at)
	}
	s.schedule(at) // the next renewal is due at once if nothing was extended: a hold asks for replicas by now
	return extended
}

// tried records that a renewal is not in flight any more.
func (st *Statement) tried() {
	if st.renewal && !st.stale() { // else a later renewal may be in flight
		st.Session.busy = false
	}
}

// Unrenewed schedules another try of a renewal that was not answered, or that too few replicas have acknowledged. tooFew
// is the error in the second case, else nil. Sessions that share *soon are tried again together: the first of them sets
// it. fails counts the failures in a row. It is 0 if the session is over, or has begun to wait on a condition.
func (st *Statement) Unrenewed(tooFew error, soon *clock.Instant, at *Step) (fails int) {
	st.tried()
	s := st.Session
	if s.Over || st.stale() {
		return 0
	}
	if tooFew != nil {
		s.why = tooFew
	}
	if s.fails < math.MaxUint8 {
		s.fails++
	}
	if soon.IsZero() {
		*soon = at.Now.Add(at.Pause(int(s.fails), trust.Attempt(s.shortest(at.Now))))
	}
	if s.Room.kept == nil || !s.Room.kept.schedule(s, at) { // a kept grant is not renewed: schedule sets its timer
		at.timer(s.Acquisition, clock.Min(*soon, s.firstEnd()), 0)
	}
	return int(s.fails)
}
