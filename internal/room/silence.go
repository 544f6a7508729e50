package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// A silence records since when Redis has owed an answer. The zero value means that it owes none.
type silence struct {
	since clock.Instant // when the first unanswered request was sent
	last  error         // of the latest that failed; nil: all are in flight
}

// asked records that a request is sent.
func (s *silence) asked(now clock.Instant) {
	if s.since.IsZero() {
		s.since = now
	}
}

// ended records how a request ended. f is nil if it was answered.
func (s *silence) ended(f *Failure) {
	if f == nil {
		*s = silence{}
	} else if !s.since.IsZero() {
		s.last = f.Err
	}
}

// trouble returns what is wrong with Redis now.
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

// A Trouble says what is wrong with Redis. The zero value means nothing.
type Trouble struct {
	Err    error         // how the latest request failed
	Silent time.Duration // or for how long it has not answered
}

// Is reports whether anything is wrong.
func (t Trouble) Is() bool { return t != Trouble{} }

// calm is how long a request may be in flight before a wait that ends calls it unanswered. Redis answered the request
// before it, so it will probably answer this one.
const calm = 100 * time.Millisecond
