package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/trust"
)

// This file is how Redis is made to know what a session's holds need, as its ledger says.

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

// Next returns what is to be stated, for w or because needs have changed: none if Redis
// knows it already. Where nothing is needed any more the session is ended, and last says
// that its release is to be sent. over: it is lost, or was ended.
func (s *Session) Next(w *ledger.Wish, at *Step) (st *Statement, last, over bool) {
	if s.Check(at); s.over || s.Away() {
		return nil, false, true
	}
	switch s.Ledger.Next(w) {
	case ledger.Say:
		st = s.statement(at)
	case ledger.End:
		last = true
		s.end(at)
	}
	return st, last, false
}

func (s *Session) statement(at *Step) *Statement {
	s.op++
	said := s.Ledger.State(s.op)
	st := &Statement{Session: s, Sent: at.Now, Said: said, Lease: said.Lease, Several: s.several}
	if said.Lease > 0 { // else it gives up holds, which needs nobody's acknowledgement
		st.Need = s.Need()
	}
	if said.Kept && st.Need.N == 0 && s.renews(said.Lease, at.Now) && s.fresh(said.Least, at.Now) {
		st.Lease = 0
	}
	s.longest = max(s.longest, int32((st.Lease+time.Millisecond-1)/time.Millisecond))
	return st
}

// renews says that the watchdog keeps a lease that is as long, and that renewals have
// worked of late: a statement that leaves it as it is costs the server half as much.
func (s *Session) renews(lease time.Duration, now clock.Instant) bool {
	kept, renewed := s.renewal(now)
	return renewed && kept >= lease && !s.unproven && s.fresh(lease, now)
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

// CatchUp has Redis told of what nobody will tell it of else: what was stated may have
// arrived, or may yet, and a later statement overrides it.
func (s *Session) CatchUp(at *Step) {
	if !s.over && !s.Away() && !s.Ledger.Knows() {
		at.do(Effect{Do: Tell, Of: s.Acquisition})
	}
}

// A Renewal is how a session is renewed.
type Renewal struct {
	Lease  time.Duration
	Within time.Duration // it is waited for so long, replicas included
	Need   Replicas
	// Plain: it can be renewed together with others: a writer's or a semaphore's that holds
	// alone as far as is known, and Redis has been told of what it holds.
	Plain bool
}

// Due is what is to be done for a session whose timer has fired; false: nothing is to be sent.
func (s *Session) Due(at *Step) (r Renewal, due bool) {
	s.Check(at)
	lease, renew := s.renewal(at.Now)
	if s.over || s.Away() {
		return r, false
	}
	if due = renew && !s.busy; due {
		s.busy = true
		need := s.Need()
		r = Renewal{Lease: lease, Within: need.Within(s.shortest(at.Now)), Need: need}
		r.Plain = need.N == 0 && s.Ledger.Settled() && (s.Terms.Permits.Of > 0 || s.Ledger.Meant().Reads == 0) && !s.several && !s.Room.Shared
	}
	s.schedule(at)
	return r, due
}

// Renew makes the statement of a renewal that leaves now, or did before; false: it has
// been released since, and holds nothing.
func (s *Session) Renew(r Renewal, sent clock.Instant) (st Statement, held bool) {
	if s.over || s.Away() { // else it would be made to hold nothing
		return st, false
	}
	s.op++
	s.busy = true
	said := ledger.Statement{Op: s.op, Counts: s.Ledger.Meant()}
	return Statement{Session: s, Sent: sent, Said: said, Lease: r.Lease, Need: r.Need, Several: s.several}, true
}

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

// Tried notes that a renewal is not under way any more.
func (s *Session) Tried() { s.busy = false }

// Unrenewed has a renewal tried again soon that was not answered, or that too few
// replicas have: then short says so. again: it is held still.
func (s *Session) Unrenewed(short error, at *Step) (again bool) {
	s.busy = false
	if s.over || s.Away() {
		return false
	}
	if short != nil {
		s.lost = short
	}
	s.retry(at)
	return true
}

// UnrenewedWith is Unrenewed for one of many: they are tried again together, at soon,
// which is set by the first.
func (s *Session) UnrenewedWith(soon *clock.Instant, at *Step) (again bool) {
	s.busy = false
	if s.over || s.Away() {
		return false
	}
	pause := s.pause(at)
	if soon.IsZero() {
		*soon = at.Now.Add(pause)
	}
	s.retryAt(*soon, at)
	return true
}
