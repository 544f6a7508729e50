package contract_test

import (
	"math/rand/v2"
	"slices"
	"testing"

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
