package relock

import (
	"iter"
	"slices"

	"github.com/relock-go/relock/internal/clock"
)

// This file is what a session knows of its holds without asking each: a named owner
// may have thousands, and each statement needs their number and what they ask for.
// A session whose count cannot change has one hold at most, and keeps nothing of it.

// A share is the holds of a session that were asked for in one way.
type share struct {
	terms *terms
	holds int
}

// add adds a hold to the session. It needs room.mu.
func (s *session) add(h *Hold) {
	s.holds.add(h)
	s.sum(h, 1)
	if s.stating == nil {
		return
	}
	if of := s.share(h); of != nil {
		of.holds++
		return
	}
	s.shares = append(s.shares, share{&h.lock.terms, 1})
}

// drop takes an unlocked hold off the session. It needs room.mu.
func (s *session) drop(h *Hold) {
	i := s.holds.index(h)
	if i < 0 {
		return
	}
	s.holds.remove(i)
	s.sum(h, -1)
	if s.stating == nil {
		return
	}
	of := s.share(h)
	if of.holds--; of.holds == 0 {
		s.shares = slices.DeleteFunc(s.shares, func(of share) bool { return of.holds == 0 })
	}
}

// share returns the holds that were asked for as this one was, or nil.
func (s *session) share(h *Hold) *share {
	for i := range s.shares {
		if of := s.shares[i].terms; of == &h.lock.terms || *of == h.lock.terms {
			return &s.shares[i]
		}
	}
	return nil
}

// sum adds n to the number of holds of the mode that this one has. It needs room.mu.
func (s *session) sum(h *Hold, n int) {
	if s.stating == nil {
		return
	}
	at := &s.outer
	if h.local {
		at = &s.local
	}
	if h.read {
		at.reads += uint32(n)
	} else {
		at.writes += uint32(n)
	}
}

// holding returns the holds that Redis is to know of, and the others. It needs room.mu.
func (s *session) holding() (outer, local counts) {
	switch h := s.holds.first; {
	case s.stating != nil:
		return s.outer, s.local
	case h == nil:
	case h.read:
		outer.reads = 1
	default:
		outer.writes = 1
	}
	return outer, local
}

// asks are the terms of the session's holds, each once. They need room.mu.
func (s *session) asks() iter.Seq[*terms] {
	return func(yield func(*terms) bool) {
		if s.stating == nil {
			if h := s.holds.first; h != nil {
				yield(&h.lock.terms)
			}
			return
		}
		for _, of := range s.shares {
			if !yield(of.terms) {
				return
			}
		}
	}
}

// latest returns when the newest of the holds on these terms was made. It needs room.mu.
func (s *session) latest(of *terms) clock.Instant {
	for i := s.holds.len() - 1; i >= 0; i-- {
		if h := s.holds.at(i); h.lock.terms == *of {
			return h.acquired
		}
	}
	return clock.Instant{}
}
