package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/trust"
)

// A Statement is what Redis is told of a session.
type Statement struct {
	Session *Session
	Sent    clock.Instant
	Said    ledger.Statement
	Lease   time.Duration // 0: it stays as it is
	Need    Replicas      // that must acknowledge it
	Several bool          // it names the queue
}

// A Reply is what Redis says to a statement.
type Reply struct {
	Held      bool
	Several   bool  // the session is one of several: the statement has to name the queue
	Now       int64 // 0: the clock was not read
	Remaining time.Duration
	More      bool // downgrade: the queue was too long for one call
}

// A Verdict is what the reply to a statement comes to.
type Verdict int

// The verdicts.
const (
	Known Verdict = iota // Redis knows it
	Short                // it does, and too few replicas: no trust rests on it
	Again                // it is to be made once more, at once
	Over                 // the session is over
)

// A Renewal is how a session is renewed.
type Renewal struct {
	Lease  time.Duration
	Within time.Duration // it is waited for so long, replicas included
	Need   Replicas
	// Plain: it can be renewed together with others: a writer's or a semaphore's that holds
	// alone as far as is known, and Redis has been told of what it holds.
	Plain bool
}

// stale says that the session has given up its holds since the statement was made: the
// answer is of what it held before.
func (st *Statement) stale() bool {
	return st.Session.Away() || st.Said.Op < st.Session.since
}

// Stated takes the reply to a statement, which so many replicas have acknowledged. One that
// a later statement has overtaken changed nothing in Redis, its lease included: what is left
// is all that is trusted, and the next renewal is due by that.
func (st *Statement) Stated(reply Reply, acks int, at *Step) (v Verdict) {
	s := st.Session
	s.Check(at)
	switch {
	case s.over || st.stale():
		return Over
	case reply.Several && !st.Several: // though another's answer has said so meanwhile
		s.several = true
		return Again
	case !reply.Held:
		s.Gone(ErrRemoved, at)
		return Over
	case reply.Now == 0: // the lease is as it was
		s.fails = 0
	case s.extend(st.Sent, s.trusted(st.Sent, reply.Remaining), acks):
		s.fails = 0
		s.schedule(at)
	default:
		v = Short
	}
	if reply.More {
		return Again
	}
	return v
}

// Answered notes that Redis has a statement. proven: as many replicas have it as anybody asks for.
func (st *Statement) Answered(proven bool) { st.Session.Ledger.Answered(st.Said, proven) }

// Renewed takes the answer to a renewal that was made together with others.
func (st *Statement) Renewed(at *Step) (extended bool) {
	s := st.Session
	if st.stale() {
		return false
	}
	s.busy = false
	s.Check(at)
	extended = !s.over && s.extend(st.Sent, trust.Until(st.Sent, st.Lease), 0)
	switch {
	case extended:
		s.fails = 0
		s.schedule(at)
	case !s.over: // replicas are asked for since
		s.retry(at)
	}
	return extended
}
