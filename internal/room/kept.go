package room

import "github.com/relock-go/relock/internal/clock"

// stickyTokens is how many tokens a grant asks for if it may be kept: each call that gets it needs one. A block ends at
// the server's clock, in us, so it reaches 10 ms into the past. A server that loses its last grants in a crash is not
// back sooner than that, so the tokens of its next grants are larger.
const stickyTokens = 10_000

// Keepable reports whether a grant of these tokens may be kept: it has more than any other grant asks for.
func Keepable(low, high int64) bool { return high-low > maxPasses }

// A kept is a grant that its client may keep after its hold (Terms.Sticky). While it is kept, its session has no hold.
// A hold is reserved for the next call, under the next token, so what Redis knows is right. It is not renewed, except
// when late. It is given back when others want the lock, or when its time is over. Only anonymous calls have such
// grants: nobody can enter them, so nobody else has their tokens.
type kept struct {
	of    *Session      // may be over
	last  int64         // its last token
	now   bool          // it is kept
	late  bool          // a call took it after a renewal was due: it is renewed even if it is kept again
	until clock.Instant // when it is given back, if it is kept
	timer clock.Instant // when its timer fires, if it was set while the grant was kept; else zero
}

// live reports whether the grant is kept.
func (k *kept) live() bool { return k != nil && k.now && !k.of.Over }

// keep keeps the grant after its hold has ended, for Sticky or less: a third of the lease must be left when it is given
// back. It does not keep a grant that others want, that has no token left, or whose renewals fail.
func (k *kept) keep(s *Session, at *Step) bool {
	until := clock.Min(at.Now.Add(s.Terms.Sticky), s.trustEnds(s.Terms.TTL, clock.Instant{}).Add(-s.Terms.TTL/3))
	if k.of != s || s.token >= k.last || s.run != nil || s.unproven || s.fails > 0 || at.Closing || s.isWanted() || at.Now.Reached(until) {
		return false
	}
	s.token++
	s.left = uint8(min(int64(s.left), k.last-s.token))
	s.reserve()
	k.now, k.until = true, until
	// A timer that fires before until sets itself again, so it is left alone: calls that take the lock in quick
	// succession set no timer.
	if !k.late && (k.timer.IsZero() || until.Until(k.timer) > 0) {
		k.schedule(s, at)
	}
	return true
}

// take returns the kept session for a call that may have it. For any other the grant is given back: it asks Redis.
func (k *kept) take(w Want, at *Step) *Session {
	if !k.live() {
		return nil
	}
	s := k.of
	if w.Owner != "" || *w.Terms != *s.Terms || at.Now.Reached(k.until) || at.Closing {
		k.giveBack(at)
		return nil
	}
	k.now = false
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
	k.now = false
	k.of.unreserve()
	k.of.end(at)
	at.do(Effect{Do: Release, Of: k.of.Acquisition})
}

// schedule sets the timer of a session if it is kept, and reports whether it is. The timer also fires when a renewal is
// due, because a call may hold again by then.
func (k *kept) schedule(s *Session, at *Step) bool {
	if k.of != s {
		return false
	}
	k.timer = clock.Instant{} // whatever it was set for
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

// fired takes the timer of a session. It returns false if a renewal is due.
func (k *kept) fired(s *Session, at *Step) bool {
	if k == nil || k.of != s {
		return false
	}
	due, grain, renew := s.due(at.Now)
	switch {
	case k.now && at.Now.Reached(k.until):
		k.giveBack(at)
	case k.late:
		k.late = false
		return false
	case k.now, renew && at.Now.Until(due) > grain: // the timer was set while the grant was kept
		s.schedule(at)
	default:
		return false
	}
	return true
}
