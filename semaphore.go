package relock

import (
	"fmt"
	"math"
	"slices"

	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/wire"
)

// NewSemaphore returns a handle on the semaphore of that name, which has so many permits over all
// processes. It does no I/O. A bad name, number or option makes every call on the handle fail.
//
// Each hold uses one permit, or as many as its Weight. Each has its own lease and token: the
// permits of a dead process come back when its lease ends. Permits are granted in order of request.
// A large request is not overtaken by smaller ones. Further holds of a named owner use no further
// permits.
//
// Handles may differ in permits, for example while a new number is rolled out. Each call is judged
// by the number of its own handle. A semaphore is a kind of its own, and always fair.
//
// The holds that Unlock ends must all have one named owner, or all have none. Otherwise Lock
// returns ErrOwnerMismatch, because nobody could tell which hold an Unlock ends. Holds of Acquire
// and Do may have any owner.
func (c *Client) NewSemaphore(name string, permits int, opts ...LockOption) *Lock {
	s := c.newSpec(name, wire.KindSemaphore, wire.KindSemaphore, opts)
	s.read = true
	if s.err == nil {
		s.terms.Permits, s.err = permitsFor(s.terms.Permits.Weight, permits)
	}
	return c.newLock(name, c.shared(specSemaphore, s))
}

// Weight sets how many permits of a semaphore a hold uses. The default is one, and the most is the
// number of the semaphore's permits. Further holds of a named owner use none, whatever their
// Weight. Other kinds of lock refuse the option.
func Weight(n int) LockOption {
	return lockOption(func(t *terms) error {
		t.Permits.Weight = n
		if n < 1 {
			return fmt.Errorf("%w: Weight of %d; allowed are 1 and more, up to the permits of the semaphore", ErrInvalidOption, n)
		}
		return nil
	})
}

// permitsFor are what a handle asks for with that weight, 0 where none was given.
func permitsFor(weight, permits int) (room.Permits, error) {
	weight = max(weight, 1)
	switch {
	case permits < 1 || permits > math.MaxInt32:
		return room.Permits{}, fmt.Errorf("%w: a semaphore of %d permits; allowed are 1 to %d", ErrInvalidOption, permits, math.MaxInt32)
	case weight > permits:
		return room.Permits{}, fmt.Errorf("%w: Weight of %d with %d permits; it would never be let in", ErrInvalidOption, weight, permits)
	}
	return room.Permits{Weight: weight, Of: permits}, nil
}

// weightless refuses a weight of what has no permits.
func (t terms) weightless() error {
	if t.Permits.Weight == 0 {
		return nil
	}
	return fmt.Errorf("%w: Weight of %d; only a semaphore has permits, see NewSemaphore", ErrInvalidOption, t.Permits.Weight)
}

// alike returns a hold of a side or semaphore whose owner has to be that of one that is
// to be added, or nil: of those for reading any, since all are of one, and of those of a
// semaphore one that Unlock is to end, as that one is. It needs l.mu.
func (l *Lock) alike(unlock bool) *Hold {
	if l.kind != wire.KindSemaphore {
		return l.holds.newest()
	}
	for h := range l.holds.all() {
		if unlock && h.unlock {
			return h
		}
	}
	return nil
}

// An inUse is the grants of a semaphore that a caller has, as its context shows.
type inUse struct {
	grants  []*room.Session
	permits int
}

func (u *inUse) add(s *room.Session) {
	if !slices.Contains(u.grants, s) {
		u.grants = append(u.grants, s)
		u.permits += s.Terms.Permits.Weight
	}
}

// leaves says whether what the caller has leaves enough for p: else it would wait for itself.
func (u *inUse) leaves(p room.Permits) error {
	if u.permits+p.Weight <= p.Of || u.permits == 0 {
		return nil
	}
	return fmt.Errorf("%w: live holds of this semaphore, from which the context descends, use %d of %d permits, and the call wants %d; to re-enter, lock each time under one relock.WithOwner",
		ErrDeadlock, u.permits, p.Of, p.Weight)
}
