package relock_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/relock-go/relock"
)

// Fails when a removal loses another hold, leaves one or changes the order.
func TestAHandlesHoldsAreAList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same every time
	var got relock.Handle
	var want []*relock.Hold
	for range 10_000 {
		if len(want) == 0 || r.IntN(9) < 4 && len(want) < 5 {
			h := new(relock.Hold)
			got.Add(h)
			want = slices.Insert(want, 0, h)
		} else {
			i := r.IntN(len(want))
			h := want[i]
			if !got.Remove(h) || got.Remove(h) {
				t.Fatal("removed twice, or never")
			}
			want = slices.Delete(want, i, i+1)
		}
		var ends [2]*relock.Hold
		if n := len(want); n > 0 {
			ends = [2]*relock.Hold{want[0], want[n-1]}
		}
		if !slices.Equal(got.All(), want) || got.NewestOldest() != ends {
			t.Fatalf("got %v, want %v", got.All(), want)
		}
	}
}
