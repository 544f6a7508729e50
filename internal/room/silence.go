package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
)

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

// A Trouble is what is the matter with Redis; the zero value: nothing.
type Trouble struct {
	Err    error         // how the latest request failed
	Silent time.Duration // or for how long it has not answered
}

// Is says that something is the matter.
func (t Trouble) Is() bool { return t != Trouble{} }

// calm is how long a request may be under way before the end of a wait calls it
// unanswered: another one was answered before it, and this one is likely to be.
const calm = 100 * time.Millisecond
