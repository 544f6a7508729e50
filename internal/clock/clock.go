// Package clock measures elapsed time so that it is never under-counted, not even across a suspension of the machine.
//
// Go's monotonic clock stands still while a machine is suspended (on Linux it is CLOCK_MONOTONIC). A lease in Redis
// goes on. So every [Instant] is read from two clocks, and the one that has advanced further decides.
package clock

import (
	"sync/atomic"
	"time"
)

// Instant is a point on two clocks: Go's monotonic clock, and one that also counts suspended time. Its zero value lies
// before every instant that a [Clock] returns. Both readings are plain numbers, because every held lock keeps several
// instants, and a [time.Time] takes three words.
type Instant struct {
	mono time.Duration // since ages before origin
	boot time.Duration
}

// origin is the process's start. Monotonic readings count from ages before it, so that the zero Instant lies before
// every real one by more than any interval in use.
var origin = time.Now()

const ages = 100 * 365 * 24 * time.Hour

// Clock reads instants. Its zero value reads the clocks of the system. Each Clock keeps its own measurements, because
// the monotonic clocks of testing/synctest bubbles differ. A Clock is safe for concurrent use.
type Clock struct {
	now  func() time.Time     // nil: time.Now
	boot func() time.Duration // nil: sinceBoot
	lead lead
}

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
// It reads the monotonic clock first. So if the machine is suspended between the two readings, the second one counts
// the suspension, and a check of a deadline sees it.
func (c *Clock) Now() Instant {
	if c.now != nil {
		now := c.now()
		return Instant{mono: now.Sub(origin) + ages, boot: c.boot()}
	}
	now := time.Now()
	mono, wall := now.Sub(origin), time.Duration(now.UnixNano())
	if ahead, ok := c.lead.cached(mono, wall); ok {
		return Instant{mono: mono + ages, boot: mono + ahead}
	}
	return Instant{mono: mono + ages, boot: sinceBoot(&c.lead, now)}
}

// Add returns the instant that is d after i on both clocks.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{mono: i.mono + d, boot: i.boot + d}
}

// Sub returns the time from j to i: the larger of the two clocks' differences, so that elapsed time is never
// under-counted. It equals -i.Until(j).
func (i Instant) Sub(j Instant) time.Duration {
	return max(i.mono-j.mono, i.boot-j.boot)
}

// Until returns the time from i to deadline: the smaller of the two clocks' differences. It is zero or negative once
// either clock has reached the deadline.
//
// A timer with this duration may fire too late, because timers stop while the machine is suspended. So after waking up
// a caller must check [Instant.Reached] before it does anything that must not happen after the deadline.
func (i Instant) Until(deadline Instant) time.Duration {
	return min(deadline.mono-i.mono, deadline.boot-i.boot)
}

// Reached reports whether, at i, either clock has reached deadline.
func (i Instant) Reached(deadline Instant) bool { return i.Until(deadline) <= 0 }

// Max returns the later of a and b, taken on each clock separately. For the ends of two leases it is the end of the
// longer one, by the clock that counts suspended time. The monotonic clock can only reach it sooner.
func Max(a, b Instant) Instant {
	return Instant{mono: max(a.mono, b.mono), boot: max(a.boot, b.boot)}
}

// Min returns the earlier of a and b, taken on each clock separately. Neither a nor b is reached before the result.
func Min(a, b Instant) Instant {
	return Instant{mono: min(a.mono, b.mono), boot: min(a.boot, b.boot)}
}

// IsZero reports whether i is the zero Instant.
func (i Instant) IsZero() bool { return i == Instant{} }

// Awake returns the time from j to i on the monotonic clock alone.
func (i Instant) Awake(j Instant) time.Duration { return i.mono - j.mono }

// Time returns i as a [time.Time] at which a timer that is started now should fire. If the machine was suspended after
// i was read, the result is earlier by the length of the suspension.
func (c *Clock) Time(i Instant) time.Time {
	now := c.Now()
	t := i.Time()
	// A smaller difference may only be the time between two readings.
	if slept := i.Awake(now) - now.Until(i); slept > time.Millisecond {
		return t.Add(-slept)
	}
	return t
}

// Time returns i as a [time.Time] with its monotonic reading. The wall clock reading is right if between i and now the
// wall clock is not set and the machine is not suspended.
func (i Instant) Time() time.Time {
	now := time.Now()
	return now.Add(i.mono - ages - now.Sub(origin))
}

const (
	// validFor is how long a measurement of the second clock stays valid.
	validFor = 10 * time.Millisecond
	// minJump is the smallest step of the wall clock that counts as a suspension or a clock change. NTP slewing moves
	// the wall clock by less within validFor.
	minJump = 100 * time.Microsecond
	// maxGap is how far apart the readings of one measurement may be: it is useless if the goroutine was interrupted.
	maxGap = 20 * time.Microsecond
)

// A lead caches how far the second clock, which counts suspended time, is ahead of the monotonic one. Reading the
// second clock takes a system call, while the wall clock comes for free with the monotonic one. Only a suspension
// changes the lead, and it moves the wall clock by the same amount. So within validFor the second clock is only read
// if the wall clock and the monotonic one have moved apart. A suspension is only missed if it is shorter than minJump,
// or if the wall clock is set back by about as much within validFor.
type lead struct {
	last atomic.Pointer[measured]
}

type measured struct {
	mono  time.Duration // when, on the monotonic clock
	off   time.Duration // wall clock minus monotonic clock
	ahead time.Duration // second clock minus monotonic clock
}

// cached returns the lead if the second clock need not be read.
func (l *lead) cached(mono, wall time.Duration) (ahead time.Duration, ok bool) {
	m := l.last.Load()
	if m == nil || mono < m.mono || mono-m.mono >= validFor {
		return 0, false
	}
	if moved := wall - mono - m.off; moved >= minJump || moved <= -minJump {
		return 0, false
	}
	return m.ahead, true
}

// boot reads the second clock, for an instant at which the other clocks showed mono and wall. measure reads the
// monotonic clock, the second one, and the monotonic one again.
func (l *lead) boot(mono, wall time.Duration, measure func() (before, boot, after time.Duration)) time.Duration {
	before, boot, after := measure()
	// If the wall clock was set since it was read, off is out of date. The next caller sees a jump, and measures again.
	if after-before <= maxGap && after-mono < validFor {
		l.last.Store(&measured{mono: mono, off: wall - mono, ahead: boot - after})
	}
	return boot
}

// wall reads the wall clock. It stands in for a clock that counts suspended time on systems without one. NTP and users
// may set the wall clock. A step forward looks like elapsed time, and only ends trust early. After a step back the
// monotonic clock decides. Only a step back during or after a suspension can hide that suspension.
func wall() time.Duration { return time.Duration(time.Now().UnixNano()) }
