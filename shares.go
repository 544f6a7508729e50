package relock

import (
	"iter"
	"slices"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
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
	s.ledger.Add(ledger.One(h.read), h.local)
	if !s.counted() {
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
	s.ledger.Drop(ledger.One(h.read), h.local)
	if !s.counted() {
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

// asks are the terms of the session's holds, each once. They need room.mu.
func (s *session) asks() iter.Seq[*terms] {
	return func(yield func(*terms) bool) {
		if !s.counted() {
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

// A few is a list that mostly has one element: a held lock has two such lists,
// and neither makes anything for the first. Its zero value is empty. Order
// is that of adding.
type few[E any] struct {
	first *E
	rest  *[]*E // kept when it is empty: who nests once does so again
}

func (f *few[E]) len() int {
	switch {
	case f.first == nil:
		return 0
	case f.rest == nil:
		return 1
	}
	return 1 + len(*f.rest)
}

func (f *few[E]) at(i int) *E {
	if i == 0 {
		return f.first
	}
	return (*f.rest)[i-1]
}

// last returns the newest, or nil.
func (f *few[E]) last() *E {
	if f.rest != nil && len(*f.rest) > 0 {
		return (*f.rest)[len(*f.rest)-1]
	}
	return f.first
}

func (f *few[E]) all() iter.Seq2[int, *E] {
	return func(yield func(int, *E) bool) {
		for i := range f.len() {
			if !yield(i, f.at(i)) {
				return
			}
		}
	}
}

func (f *few[E]) add(e *E) {
	if f.first == nil {
		f.first = e
		return
	}
	if f.rest == nil {
		f.rest = new([]*E)
	}
	*f.rest = append(*f.rest, e)
}

// index returns where e is, or -1. It looks from both ends: mostly the newest or the
// oldest is the first to go, and among thousands neither may cost a walk.
func (f *few[E]) index(e *E) int {
	for i, j := 0, f.len()-1; i <= j; i, j = i+1, j-1 {
		switch e {
		case f.at(i):
			return i
		case f.at(j):
			return j
		}
	}
	return -1
}

func (f *few[E]) remove(i int) {
	switch {
	case i > 0:
		*f.rest = slices.Delete(*f.rest, i-1, i)
	case f.len() == 1:
		f.first = nil
	default:
		f.first = (*f.rest)[0]
		*f.rest = slices.Delete(*f.rest, 0, 1)
	}
}
