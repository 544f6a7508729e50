package room

import (
	"iter"
	"slices"
)

// A lone is a list that mostly has one element or none, in the order of adding. Every held lock has several such lists,
// and with one element they allocate nothing. The zero value is empty. Remove no element during all or backward.
type lone[E any] struct {
	first *E
	rest  *[]*E // kept when empty: an owner that nests once does it again
}

func (l *lone[E]) len() int {
	switch {
	case l.first == nil:
		return 0
	case l.rest == nil:
		return 1
	}
	return 1 + len(*l.rest)
}

func (l *lone[E]) at(i int) *E {
	if i == 0 {
		return l.first
	}
	return (*l.rest)[i-1]
}

// last returns the newest, or nil.
func (l *lone[E]) last() *E {
	if l.rest != nil && len(*l.rest) > 0 {
		return (*l.rest)[len(*l.rest)-1]
	}
	return l.first
}

func (l *lone[E]) all() iter.Seq2[int, *E] {
	return func(yield func(int, *E) bool) {
		for i := range l.len() {
			if !yield(i, l.at(i)) {
				return
			}
		}
	}
}

// backward is all in reverse: from the newest to the oldest.
func (l *lone[E]) backward() iter.Seq2[int, *E] {
	return func(yield func(int, *E) bool) {
		for i := l.len() - 1; i >= 0; i-- {
			if !yield(i, l.at(i)) {
				return
			}
		}
	}
}

func (l *lone[E]) add(e *E) {
	if l.first == nil {
		l.first = e
		return
	}
	if l.rest == nil {
		l.rest = new([]*E)
	}
	*l.rest = append(*l.rest, e)
}

// remove removes e, and reports whether it was there. It searches from both ends, because mostly the newest or the
// oldest is removed, and a list may have thousands.
func (l *lone[E]) remove(e *E) bool {
	n := l.len()
	i, j := 0, n-1
	for ; i <= j && l.at(i) != e; i, j = i+1, j-1 {
		if l.at(j) == e {
			i = j
			break
		}
	}
	switch {
	case i > j:
		return false
	case i > 0:
		*l.rest = slices.Delete(*l.rest, i-1, i)
	case n == 1:
		l.first = nil
	default:
		l.first = (*l.rest)[0]
		*l.rest = slices.Delete(*l.rest, 0, 1)
	}
	return true
}
