package room

import (
	"math"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
)

// MaxHolds is how many holds a session may have.
const MaxHolds = math.MaxInt32

// Joins says that a hold of these terms can join the session without Redis being told.
func (s *Session) joins(t *Terms, read bool, now clock.Instant) bool {
	told, meant := s.Ledger.Told().Writes, s.Ledger.Meant().Writes
	if read {
		told, meant = s.Ledger.Told().Reads, s.Ledger.Meant().Reads
	}
	// Freshness as for a hold that is passed on: less than a third of a lease
	// left says that renewals fail.
	if !t.Local || t.Fixed || t.MaxHold != 0 || !s.Named() || s.over || s.Absent() ||
		told == 0 || meant == 0 || !s.fresh(t.TTL, now) {
		return false
	}
	for _, outer := range s.holds.all() {
		if outer.Read == read && outer.Terms.covers(t) {
			return true
		}
	}
	return false
}

// Join makes a hold that Redis is not told of; false: it has to be. Its terms and
// whether it reads are set.
func (s *Session) Join(h *Hold, at *Step) bool {
	if !s.joins(h.Terms, h.Read, at.Now) {
		return false
	}
	h.Session, h.Token, h.Acquired, h.local = s, s.token, at.Now, true
	h.start()
	s.add(h)
	return true
}

// CanJoin says that Join would succeed.
func (s *Session) CanJoin(t *Terms, read bool, at *Step) bool { return s.joins(t, read, at.Now) }

// covers says that Redis has been told of all holds, on these terms, and lately: one
// that is reserved needs no further statement.
func (s *Session) covers(t *Terms, now clock.Instant) bool {
	return !s.over && !s.Absent() && s.Ledger.Knows() && !s.unproven && *t == *s.Terms && !s.Terms.Fixed && s.fresh(s.Terms.TTL, now)
}

// An Entrance is how a call gets into a session of its owner.
type Entrance int

// The entrances.
const (
	Open    Entrance = iota // the hold can be made
	Stated                  // Redis is to be told first, of the wish
	Crowded                 // there are too many holds
	Shut                    // the session is over
)

// Reenter asks for one more hold; reserved: the session counts it already.
func (s *Session) Reenter(t *Terms, read, reserved bool, at *Step) (x *ledger.Wish, in Entrance) {
	s.Check(at)
	x = t.Wish(ledger.Counts{})
	if !reserved {
		x.More = ledger.One(read)
	}
	needs := s.Ledger.Needs()
	switch {
	case reserved && s.covers(t, at.Now):
		in = Open
	case s.over || s.Absent(): // a hold that is made now could not be unlocked until the wait returns
		in = Shut
	case !read && needs.Writes == 0 && (needs.Reads > 0 || s.Ledger.Meant().Writes == 0):
		// The last write hold becomes a read hold: once Redis knows, others may read,
		// and it has to be asked.
		x = &ledger.Wish{}
		s.Ledger.Wish(x)
		return x, Stated
	case needs.And(x.More).Total() > MaxHolds:
		in = Crowded
	default:
		s.Ledger.Wish(x)
		return x, Stated
	}
	return nil, in
}

// Entered ends a Reenter that has stated nothing, for whose call a hold was reserved.
func (s *Session) Entered(at *Step) {
	s.unreserve()
	s.CatchUp(at)
}

// Admit ends a wish that was stated, or in vain; true: a hold can be made for it.
func (s *Session) Admit(x *ledger.Wish, reserved, told bool, at *Step) bool {
	if s.Ledger.Withdraw(x); reserved {
		s.unreserve()
	}
	switch {
	case told && (s.over || s.Absent() || x.Lease == 0):
		return false
	case !told:
		s.CatchUp(at)
		return false
	}
	return true
}

// HeldBy returns a session of the owner that a hold of the mode can join, judged by the
// clock, or nil. Whether one that reads may write, Redis decides.
func (r *Room) HeldBy(owner string, read bool, at *Step) *Session {
	for _, s := range r.sessions.all() {
		if s.Name != owner || s.over || s.Absent() || !read && s.Ledger.Meant().Writes == 0 {
			continue
		}
		if s.Check(at); s.over {
			return nil
		}
		return s
	}
	return nil
}
