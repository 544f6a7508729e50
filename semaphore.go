package relock

import (
	"fmt"
	"math"

	"github.com/relock-go/relock/internal/room"
)

// Weight sets how many permits of a semaphore each hold uses: from 1, the default, to the number of the handle's
// permits. Further holds of a named owner use none, whatever their Weight. With any other n, and for other kinds of
// lock, every call on the handle returns ErrInvalidOption. In Defaults, any Weight makes New return ErrInvalidOption.
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
