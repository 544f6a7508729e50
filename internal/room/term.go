package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/trust"
)

// The holds of one owner share a session, and so a lease in Redis. Each is trusted for no
// longer than its own terms say: what one hold asks for changes nothing for another.

// until returns until when a hold of these terms is trusted, for which no renewal counts
// that left after last; zero: each renewal counts.
func (s *Session) until(t *Terms, last clock.Instant) clock.Instant {
	from := s.renewed
	if !last.IsZero() {
		from = clock.Min(from, last)
	}
	return clock.Min(s.trust.Until, trust.Until(from, t.TTL))
}

// fresh says that renewals work: a third is left, at least, of what a hold of these terms
// would have.
func (s *Session) fresh(ttl time.Duration, now clock.Instant) bool {
	t := trust.Trust{Until: clock.Min(s.trust.Until, trust.Until(s.renewed, ttl))}
	return t.Fresh(now, ttl)
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

// ends says that holds of these terms end by themselves, though renewals work.
func (t *Terms) ends() bool { return t.Fixed || t.MaxHold > 0 }

// A part is the holds of a session that have the same terms.
type part struct {
	terms          *Terms
	oldest, newest clock.Instant // until when renewals count for the oldest of them, and for the newest; zero: always
}

// parts calls f with each of them.
func (s *Session) parts(f func(p part)) {
	switch h := s.holds.first; {
	case h == nil: // granted, and the call that waits for it has not made its hold yet
		f(part{terms: s.Terms})
	case !s.counted():
		f(part{h.Terms, h.last, h.last})
	default:
		for _, of := range s.shares.all() {
			p := part{terms: of.terms}
			if of.terms.ends() {
				p.oldest, p.newest = of.ordered.first.last, of.ordered.last().last
			}
			f(p)
		}
	}
}

// renews says that the watchdog renews the newest of them.
func (p *part) renews(now clock.Instant) bool {
	return !p.terms.Fixed && (p.newest.IsZero() || !now.Reached(p.newest))
}

// renewal returns the lease to ask for, and whether any hold has a watchdog that still
// renews. What is not renewed has its lease in Redis already.
func (s *Session) renewal(now clock.Instant) (lease time.Duration, renew bool) {
	s.parts(func(p part) {
		if p.renews(now) {
			lease, renew = max(lease, p.terms.TTL), true
		}
	})
	return lease, renew
}

// shortest is the shortest TTL of what is renewed.
func (s *Session) shortest(now clock.Instant) (ttl time.Duration) {
	s.parts(func(p part) {
		if p.renews(now) && (ttl == 0 || p.terms.TTL < ttl) {
			ttl = p.terms.TTL
		}
	})
	if ttl == 0 {
		return s.Terms.TTL
	}
	return ttl
}

// due returns when the next renewal is due: the first that any hold needs.
func (s *Session) due(now clock.Instant) (first clock.Instant, grain time.Duration, renew bool) {
	s.parts(func(p part) {
		if !p.renews(now) {
			return
		}
		t := trust.Trust{Until: s.until(p.terms, p.newest)}
		if due := t.Due(p.terms.TTL); !renew || due.Until(first) > 0 {
			first, grain, renew = due, trust.Grain(p.terms.TTL), true
		}
	})
	return first, grain, renew
}

// firstEnd returns when the first of the holds ends, as things stand.
func (s *Session) firstEnd() (end clock.Instant) {
	if s.waking || s.holds.first == nil {
		return s.trust.Until
	}
	s.parts(func(p part) {
		if until := s.until(p.terms, p.oldest); end.IsZero() || until.Until(end) > 0 {
			end = until
		}
	})
	return end
}

// lastEnd returns when the last of the holds ends, as things stand. A call that is about to
// make one has all that Redis has said.
func (s *Session) lastEnd() (end clock.Instant) {
	if s.waking || s.holds.first == nil || s.Ledger.Expects() {
		return s.trust.Until
	}
	s.parts(func(p part) {
		if until := s.until(p.terms, p.newest); end.IsZero() || end.Until(until) > 0 {
			end = until
		}
	})
	return end
}

// ended says that nothing of the session is trusted any more.
func (s *Session) ended(now clock.Instant) bool { return now.Reached(s.lastEnd()) }

// Check judges the session and its holds by the clock, before anything is answered from
// it: a timer that should have ended them may not have fired yet.
func (s *Session) Check(at *Step) {
	switch {
	case s.over || s.Away():
	case s.ended(at.Now):
		why := s.expired()
		for _, h := range s.holds.all() {
			h.why = h.endedBy()
			why = h.why
		}
		s.LoseHeld(why, at) // a renewal that went unanswered may keep it in Redis for another lease
	case !s.waking && at.Now.Reached(s.firstEnd()):
		s.shed(at)
	}
}

// expired is why what was not renewed in time is lost.
func (s *Session) expired() error {
	if s.lost != nil {
		return &expired{s.lost}
	}
	return ErrExpired
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

// shed loses the holds whose own time has ended. Others go on.
func (s *Session) shed(at *Step) {
	var over []*Hold
	for _, h := range s.holds.all() {
		if at.Now.Reached(h.Until()) {
			over = append(over, h)
		}
	}
	at.do(Effect{Do: Lose, Of: s.Acquisition})
	for _, h := range over {
		h.lost, h.why = true, h.endedBy()
		s.drop(h)
		at.do(Effect{Do: Lose, Of: s.Acquisition, Hold: h})
	}
	s.schedule(at)
	s.CatchUp(at)
}
