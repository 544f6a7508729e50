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
	Handle   *Handle
	Token    int64 // without the owner's digits
	Acquired clock.Instant
	Of       any  // the driver's own record of it
	Wanted   bool // others have waited for its end
	Unlock   bool // ended by the handle's Unlock, not by a Release or the end of a Do
	Read     bool // shared with other readers

	place    place
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
	Silent  Ending = iota // nothing to send: the lock was passed on, the grant is kept, or Redis never knew of the hold
	Fewer                 // tell Redis the new number of holds
	Last                  // release the session
	WasLost               // it had ended before
)

// Released reports whether its holder has ended it.
func (h *Hold) Released() bool { return h.released }

// Lost reports whether it was lost before its holder ended it. Only Session.Check looks at the clock for that.
func (h *Hold) Lost() bool { return h.lost }

// Why returns why it was lost.
func (h *Hold) Why() error {
	if h.why != nil {
		return h.why
	}
	return h.Session.Why()
}

// End ends a hold for its holder, and returns what the caller must tell Redis.
func (h *Hold) End(at *Step) Ending {
	s := h.Session
	if !h.released {
		s.Check(at)
	}
	ended := h.released || h.lost
	if h.end(at); ended {
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
	h.end(at)
	s.drop(h)
	s.dismiss(at)
	s.end(at)
	return true
}

// GiveBack ends a hold that its call does not return, or whose owner waits on a condition. Nobody waits for its
// release. A hook may have ended the hold before; then the lock may belong to the next call already.
func (h *Hold) GiveBack(at *Step) {
	s := h.Session
	live := !s.over && !h.released && !h.lost
	h.end(at)
	s.drop(h)
	if live {
		s.finishApart(at)
	}
}

// Downgrade makes a write hold a read hold, and moves it to the handle of the reading side, unless something there bars
// it. x is the wish by which Redis is told. It returns Unheld if the hold is on the handle no more.
func (h *Hold) Downgrade(to *Handle, x *ledger.Wish, at *Step) Bar {
	if h.place != onHandle || h.Handle == to {
		return Unheld
	}
	w := h.want()
	w.Read = true
	if bar, _ := to.bars(w); bar != NoBar {
		return bar
	}
	h.Handle.remove(h, at)
	h.Handle = to
	to.add(h)
	s := h.Session
	s.Ledger.Drop(ledger.One(h.Read), h.local)
	h.Read = true
	s.Ledger.Add(ledger.One(h.Read), h.local)
	s.Ledger.Wish(x)
	return NoBar
}

// Put puts a hold on its handle, so that its call can return it, or returns what bars it, as Room.Bars does. Once it is
// there, only its Unlock or its Release takes it off for good. Call Judge first.
func (h *Hold) Put(w Want, at *Step) (Bar, *Hold) {
	if h.Session.Absent() { // its owner waits on a condition: a later grant does not make this one the older
		return Unheld, nil
	}
	if h.outdo(at); h.lost || h.released {
		return Unheld, nil
	}
	bar, by := h.Session.Room.Bars(h.Handle, w)
	if bar == NoBar {
		h.Handle.add(h)
	}
	return bar, by
}

// outdo ends the older of two grants of an exclusive lock: that of h, and another that the handle has. The older has
// ended in Redis, and its holder here may not know yet: its Unlock must not end h. Redis may still have it if the
// server's clock has stepped back, so it is released there too.
func (h *Hold) outdo(at *Step) {
	if h.Read || h.Handle.holds.first == nil {
		return
	}
	for _, other := range h.Handle.holds.backward() {
		switch {
		case other.lost:
			continue
		case other.Token > h.Token:
			h.Session.LoseHeld(ErrRegranted, at)
		case other.Token < h.Token:
			other.Session.LoseHeld(ErrRegranted, at)
		}
		return // the others that are not lost have the same grant
	}
}

// end takes a hold off its handle for good: its holder has ended it, or its call gives it back.
func (h *Hold) end(at *Step) {
	switch l := h.Handle; h.place {
	case onHandle:
		l.remove(h, at)
	case away:
		l.away.remove(h)
		l.wake(at)
	}
	if h.lost && !h.released && h.place != unplaced {
		if r := h.Session.Room; r.crowd != nil {
			r.owing.remove(h)
		}
		at.do(Effect{Do: Paid, Of: h.Session.Acquisition, Hold: h})
	}
	h.place, h.released = unlocked, true
}

// lose marks a hold as lost. If a caller has it, its Unlock is still to come.
func (h *Hold) lose(at *Step) {
	h.lost = true
	switch h.place {
	case unplaced:
		return // its call gives it back
	case onHandle:
		h.Handle.more().lost++
	case away:
		h.comeBack()
		h.Handle.wake(at)
	}
	if s := h.Session; s.Named() && !h.Read && !h.Terms.OneToken { // a quorum takes a lost primary again by itself
		s.Room.gather()
		s.Room.owing.add(h)
	}
	at.do(Effect{Do: Lose, Of: h.Session.Acquisition, Hold: h})
}

// goAway takes a hold off its handle while its owner waits on a condition.
func (h *Hold) goAway(at *Step) {
	if h.place == onHandle {
		h.Handle.remove(h, at)
		h.Handle.more().away.add(h)
		h.place = away
	}
}

// comeBack undoes goAway.
func (h *Hold) comeBack() {
	if h.place == away {
		h.Handle.away.remove(h)
		h.Handle.add(h)
	}
}

// want returns the call that the hold could be of, to ask what bars it from a handle.
func (h *Hold) want() Want {
	w := Want{Read: h.Read, Terms: h.Terms, Unlock: h.Unlock}
	if h.Session.Named() {
		w.Owner = h.Session.Name
	}
	return w
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
