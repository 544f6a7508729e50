package clock

import (
	"sync/atomic"
	"time"
)

const (
	// validFor is how long a measurement of the second clock stays valid.
	validFor = 10 * time.Millisecond
	// minJump is the smallest step of the wall clock that counts as a suspension or a clock change. NTP slewing moves
	// the wall clock by less within validFor.
	minJump = 100 * time.Microsecond
	// maxGap is how far apart the readings of one measurement may be. If the goroutine was interrupted in between, the
	// measurement is useless.
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
	// If the wall clock was set after it was read, off is out of date, and the next caller measures again.
	if after-before <= maxGap && after-mono < validFor {
		l.last.Store(&measured{mono: mono, off: wall - mono, ahead: boot - after})
	}
	return boot
}
