package room

import "github.com/relock-go/relock/internal/clock"

// stickyTokens is how many tokens a grant takes if it may be kept, because each hold needs a token of its own. A block
// ends at the server's clock, in us, so it reaches 10 ms into the past. A server that loses its last grants in a crash
// needs longer than that to come back. So the tokens of its next grants are larger than the lost ones.
const stickyTokens = 10_000

// Keepable reports whether a grant of these tokens may be kept: any other grant has fewer.
func Keepable(low, high int64) bool { return high-low > maxPasses }

// A kept is a grant that its client may keep after its hold (Terms.Sticky). While it is kept, its session has no hold,
// but one hold is reserved for the next call, under the next token. So what Redis knows stays true. A kept grant is not
// renewed, unless late is set. It is given back when others want the lock, or when its time is over. Only anonymous
// calls have such grants: nobody can re-enter those, so nobody else has their tokens.
type kept struct {
	of     *Session      // has the grant; may be over
	unused bool          // it is kept at present
	late   bool          // a call has taken it after a renewal was due: it is renewed, even if it is kept again
	until  clock.Instant // when it is given back, if it is kept
	timer  clock.Instant // when its timer fires, if it was set while the grant was kept; else zero
}

// live reports whether the grant is kept at present and has not ended.
func (k *kept) live() bool { return k != nil && k.unused && !k.of.Over }

// keep keeps the grant after its hold has ended, for Sticky or less: a third of the lease must be left when it is given
// back. It returns false, and keeps nothing, if others want the grant, it has a run, no token is left, its renewals
// fail, it lacks replicas, or the client shuts down.
func (k *kept) keep(s *Session, at *Step) bool {
	until := clock.Min(at.Now.Add(s.Terms.Sticky), s.trustEnds(s.Terms.TTL, clock.Instant{}).Add(-s.Terms.TTL/3))
	if k.of != s || s.left == 0 || s.run != nil || s.unproven || s.fails > 0 || at.Draining || s.isWanted() || at.Now.Reached(until) {
		return false
	}
	s.reserveNext()
	k.unused, k.until = true, until
	// A timer that fires too early is left alone, and so is that of a late renewal: Session.Due sets both again. So calls
	// that take the lock in quick succession set no timer.
	if !k.late && (k.timer.IsZero() || until.Until(k.timer) > 0) {
		k.schedule(s, at)
	}
	return true
}

// take returns the kept session for a call that may have it. For any other it gives the grant back and returns nil.
func (k *kept) take(w Want, at *Step) *Session {
	if !k.live() {
		return nil
	}
	s := k.of
	if w.Owner != "" || *w.Terms != *s.Terms || at.Now.Reached(k.until) || at.Draining {
		k.giveBack(at)
		return nil
	}
	k.unused = false
	if due, _, _ := s.due(at.Now); at.Now.Reached(due) && !s.busy && !k.late {
		s.schedule(at)
		k.late = true
	}
	return s
}

// giveBack releases the grant if it is kept.
func (k *kept) giveBack(at *Step) {
	if !k.live() {
		return
	}
	k.unused = false
	k.of.unreserve()
	k.of.leaveRoom(at)
	at.do(Effect{Do: Release, Of: k.of.Acquisition})
}

// schedule sets the timer of a session if it is kept, and reports whether it is. The timer also fires when a renewal is
// due, because a call may hold again by then.
func (k *kept) schedule(s *Session, at *Step) bool {
	if k.of != s {
		return false
	}
	k.timer = clock.Instant{} // if it is not kept, the caller sets the timer
	if !k.live() {
		return false
	}
	k.timer = k.until
	if due, _, _ := s.due(at.Now); !at.Now.Reached(due) {
		k.timer = clock.Min(k.until, due)
	}
	at.timer(s.Acquisition, k.timer, 0)
	return true
}

// fired handles the timer of s. It returns true if the timer was for the kept grant, and false if a renewal may be due.
func (k *kept) fired(s *Session, at *Step) bool {
	if k == nil || k.of != s {
		return false
	}
	due, grain, renew := s.due(at.Now)
	switch {
	case k.unused && at.Now.Reached(k.until):
		k.giveBack(at)
	case k.late: // a call took the grant when its renewal was due: that is made now, even if the grant is kept again
		k.late = false
		return false
	case k.unused, renew && at.Now.Until(due) > grain: // it is still kept, or in use again before a renewal is due
		s.schedule(at)
	default:
		return false
	}
	return true
}
