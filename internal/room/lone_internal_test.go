package room

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Fails when a removal loses another element, leaves one or changes the order.
func TestALoneListKeepsItsOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same every time
	var got lone[int]
	var want []*int
	for range 10_000 {
		if len(want) == 0 || r.IntN(9) < 4 && len(want) < 5 {
			x := new(int)
			got.add(x)
			want = append(want, x)
		} else {
			i := r.IntN(len(want))
			if !got.remove(want[i]) || got.remove(want[i]) {
				t.Fatal("removed twice, or never")
			}
			want = slices.Delete(want, i, i+1)
		}
		var all []*int
		for i, x := range got.all() {
			if all = append(all, x); got.at(i) != x {
				t.Fatal("at and all differ")
			}
		}
		var ends [2]*int
		if n := len(want); n > 0 {
			ends = [2]*int{want[0], want[n-1]}
		}
		if !slices.Equal(all, want) || got.len() != len(want) || [2]*int{got.first, got.last()} != ends || got.remove(new(int)) {
			t.Fatalf("got %v, want %v", all, want)
		}
	}
}
