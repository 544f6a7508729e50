package room

import (
	"iter"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
)

// A Hold is one hold of a session.
type Hold struct {
	Session  *Session
	Terms    *Terms
	Token    int64 // the instant of it, without the owner's digits
	Acquired clock.Instant
	Of       any // what it is to who drives the room

	Read     bool // shared with other readers
	local    bool // nested, and Redis has not been told of it
	released bool
	lost     bool  // before it was released
	why      error // why it was lost, where its session goes on
	// last is when the last renewal may leave that counts for it; zero: each counts.
	last clock.Instant
}

// Released says that its holder has ended it.
func (h *Hold) Released() bool { return h.released }

// Lost says that it was lost before its holder has ended it. It needs a Check before.
func (h *Hold) Lost() bool { return h.lost }

// Why says why it was lost.
func (h *Hold) Why() error {
	if h.why != nil {
		return h.why
	}
	return h.Session.Why()
}

// First makes the hold for which a call has waited, of a session that is held.
func (s *Session) First(h *Hold, at *Step) {
	s.unreserve()
	s.Hold(h, at)
}

// Hold makes a hold of a session that is held, unless it has just been lost. Its terms
// and whether it reads are set.
func (s *Session) Hold(h *Hold, at *Step) {
	h.Session, h.Token, h.Acquired = s, s.token, at.Now
	h.start()
	s.add(h)
	if s.Terms != h.Terms || s.ends { // else it is scheduled for such a hold
		s.schedule(at)
	}
}

// Raise gives the holds that follow the token of another server's instant, which is no larger
// than Redis' counter now. Those that are made keep theirs.
func (s *Session) Raise(instant int64) { s.token = instant }

// End ends a hold by its holder.
func (h *Hold) End(at *Step) Ending {
	s := h.Session
	if !h.released {
		s.Check(at)
	}
	ended := h.released || h.lost
	h.released = true
	if ended {
		return WasLost
	}
	s.drop(h)
	if h.local && s.Ledger.Knows() {
		return Silent
	}
	return s.finish(at)
}

// Detach ends a hold that is handed over, as its session is with it; false: the session
// has others, or is about to.
func (h *Hold) Detach(at *Step) bool {
	s := h.Session
	if s.holds.len() != 1 || s.Ledger.Needs() != ledger.One(h.Read) {
		return false
	}
	h.released = true
	s.drop(h)
	s.dismiss(at)
	s.end(at)
	return true
}

// GiveBack ends a hold that its call will not return: whose context has ended does
// not wait for the release. A hook may have ended it before: then what it was held
// by may be the next call's.
func (h *Hold) GiveBack(at *Step) {
	s := h.Session
	live := !s.over && !h.released && !h.lost
	h.released = true
	s.drop(h)
	if live {
		s.finishApart(at)
	}
}

// Unnest is End where Redis need not hear of it; false: it has to, or it is lost.
func (h *Hold) Unnest(at *Step) bool {
	s := h.Session
	if !h.local || s.over || h.released || h.lost || at.Now.Reached(h.Until()) {
		return false
	}
	s.drop(h)
	if !s.Ledger.Knows() {
		s.add(h) // the last one: it is released in Redis
		return false
	}
	h.released = true
	return true
}

// Downgrade makes a write hold a read hold, of which Redis is to be told by x.
func (h *Hold) Downgrade(x *ledger.Wish) {
	s := h.Session
	s.Ledger.Drop(ledger.One(h.Read), h.local)
	h.Read = true
	s.Ledger.Add(ledger.One(h.Read), h.local)
	s.Ledger.Wish(x)
}

// The rest is what a session knows of its holds without asking each: a named owner
// may have thousands, and each statement needs their number and what they ask for.
// A session whose count cannot change has one hold at most, and keeps nothing of it.

// A share is the holds of a session that were asked for in one way.
type share struct {
	terms   *Terms
	holds   int
	ordered lone[Hold] // the oldest first, where they end by themselves
}

func (s *Session) add(h *Hold) {
	s.holds.add(h)
	s.Ledger.Add(ledger.One(h.Read), h.local)
	if !s.counted() {
		return
	}
	of := s.share(h)
	if of == nil {
		of = &share{terms: h.Terms}
		s.shares.add(of)
	}
	of.holds++
	if of.terms.ends() {
		of.ordered.add(h)
	}
}

// drop takes an unlocked hold off the session.
func (s *Session) drop(h *Hold) {
	if !s.holds.remove(h) {
		return
	}
	s.Ledger.Drop(ledger.One(h.Read), h.local)
	if !s.counted() {
		return
	}
	of := s.share(h)
	of.ordered.remove(h)
	if of.holds--; of.holds == 0 {
		s.shares.remove(of)
	}
}

// share returns the holds that were asked for as this one was, or nil.
func (s *Session) share(h *Hold) *share {
	for _, of := range s.shares.all() {
		if of.terms == h.Terms || *of.terms == *h.Terms {
			return of
		}
	}
	return nil
}

// asks are the terms of the session's holds, each once.
func (s *Session) asks() iter.Seq[*Terms] {
	return func(yield func(*Terms) bool) {
		if !s.counted() {
			if h := s.holds.first; h != nil {
				yield(h.Terms)
			}
			return
		}
		for _, of := range s.shares.all() {
			if !yield(of.terms) {
				return
			}
		}
	}
}
