package otelrelock

import (
	"testing"

	"github.com/relock-go/relock"
)

// Fails when something is kept of holds that are over: each anonymous one has a name of its own. A
// loss may be told before the hold.
func TestModesAreForgottenWithTheirHolds(t *testing.T) {
	m := &modes{}
	write := relock.Event{Name: "a", Kind: "rw", Owner: "~x:1"}
	read := relock.Event{Name: "a", Kind: "rw", Owner: "~x:1", Read: true}
	for _, steps := range [][]struct {
		e  relock.Event
		by int64
	}{
		{{write, 1}, {write, -1}},
		{{write, 1}, {read, -1}},
		{{write, 1}, {read, 1}, {read, -1}, {read, -1}},
		{{write, -1}, {write, 1}},
		{{read, 1}, {write, -1}, {write, 1}, {read, -1}},
	} {
		var counted [2]int64
		for _, s := range steps {
			side := 0
			if m.count(s.e, s.by) {
				side = 1
			}
			counted[side] += s.by
		}
		if len(m.live) != 0 || counted != [2]int64{} {
			t.Errorf("%+v: %v is kept, %v counted", steps, m.live, counted)
		}
	}
}
