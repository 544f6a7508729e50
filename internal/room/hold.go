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
	Token    int64 // without the owner's digits
	Acquired clock.Instant
	Of       any  // the driver's own record of it
	Wanted   bool // others have waited for its end

	Read     bool // shared with other readers
	local    bool // nested, and Redis does not know of it
	released bool
	lost     bool  // before it was released
	why      error // why it was lost, if its session goes on
	// last is when the last renewal that counts for it may be sent; zero: every renewal counts.
	last clock.Instant
}

// An Ending says what follows from the end of a hold.
type Ending int

// The endings.
const (
	Silent  Ending = iota // nothing to send: the next call in line holds, the grant is kept, or Redis never knew of the hold
	Fewer                 // tell Redis the new number of holds
	Last                  // release the session
	WasLost               // it had ended before
)

// Released reports whether its holder has ended it.
func (h *Hold) Released() bool { return h.released }

// Lost reports whether it was lost before its holder ended it. The caller must call Session.Check first.
func (h *Hold) Lost() bool { return h.lost }

// Why returns why it was lost.
func (h *Hold) Why() error {
	if h.why != nil {
		return h.why
	}
	return h.Session.Why()
}

// End is the end of a hold by its holder.
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
	if h.local && s.Ledger.Knows() || s.Room.kept != nil && s.Room.kept.keep(s, at) {
		return Silent
	}
	return s.finish(at)
}

// Detach ends a hold that is handed over together with its session. It returns false if the session has other holds, or
// is about to have some.
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

// GiveBack ends a hold that its call does not return. The call does not wait for the release, because its context has
// ended. A hook may have ended the hold before; then the lock may belong to the next call already.
func (h *Hold) GiveBack(at *Step) {
	s := h.Session
	live := !s.over && !h.released && !h.lost
	h.released = true
	s.drop(h)
	if live {
		s.finishApart(at)
	}
}

// Unnest is End without a command. It returns false if Redis must be told, or if the hold is lost.
func (h *Hold) Unnest(at *Step) bool {
	s := h.Session
	if !h.local || s.over || h.released || h.lost || at.Now.Reached(h.Until()) {
		return false
	}
	s.drop(h)
	if !s.Ledger.Knows() {
		s.add(h) // it is the last one, which is released in Redis
		return false
	}
	h.released = true
	return true
}

// Downgrade makes a write hold a read hold. x is the wish by which Redis is told.
func (h *Hold) Downgrade(x *ledger.Wish) {
	s := h.Session
	s.Ledger.Drop(ledger.One(h.Read), h.local)
	h.Read = true
	s.Ledger.Add(ledger.One(h.Read), h.local)
	s.Ledger.Wish(x)
}

// Until returns until when the hold is trusted, as things stand.
func (h *Hold) Until() clock.Instant { return h.Session.until(h.Terms, h.last) }

// start sets which renewals count for the hold.
func (h *Hold) start() {
	switch t := h.Terms; {
	case t.Fixed:
		h.last = h.Session.renewed
	case t.MaxHold > 0:
		h.last = h.Acquired.Add(t.MaxHold)
	}
}

// endedBy returns why a hold's own time is over. MaxHold is the reason only if the hold has had all the renewals that
// MaxHold allows.
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
