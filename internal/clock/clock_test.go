package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/virtual"
)

// A machine is a computer that can be suspended.
type machine struct {
	mono time.Time
	boot time.Duration
}

func (m *machine) clock() *clock.Clock {
	return clock.New(
		func() time.Time { return m.mono },
		func() time.Duration { return m.boot },
	)
}

func (m *machine) run(d time.Duration)     { m.mono = m.mono.Add(d); m.boot += d }
func (m *machine) suspend(d time.Duration) { m.boot += d }

func newMachine() *machine { return &machine{mono: time.Now(), boot: 7 * time.Hour} }

func TestDeadlineIsReachedAcrossSuspension(t *testing.T) {
	m := newMachine()
	c := m.clock()
	start := c.Now()
	deadline := start.Add(30 * time.Second)

	m.run(10 * time.Second)
	m.suspend(20*time.Second - 1)
	now := c.Now()
	if now.Reached(deadline) {
		t.Error("reached 1 ns too early")
	}
	if got, want := now.Until(deadline), time.Nanosecond; got != want {
		t.Errorf("Until = %v, want %v", got, want)
	}
	if got, want := now.Sub(start), 30*time.Second-1; got != want {
		t.Errorf("Sub = %v, want %v: suspended time counts", got, want)
	}

	m.suspend(1)
	if now := c.Now(); !now.Reached(deadline) || now.Until(deadline) != 0 {
		t.Errorf("not reached at the deadline: %v remain", now.Until(deadline))
	}
	m.suspend(time.Second)
	if got, want := c.Now().Until(deadline), -time.Second; got != want {
		t.Errorf("Until = %v, want %v", got, want)
	}
}

func TestDeadlineIsReachedWhenTheSecondClockStandsStill(t *testing.T) {
	m := newMachine()
	c := m.clock()
	start := c.Now()
	deadline := start.Add(30 * time.Second)
	m.mono = m.mono.Add(30*time.Second - 1)
	if c.Now().Reached(deadline) {
		t.Error("reached 1 ns too early")
	}
	m.mono = m.mono.Add(1)
	if !c.Now().Reached(deadline) {
		t.Error("not reached by the monotonic clock alone")
	}
	if got, want := c.Now().Sub(start), 30*time.Second; got != want {
		t.Errorf("Sub = %v, want %v", got, want)
	}
}

func TestSubIsMinusUntil(t *testing.T) {
	m := newMachine()
	c := m.clock()
	a := c.Now()
	m.run(time.Second)
	m.suspend(4 * time.Second)
	b := c.Now()
	if got, want := b.Sub(a), 5*time.Second; got != want {
		t.Errorf("b.Sub(a) = %v, want %v", got, want)
	}
	if got, want := a.Sub(b), -time.Second; got != want {
		t.Errorf("a.Sub(b) = %v, want %v", got, want)
	}
	if b.Sub(a) != -b.Until(a) || a.Sub(b) != -a.Until(b) {
		t.Error("Sub is not minus Until")
	}
}

func TestMaxIsLaterOnEachClock(t *testing.T) {
	m := newMachine()
	c := m.clock()
	a := c.Now().Add(10 * time.Second) // later on the monotonic clock
	m.run(time.Second)
	m.suspend(20 * time.Second)
	b := c.Now() // later on the other
	for _, got := range []clock.Instant{clock.Max(a, b), clock.Max(b, a)} {
		if !got.Time().Equal(a.Time()) {
			t.Errorf("monotonic part = %v, want %v", got.Time(), a.Time())
		}
		if d := b.Sub(got); d != 0 {
			t.Errorf("the larger difference to b is %v, want 0", d)
		}
	}
	if clock.Max(a, a) != a {
		t.Error("Max(a, a) is not a")
	}
}

func TestZeroInstantIsBeforeAll(t *testing.T) {
	var zero clock.Instant
	now := new(clock.Clock).Now()
	if !zero.IsZero() || now.IsZero() {
		t.Errorf("IsZero: zero %v, now %v", zero.IsZero(), now.IsZero())
	}
	if !now.Reached(zero) {
		t.Error("the zero instant is not reached")
	}
	if clock.Max(zero, now) != now {
		t.Error("the zero instant is later than now")
	}
	if (&clock.Clock{}).Now().IsZero() {
		t.Error("the zero Clock tells no time")
	}
}

func TestSystemAdvances(t *testing.T) {
	c := new(clock.Clock)
	a := c.Now()
	for begin := time.Now(); time.Since(begin) < 2*time.Millisecond; {
	}
	b := c.Now()
	if d := b.Sub(a); d < 2*time.Millisecond || d > time.Hour {
		t.Errorf("2 ms took %v", d)
	}
	if got := b.Time().Sub(a.Time()); got <= 0 {
		t.Errorf("Time advanced by %v", got)
	}
}

// In a bubble time.Now is fake, but the kernel's clock is real.
func TestBubble(t *testing.T) {
	for name, build := range map[string]func() *clock.Clock{
		"system":          func() *clock.Clock { return new(clock.Clock) },
		"never suspended": func() *clock.Clock { return clock.New(time.Now, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := build()
				start := c.Now()
				deadline := start.Add(24 * time.Hour)
				virtual.Sleep(24*time.Hour - 1)
				if c.Now().Reached(deadline) {
					t.Error("reached 1 ns too early")
				}
				virtual.Sleep(1)
				if !c.Now().Reached(deadline) {
					t.Error("not reached")
				}
				if got, want := c.Now().Sub(start), 24*time.Hour; got != want {
					t.Errorf("Sub = %v, want %v", got, want)
				}
			})
		})
	}
}

func TestNeverSuspendedIsExactInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New(time.Now, nil)
		deadline := c.Now().Add(time.Second)
		for range 1000 { // real time passes, but fake time does not
			if got, want := c.Now().Until(deadline), time.Second; got != want {
				t.Fatalf("Until = %v, want %v", got, want)
			}
		}
	})
}

func TestNowDoesNotAllocate(t *testing.T) {
	c := new(clock.Clock)
	deadline := c.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(100, func() { _ = c.Now().Reached(deadline) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkNow(b *testing.B) {
	c := new(clock.Clock)
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Now()
	}
}

func BenchmarkReached(b *testing.B) {
	c := new(clock.Clock)
	deadline := c.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if c.Now().Reached(deadline) {
			b.Fatal("reached")
		}
	}
}
