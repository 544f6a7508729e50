package transport

import (
	"testing"
	"time"
)

// Fails when the tuner stays with the slower way, tries it often, or does not notice a change.
func TestPaceTakesTheFasterWay(t *testing.T) {
	var p yieldTuner
	now := time.Unix(1, 0)
	run := func(windows int, rates [2]time.Duration) (yielded int) {
		for range windows {
			i := 0
			if p.yield.Load() {
				i, yielded = 1, yielded+1
			}
			for range tunerWindow / 8 {
				now = now.Add(8 * rates[i])
				p.sent(8, 16, func() time.Time { return now })
			}
		}
		return yielded
	}
	const fast, slow = 10 * time.Microsecond, 15 * time.Microsecond
	for _, row := range []struct {
		name        string
		rates       [2]time.Duration
		least, most int
	}{
		{"without", [2]time.Duration{fast, slow}, 300, 400},
		{"with", [2]time.Duration{slow, fast}, 9600, 9900},
		{"without again", [2]time.Duration{fast, slow}, 250, 700},
	} {
		if got := run(10_000, row.rates); got < row.least || got > row.most {
			t.Errorf("%s is faster: yielded in %d of 10000 windows, want %d to %d", row.name, got, row.least, row.most)
		}
	}
}
