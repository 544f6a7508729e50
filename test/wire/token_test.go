package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/wire"
)

// What keeps a token as a float64, as Lua does, sees two grants as two, and in their order.
// Fails when the digits of an owner reach to the next microsecond.
func TestTokensOfNeighbouringInstantsDifferAsFloats(t *testing.T) {
	least, most := "", ""
	for i := range 20_000 {
		owner := fmt.Sprint(i)
		if digits := wire.Token(0, owner); least == "" || digits < wire.Token(0, least) {
			least = owner
		}
		if most == "" || wire.Token(0, owner) > wire.Token(0, most) {
			most = owner
		}
	}
	for _, year := range []int{2026, 2044, 2115} {
		instant := time.Date(year, 12, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		for i := range int64(1000) {
			one, next := wire.Token(instant+i, most), wire.Token(instant+i+1, least)
			if float64(one) >= float64(next) {
				t.Fatalf("in %d, tokens %d and %d are %v and %v", year, one, next, float64(one), float64(next))
			}
			if wire.Instant(one) != instant+i {
				t.Fatalf("token %d is of instant %d, want %d", one, wire.Instant(one), instant+i)
			}
		}
	}
}
