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
