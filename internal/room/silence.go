package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// This file is what those who wait know of Redis at the end of their wait: that it has
// said that the lock is taken, or that it has not answered.

// calm is how long a request may be under way before the end of a wait calls it
// unanswered: another one was answered before it, and this one is likely to be.
const calm = 100 * time.Millisecond

// A silence is since when Redis owes an answer. The zero value: it does not.
type silence struct {
	since clock.Instant // when the first request left that has not been answered
	last  error         // how the latest of them failed; nil: it is under way
}

// asked notes that a request leaves.
func (s *silence) asked(now clock.Instant) {
	if s.since.IsZero() {
		s.since = now
	}
}

// ended notes how a request ended; nil: it was answered.
func (s *silence) ended(f *Failure) {
	if f == nil {
		*s = silence{}
	} else if !s.since.IsZero() {
		s.last = f.Err
	}
}

// A Trouble is what is the matter with Redis; the zero value: nothing.
type Trouble struct {
	Err    error         // how the latest request failed
	Silent time.Duration // or for how long it has not answered
}

// Is says that something is the matter.
func (t Trouble) Is() bool { return t != Trouble{} }

func (s *silence) trouble(now clock.Instant) Trouble {
	switch {
	case s.since.IsZero():
	case s.last != nil:
		return Trouble{Err: s.last}
	case now.Sub(s.since) > calm:
		return Trouble{Silent: now.Sub(s.since)}
	}
	return Trouble{}
}

// word notes that Redis has answered a request of the line's, at some time: whoever
// stands in it has asked nothing, and goes by that.
func (r *Room) word(a *Acquisition, now clock.Instant) {
	if line := a.line(); line != nil {
		line.said = now
	}
}

// noWord forgets what Redis has said: it is out of date.
func (r *Room) noWord(of Flow) {
	if line := r.lineOf(of); line != nil {
		line.said, line.owes = clock.Instant{}, silence{}
	}
}

// line returns who stands behind the acquisition, or nil.
func (a *Acquisition) line() *line {
	if !a.front {
		return nil
	}
	return a.Room.lineOf(a.flow())
}

// owe notes that a request of the entry leaves.
func (e *Entry) owe(now clock.Instant) {
	e.owes.asked(now)
	if line := e.line(); line != nil {
		line.owes.asked(now)
	}
}

// paid notes how a request ended; nil: it was answered. Redis owes the answer still
// where only its caller has gone.
func (a *Acquisition) paid(f *Failure) {
	if f != nil && f.Left {
		return
	}
	if a.Entry != nil {
		a.Entry.owes.ended(f)
	}
	if line := a.line(); line != nil {
		line.owes.ended(f)
	}
}

// Hears returns whether a call that waits since began knows from Redis that the lock is
// taken, and what is the matter with Redis at the end: a call that stands in line, or
// asks by a, unless nil. Who stands behind another knows it where this client holds the
// lock for one of the line, or Redis has said so to the front since, or before and owes
// no answer.
func (r *Room) Hears(w Want, a *Acquisition, began, now clock.Instant) (taken bool, t Trouble) {
	if a != nil && !a.front {
		if a.Entry != nil {
			t = a.Entry.owes.trouble(now)
		}
		return false, t
	}
	of := Flow{}
	if w.Owner != "" {
		of = Flow{w.Owner, w.Read}
	}
	for _, s := range r.sessions.all() {
		if s.front && s.flow() == of && !s.over && !s.ended(now) {
			return true, Trouble{}
		}
	}
	line := r.lineOf(of)
	if line == nil {
		return false, Trouble{}
	}
	t = line.owes.trouble(now)
	return !line.said.IsZero() && (!t.Is() || began.Until(line.said) >= 0), t
}
