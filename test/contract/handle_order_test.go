package contract_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when a handle's list of holds loses another one than that which has ended, leaves
// one, or changes their order.
func TestUnlockEndsTheNewestOfAHandlesHoldsThatAreLeft(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same every time
		l := x.Client().NewLock("a", relock.LocalReentry())
		ctx := x.By("me")
		var held []*relock.Hold // the newest last
		for range 3000 {
			switch n := len(held); {
			case n == 0 || r.IntN(9) < 4 && n < 6:
				h, err := l.Acquire(ctx)
				rig.Must(t, err)
				held = append(held, h)
			case r.IntN(2) == 0:
				i := r.IntN(n)
				rig.Must(t, held[i].Release())
				rig.WantIs(t, held[i].Release(), relock.ErrNotHeld)
				held = slices.Delete(held, i, i+1)
			default:
				rig.Must(t, l.Unlock())
				rig.WantIs(t, held[n-1].Err(), relock.ErrNotHeld)
				held = held[:n-1]
			}
			wantHolds(t, l, len(held))
			for _, h := range held {
				rig.Must(t, h.Err())
			}
		}
	})
}

// Fails when the caller whose hold is over ends the other's hold, and the other hears of a loss.
func TestUnlockEndsALostHoldBeforeALiveOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, ctx := x.Lock("a", relock.TTL(3*time.Second), relock.MaxHold(10*time.Second)), x.By("me")
		rig.Must(t, l.Lock(ctx))
		x.Until(x.Now() + 5*time.Second)
		rig.Must(t, l.Lock(ctx))
		x.Until(x.Now() + 8*time.Second)
		wantHolds(t, l, 1)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		wantHolds(t, l, 1)
		rig.Must(t, l.Unlock())
	})
}

// A Release is still to come for the hold of Acquire, though that is the newer one.
func TestUnlockDuringAWaitOfItsOwnerLeavesTheHoldOfAnAcquire(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, ctx := x.Lock("a"), x.By("me")
		rig.Must(t, l.Lock(ctx))
		h := acquire(t, l, ctx)
		waits := rig.Beside(func() error { return l.NewCond("c").Wait(ctx) })
		rig.StillWaits(t, waits)
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld) // it ends a hold all the same
		other := x.Lock("a")
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.NewCond("c").Signal(t.Context()))
		rig.Must(t, other.Unlock())
		rig.Must(t, rig.Returned(t, waits))
		rig.Must(t, h.Release())
	})
}

// The machine sleeps for longer than the shortest lease of several readers.
func TestAReaderWithAShorterLeaseThanTheOthersIsNotTrustedAfterAPause(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		long := c.NewRWLock("a").RLocker()
		a, b := acquire(t, long, t.Context()), acquire(t, long, t.Context())
		wantHolds(t, long, 2)
		short := c.NewRWLock("a", relock.TTL(time.Second), relock.NoWatchdog()).RLocker()
		rig.Must(t, short.Lock(t.Context()))
		x.Suspend(2 * time.Second)
		wantHolds(t, short, 0)
		rig.WantIs(t, short.Unlock(), relock.ErrLost)
		rig.Must(t, a.Release())
		rig.Must(t, b.Release())
	})
}
