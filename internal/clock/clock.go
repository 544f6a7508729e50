// Package clock measures elapsed time so that it is never under-counted, not even across a suspension of the machine.
//
// Go's monotonic clock stands still while a machine sleeps (on Linux it is CLOCK_MONOTONIC). A lease in Redis
// does not. Every [Instant] is therefore read from two clocks, and the one that has advanced further decides.
package clock

import "time"

// Instant is a point on two clocks: Go's monotonic clock, and one that also counts the time during which the
// machine is suspended. Its zero value lies before every instant that a [Clock] returns. Both are plain
// numbers, because every held lock keeps a few: a [time.Time] takes three words.
type Instant struct {
	mono time.Duration // from long before origin
	boot time.Duration
}

// origin is the reference point of the monotonic clock, less ages. The zero Instant must lie before it by
// more than any interval in use.
var origin = time.Now()

const ages = 100 * 365 * 24 * time.Hour

func monotonic(t time.Time) time.Duration { return t.Sub(origin) + ages }

// Clock tells the time. Its zero value reads the clocks of the system; a Clock
// may be used by several goroutines at once.
type Clock struct {
	now  func() time.Time     // nil: time.Now
	boot func() time.Duration // nil: sinceBoot
	lead lead
}

// System returns a clock of this machine. What it has measured is its own: monotonic clocks of testing/synctest bubbles
// differ.
func System() *Clock { return &Clock{} }

// New returns a clock that reads now and boot, for tests. A nil boot stands for a machine that is never suspended: both
// clocks then read now, so that time in a testing/synctest bubble is exact to the nanosecond.
func New(now func() time.Time, boot func() time.Duration) *Clock {
	if boot == nil {
		base := now()
		boot = func() time.Duration { return now().Sub(base) }
	}
	return &Clock{now: now, boot: boot}
}

// Now returns the current instant.
//
// The clock that counts suspended time is read last, so that a caller that checks a deadline sees a
// suspension between the two readings.
func (c *Clock) Now() Instant {
	if c.now == nil {
		now := time.Now()
		return Instant{mono: monotonic(now), boot: sinceBoot(&c.lead, now)}
	}
	now := c.now()
	return Instant{mono: monotonic(now), boot: c.boot()}
}

// Add returns the instant that is d after i on both clocks.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{mono: i.mono + d, boot: i.boot + d}
}

// Sub returns the time from j to i, the larger of what the two clocks say:
// elapsed time is never under-counted. It is -i.Until(j).
func (i Instant) Sub(j Instant) time.Duration {
	return max(i.mono-j.mono, i.boot-j.boot)
}

// Until returns the time that remains from i to deadline, the smaller of what
// the two clocks say. It is zero or negative once either has reached it.
//
// A timer set to it may fire too late, because it does not run while the machine is suspended. So a caller must ask
// [Instant.Reached] again after it wakes up, and before it does anything that must not happen after the deadline.
func (i Instant) Until(deadline Instant) time.Duration {
	return min(deadline.mono-i.mono, deadline.boot-i.boot)
}

// Reached reports whether, at i, either clock has reached deadline.
func (i Instant) Reached(deadline Instant) bool { return i.Until(deadline) <= 0 }

// Max returns the later of a and b on each clock by itself. For two leases that is the end of the longer one
// on the clock that counts suspended time. The other clock can only make it come sooner.
func Max(a, b Instant) Instant {
	return Instant{mono: max(a.mono, b.mono), boot: max(a.boot, b.boot)}
}

// Min returns the earlier of a and b on each clock by itself. Neither a nor b is reached before the result is.
func Min(a, b Instant) Instant {
	return Instant{mono: min(a.mono, b.mono), boot: min(a.boot, b.boot)}
}

// IsZero reports whether i is the zero Instant.
func (i Instant) IsZero() bool { return i == Instant{} }

// Awake returns the time from j to i on the monotonic clock alone.
func (i Instant) Awake(j Instant) time.Duration { return i.mono - j.mono }

// Time returns i as a [time.Time] for a caller that waits for it from now on. If the machine was suspended
// after i was made, the result is earlier by that time.
func (c *Clock) Time(i Instant) time.Time {
	now := c.Now()
	t := i.Time()
	// Less than a millisecond may lie between two readings of the clocks.
	if slept := i.Awake(now) - now.Until(i); slept > time.Millisecond {
		return t.Add(-slept)
	}
	return t
}

// Time returns i as a [time.Time] with its monotonic reading. Its wall clock reading assumes that the wall
// clock goes on as it does now.
func (i Instant) Time() time.Time {
	now := time.Now()
	return now.Add(i.mono - monotonic(now))
}
