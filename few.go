package relock

import (
	"iter"
	"slices"
)

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

// index returns where e is, or -1.
func (f *few[E]) index(e *E) int {
	for i, x := range f.all() {
		if x == e {
			return i
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

// A pile is a handle's list of holds. Each hold is in one at most.
type pile struct{ newest *Hold }

// all goes from the newest to the oldest.
func (p *pile) all() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		for h := p.newest; h != nil; h = h.below {
			if !yield(h) {
				return
			}
		}
	}
}

// oldest returns nil where there is none.
func (p *pile) oldest() (last *Hold) {
	for h := range p.all() {
		last = h
	}
	return last
}

func (p *pile) add(h *Hold) { h.below, p.newest = p.newest, h }

// remove reports whether the hold was there.
func (p *pile) remove(h *Hold) bool {
	for at := &p.newest; *at != nil; at = &(*at).below {
		if *at == h {
			*at, h.below = h.below, nil
			return true
		}
	}
	return false
}
