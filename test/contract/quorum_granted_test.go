package contract_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
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
				virtual.Sleep(5 * time.Second)
				second := rig.Beside(lock(owners[1]))
				virtual.Sleep(6 * time.Second) // the first hold has been renewed at 10 s
				for _, srv := range p.all {
					rig.Must(t, srv.Client(t).FlushAll(t.Context()).Err())
				}
				virtual.Sleep(7 * time.Second)
				f(x, l, other, second)
			})
		})
	}
}

func TestAQuorumLockHasNoSecondHoldBeforeTheFirstIsUnlocked(t *testing.T) {
	quorumGrantedBeside(t, func(x *rig.Lab, l, other *relock.QuorumLock, second rig.Going) {
		rig.SecondHoldWaits(x, l, other, second)
	})
}

func TestUnlockOfALostQuorumHoldLeavesTheNextHoldOfItsHandle(t *testing.T) {
	quorumGrantedBeside(t, func(x *rig.Lab, l, other *relock.QuorumLock, second rig.Going) {
		rig.LostUnlockSparesTheNext(x, l, other, second)
	})
}
