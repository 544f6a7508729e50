package relock

import (
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/room"
)

// maxRest bounds how long a name may rest.
const maxRest = 366 * 24 * time.Hour

// AtLeast keeps the name taken until d after the grant, by the server's clock, even if the hold or its process ends
// sooner. After the hold the name rests: nobody holds the lock, and nobody can get it. AtLeast is for a job that
// processes start by clocks that differ by more than the job takes. d is from 1 ms to 366 days, in whole milliseconds.
//
// Waiters keep their places, and get the lock when the rest is over. TryLock says that the lock is taken, and Info says
// for how long. d is counted from the grant, so a re-entry changes nothing. After its last hold, and during a
// Cond.Wait, the owner is kept out like everybody else. A call that fails after its grant, for example because ctx
// ended, leaves no rest, unless the client ends before Redis can be told. There is none after ForceUnlock and
// ForceUnlockHolder, and ForceUnlock ends one that has begun. Each grant of such a lock comes from Redis.
//
// Client.NewLock, NewElection and Quorum.NewLock take AtLeast. RWLocks and semaphores return ErrInvalidOption, and so
// does New with AtLeast in Defaults. If the server's clock steps back, the name rests longer by that step.
func AtLeast(d time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		t.Rest = room.Rest{For: d}
		return between("AtLeast", d, time.Millisecond, maxRest)
	})
}

// forOnce checks the arguments of Once and makes l a handle for it: without an owner, even if ctx names one, and taken
// until the next multiple of every. runs says whether there is a function to run.
func forOnce(l *Lock, every time.Duration, runs bool) error {
	if l.err != nil {
		return l.err
	}
	switch s := *l.spec; {
	case !runs:
		return fmt.Errorf("%w: the function to run is nil", ErrInvalidOption)
	case s.terms.owner != "":
		return fmt.Errorf("%w: Once takes no Owner: no call may enter the run of another", ErrInvalidOption)
	case s.terms.Rest.For > 0:
		return fmt.Errorf("%w: Once takes no AtLeast: its interval says for how long the name is taken", ErrInvalidOption)
	case s.terms.Sticky > 0:
		return fmt.Errorf("%w: Once takes no Sticky: its interval says for how long the name is taken", ErrInvalidOption)
	default:
		s.anonymous, s.terms.Rest = true, room.Rest{For: every, Aligned: true}
		l.spec = &s
		return between("Once's interval", every, time.Millisecond, maxRest)
	}
}
