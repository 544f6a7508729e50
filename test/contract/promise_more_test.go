package contract_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when the function is looked at only once the lock is held: a lock that is taken would hide that it is nil.
func TestTryDoOfNoFunctionIsRefusedThoughTheLockIsTaken(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		held := rig.MustAcquire(t, x.Lock("l"))
		for _, wait := range []time.Duration{0, time.Second} {
			began := x.Now()
			ran, err := x.Lock("l").TryDo(t.Context(), wait, nil)
			if rig.WantIs(t, err, relock.ErrInvalidOption); ran || x.Now() != began {
				t.Errorf("TryDo(%v) of a nil function: ran %v, after %v", wait, ran, x.Now()-began)
			}
		}
		rig.End(t, held)
	})
}

// Fails when the token of a lost hold is taken for none.
func TestTokenOfAQuorumLockIsThatOfALostHoldToo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := newPrimaries(x, 3).lock("a", relock.NoWatchdog())
		rig.Must(t, l.Lock(t.Context()))
		token := l.Token()
		<-l.Lost()
		if token == 0 || l.Token() != token || l.HoldCount() != 0 {
			t.Errorf("token %d and %d holds after the loss, before it was %d", l.Token(), l.HoldCount(), token)
		}
		if rig.WantIs(t, l.Unlock(), relock.ErrLost); l.Token() != 0 {
			t.Errorf("token %d of a handle without a hold", l.Token())
		}
	})
}

// Fails when a re-entry is told as held since its owner's first hold.
func TestHeldOfAHookIsOfTheHoldAndNotOfItsGrant(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var r record
		l, me := x.Client(r.trace()).NewLock("a"), called(t, "me")
		rig.Must(t, l.Lock(me))
		time.Sleep(3 * time.Second)
		rig.Must(t, l.Lock(me))
		acquired := "acquired a me token=true waited=0s held=0s err=<nil>"
		r.saw(t, acquired, acquired)
		time.Sleep(2 * time.Second)
		rig.Must(t, l.Unlock())
		time.Sleep(time.Second)
		rig.Must(t, l.Unlock())
		r.saw(t, "released a me token=true waited=0s held=2s err=<nil>", "released a me token=true waited=0s held=6s err=<nil>")
	})
}
