package clock_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// clocks are the three clocks of a machine.
type clocks struct {
	mono, boot, wall time.Duration
	pause            time.Duration // between the readings of a measurement
	measured         int
}

func (c *clocks) lead() *clock.Lead {
	return clock.NewLead(func() (before, boot, after time.Duration) {
		c.measured++
		before = c.mono
		c.run(c.pause)
		return before, c.boot, c.mono
	})
}

func (c *clocks) run(d time.Duration) { c.mono += d; c.boot += d; c.wall += d }

func (c *clocks) suspend(d time.Duration) { c.boot += d; c.wall += d }

func newClocks() *clocks {
	return &clocks{mono: time.Hour, boot: 2 * time.Hour, wall: 400_000 * time.Hour}
}

// Fails when a measurement is not cached, or when the cache has an answer without one.
func TestTheSecondClockIsReadOnceInAWhile(t *testing.T) {
	c := newClocks()
	l := c.lead()
	for range 1000 {
		if got := l.Boot(c.mono, c.wall); got != c.boot {
			t.Fatalf("second clock reads %v, want %v", got, c.boot)
		}
		c.run(100 * time.Microsecond)
	}
	if c.measured < 9 || c.measured > 11 {
		t.Errorf("read %d times in a tenth of a second, want every hundredth", c.measured)
	}
}

// Fails when a jump of the wall clock does not lead to a new measurement.
func TestASuspensionIsSeenAtOnce(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, time.Second, 8 * time.Hour} {
		c := newClocks()
		l := c.lead()
		l.Boot(c.mono, c.wall)
		c.run(time.Millisecond)
		c.suspend(d)
		if got := l.Boot(c.mono, c.wall); got != c.boot {
			t.Errorf("after a suspension of %v: second clock reads %v, want %v", d, got, c.boot)
		}
	}
}

// Fails when a measurement stays valid for ever.
func TestASuspensionThatTheWallClockHidesIsSeenSoon(t *testing.T) {
	c := newClocks()
	l := c.lead()
	l.Boot(c.mono, c.wall)
	c.suspend(time.Second)
	c.wall -= time.Second
	c.run(10 * time.Millisecond)
	if got := l.Boot(c.mono, c.wall); got != c.boot {
		t.Errorf("second clock reads %v, want %v", got, c.boot)
	}
}

// Fails when an interrupted measurement is cached.
func TestAWallClockThatIsSetAndAnInterruptedMeasurementDoNoHarm(t *testing.T) {
	c := newClocks()
	l := c.lead()
	l.Boot(c.mono, c.wall)
	c.wall -= time.Hour
	if got := l.Boot(c.mono, c.wall); got != c.boot {
		t.Errorf("wall clock set back: second clock reads %v, want %v", got, c.boot)
	}
	c.wall += time.Hour
	c.pause = time.Millisecond
	before := c.measured
	for range 3 {
		mono, wall := c.mono, c.wall
		if got := l.Boot(mono, wall); got != c.boot {
			t.Errorf("interrupted: second clock reads %v, want %v, as it is after the interruption", got, c.boot)
		}
	}
	if got := c.measured - before; got != 3 {
		t.Errorf("%d measurements, want 3: what lies far apart is not to be believed later", got)
	}
}
