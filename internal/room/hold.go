package room

import (
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/loss"
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

// An Ending is what the end of a hold comes to.
type Ending int

// The endings.
const (
	Silent  Ending = iota // nothing is to be sent: the next in line holds, or Redis knows
	Fewer                 // Redis is to hear that there are fewer holds, or none
	Last                  // Redis is to hear that it is over
	WasLost               // it was over before
)

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

// Until is until when the hold is trusted, as things stand.
func (h *Hold) Until() clock.Instant { return h.Session.until(h.Terms, h.last) }

// start notes from when the hold counts.
func (h *Hold) start() {
	switch t := h.Terms; {
	case t.Fixed:
		h.last = h.Session.renewed
	case t.MaxHold > 0:
		h.last = h.Acquired.Add(t.MaxHold)
	}
}

// endedBy is why a hold's own time is over. A MaxHold is the reason only if the hold has had all
// the renewals that the MaxHold allows.
func (h *Hold) endedBy() error {
	s, t := h.Session, h.Terms
	switch {
	case t.Fixed:
		return loss.OfFixedLease(t.TTL)
	case t.MaxHold > 0 && h.Until().Reached(h.last) && (s.fails == 0 || s.renewed.Reached(h.last)):
		return loss.OfMaxHold(t.MaxHold)
	}
	return s.expired()
}
