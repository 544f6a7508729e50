package relock

import (
	"fmt"
	"math"
	"slices"

	"github.com/relock-go/relock/internal/room"
)

// Weight sets how many permits of a semaphore each hold uses: from 1, the default, to the number of the handle's
// permits. Further holds of a named owner use none, whatever their Weight. With another n, and for other kinds of lock,
// every call on the handle returns ErrInvalidOption. In Defaults, any Weight makes New return ErrInvalidOption.
func Weight(n int) LockOption {
	return lockOption(func(t *terms) error {
		t.Permits.Weight = n
		if n < 1 {
			return fmt.Errorf("%w: Weight of %d; allowed are 1 and more, up to the permits of the semaphore", ErrInvalidOption, n)
		}
		return nil
	})
}

// permitsFor returns the permits that a handle with that weight asks for. A weight of 0 means that none was given.
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

// An inUse is the grants of a semaphore that the caller has, as its context shows.
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

// leaves reports whether the caller's own holds leave enough permits for p. If not, the call would wait for itself.
func (u *inUse) leaves(p room.Permits) error {
	if u.permits+p.Weight <= p.Of || u.permits == 0 {
		return nil
	}
	return fmt.Errorf("%w: live holds of this semaphore, from which the context descends, use %d of %d permits, and the call wants %d; to re-enter, lock each time under one relock.WithOwner",
		ErrDeadlock, u.permits, p.Of, p.Weight)
}
