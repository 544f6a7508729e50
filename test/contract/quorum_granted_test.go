package contract_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// quorumGrantedBeside has a QuorumLock held by one call when its primaries lose their data, and
// granted to another call of the handle before the first hold's renewal.
func quorumGrantedBeside(t *testing.T, f func(x *rig.Lab, l, other *relock.QuorumLock, second rig.Going)) {
	t.Helper()
	for _, owners := range [][2]string{{"", ""}, {"one", "two"}} {
		t.Run(owners[0], func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				p := newPrimaries(x, 3)
				l, other := p.lock("a"), p.lock("a")
				lock := func(owner string) func() error {
					ctx := t.Context()
					if owner != "" {
						ctx = x.By(owner)
					}
					return func() error { return l.Lock(ctx) }
				}
				rig.Must(t, lock(owners[0])())
				time.Sleep(5 * time.Second)
				second := rig.Beside(lock(owners[1]))
				time.Sleep(6 * time.Second) // the first hold has been renewed at 10 s
				for _, srv := range p.all {
					rig.Must(t, srv.Client(t).FlushAll(t.Context()).Err())
				}
				time.Sleep(7 * time.Second)
				f(x, l, other, second)
			})
		})
	}
}

func TestAQuorumLockHasNoSecondHoldBeforeTheFirstIsUnlocked(t *testing.T) {
	quorumGrantedBeside(t, func(x *rig.Lab, l, other *relock.QuorumLock, second rig.Going) {
		second.Pending(x.T, "Lock on a handle whose lost hold is not unlocked")
		if !rig.IsShut(l.Lost()) || l.HoldCount() != 0 {
			x.T.Errorf("Lost is closed: %v, %d live holds: want the first hold to be lost once the lock was granted again",
				rig.IsShut(l.Lost()), l.HoldCount())
		}
		time.Sleep(time.Hour)
		rig.Must(x.T, other.Lock(x.T.Context()))
		rig.Must(x.T, other.Unlock())
		rig.WantIs(x.T, l.Unlock(), relock.ErrLost)
		rig.Must(x.T, rig.Returned(x.T, second))
		refusesQuorum(x, other)
		rig.Must(x.T, l.Unlock())
		rig.WantIs(x.T, l.Unlock(), relock.ErrNotHeld)
		rig.Must(x.T, other.Lock(x.T.Context()))
		rig.Must(x.T, other.Unlock())
	})
}

func TestUnlockOfALostQuorumHoldLeavesTheNextHoldOfItsHandle(t *testing.T) {
	quorumGrantedBeside(t, func(x *rig.Lab, l, other *relock.QuorumLock, second rig.Going) {
		rig.WantIs(x.T, l.Unlock(), relock.ErrLost)
		rig.Must(x.T, rig.Returned(x.T, second))
		refusesQuorum(x, other)
		time.Sleep(time.Minute)
		refusesQuorum(x, other)
		rig.Must(x.T, l.Unlock())
	})
}

// refusesQuorum fails the test if l is granted.
func refusesQuorum(x *rig.Lab, l *relock.QuorumLock) {
	x.T.Helper()
	if got, err := l.TryLock(x.T.Context(), 0); got || err != nil {
		x.T.Errorf("TryLock = %v, %v, want false, nil", got, err)
	}
}
