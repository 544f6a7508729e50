package rig

import (
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
)

// A Handle is a lock of any library of the family that keeps its holds.
type Handle interface {
	relock.Locker
	HoldCount() int
	Lost() <-chan struct{}
}

// RefusesAny fails the test if a lock of any library is granted.
func RefusesAny(x *Lab, l relock.Locker) {
	x.T.Helper()
	if got, err := l.TryLock(x.T.Context(), 0); got || err != nil {
		x.T.Errorf("TryLock = %v, %v, want false, nil", got, err)
	}
}

// SecondHoldWaits continues a test in which a handle had a hold, and Redis has granted the lock again to a
// second call of that handle. It fails unless the first hold is lost, the second call waits for its Unlock,
// and others can hold in the meantime.
func SecondHoldWaits(x *Lab, l, other Handle, second Going) {
	x.T.Helper()
	second.Pending(x.T, "Lock on a handle whose lost hold is not unlocked")
	if !IsShut(l.Lost()) || l.HoldCount() != 0 {
		x.T.Errorf("Lost is closed: %v, %d live holds: want the first hold to be lost once the lock was granted again",
			IsShut(l.Lost()), l.HoldCount())
	}
	virtual.Sleep(time.Hour)
	ctx := x.T.Context()
	Must(x.T, other.Lock(ctx))
	Must(x.T, other.Unlock())
	WantIs(x.T, l.Unlock(), relock.ErrLost)
	Must(x.T, Returned(x.T, second))
	RefusesAny(x, other)
	Must(x.T, l.Unlock())
	WantIs(x.T, l.Unlock(), relock.ErrNotHeld)
	Must(x.T, other.Lock(ctx))
	Must(x.T, other.Unlock())
}

// LostUnlockSparesTheNext continues from the same state. It fails if the Unlock of the first call ends the
// second call's hold.
func LostUnlockSparesTheNext(x *Lab, l, other Handle, second Going) {
	x.T.Helper()
	WantIs(x.T, l.Unlock(), relock.ErrLost)
	Must(x.T, Returned(x.T, second))
	RefusesAny(x, other)
	virtual.Sleep(time.Minute)
	RefusesAny(x, other)
	Must(x.T, l.Unlock())
}
