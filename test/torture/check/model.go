package check

import (
	"slices"

	"github.com/anishathalye/porcupine"
)

// The sequential specification of a lock with leases, counts and two modes.
//
// A take is legal if its owner joins its own grant, with that grant's token, or
// if its token is larger than all before and nobody holds whom it excludes. An
// end takes its own hold away. A hold ends in one of four ways:
//
//   - a release: at some instant between Releasing and a confirmed Released;
//   - a lapse (lost, died, unconfirmed release): at the last instant at which it
//     was certainly valid. It may have lasted longer in Redis, but nothing in a
//     history can require that, so the earliest instant is the weakest reading;
//   - a fault that docs/guarantees.md names: at any instant from that fault on,
//     if its certain end is within one ttl after the fault;
//   - at once, where it was past its trust when the call returned.
//
// Semaphores have a simpler one: permits.go.
//
// A call with an unknown outcome (its process died, its context ended, no
// answer) is no operation: had it been granted, that could only have kept others
// out, so a history is legal with it if and only if it is legal without.

type deed byte

const (
	take deed = iota
	end
	downgrade
	blip // a take that has ended when its call returns
)

// An op is one operation of a history: it took effect between from and to.
type op struct {
	deed     deed
	c        *call
	from, to int64
	rejoins  bool // take: a hold of its grant may go on in Redis, though it has ended for us

	// follows is the next smaller token of all. A take that passed it by would make
	// that grant's illegal for ever: to refuse it at once keeps the search short.
	follows int64
}

// A holder is a hold in a state.
type holder struct {
	c    *call
	read bool
}

// A state is what the specification knows. It is never changed, but copied.
type state struct {
	token   int64
	holders []holder
}

// step applies an operation, or says that it is not legal.
func (st *state) step(o *op) (*state, bool) {
	switch o.deed {
	case take, blip:
		if !st.admits(o) {
			return nil, false
		}
		next := &state{token: max(st.token, o.c.token), holders: st.holders}
		if o.deed == take {
			next.holders = append(slices.Clone(st.holders), holder{o.c, o.c.read})
		}
		return next, true
	}
	i := slices.IndexFunc(st.holders, func(h holder) bool { return h.c == o.c })
	if i < 0 {
		return st, o.deed == downgrade // its hold may have ended early; the end itself takes place once
	}
	next := &state{token: st.token, holders: slices.Clone(st.holders)}
	if o.deed == downgrade {
		next.holders[i].read = true
	} else {
		next.holders = slices.Delete(next.holders, i, i+1)
	}
	return next, true
}

func (st *state) admits(o *op) bool {
	joins := o.rejoins
	for _, h := range st.holders {
		switch {
		case !h.c.sameOwner(o.c):
			if !h.read || !o.c.read {
				return false
			}
		case h.c.token == o.c.token:
			joins = true
		default:
			return false // one owner has one grant
		}
	}
	return joins || o.c.token > st.token && o.follows <= st.token
}

// equal compares states whatever the order in which their holds began.
func (st *state) equal(other *state) bool {
	if st.token != other.token || len(st.holders) != len(other.holders) {
		return false
	}
	for _, h := range st.holders {
		if !slices.Contains(other.holders, h) {
			return false
		}
	}
	return true
}

// specification is the model for operations that begin in a given state.
func specification(first *state) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(s, in, _ any) (bool, any) {
			next, ok := s.(*state).step(in.(*op))
			if !ok {
				return false, s
			}
			return true, next
		},
		Equal: func(a, b any) bool { return a.(*state).equal(b.(*state)) },
	}
}
