package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/virtual"
)

// Every bubble begins at the same virtual instant, but real time passes between two bubbles. Fails when a clock uses a
// measurement from an earlier bubble: then a lease in a test ends for no reason.
func TestAClockKnowsNothingOfAnotherOnesMeasurements(t *testing.T) {
	var took time.Duration
	for range 5 { // a busy machine may stop the test between two readings
		synctest.Test(t, func(*testing.T) { new(clock.Clock).Now() })
		for began := time.Now(); time.Since(began) < 300*time.Millisecond; {
		}
		synctest.Test(t, func(*testing.T) {
			c := new(clock.Clock)
			began := c.Now()
			virtual.Sleep(20 * time.Millisecond)
			took = c.Now().Sub(began)
		})
		if took < 200*time.Millisecond {
			return
		}
	}
	t.Errorf("20 ms took %v", took)
}
