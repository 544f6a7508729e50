package clock

import (
	"sync/atomic"
	"time"
)

const (
	// fresh is how long a measurement of the second clock stays valid.
	fresh = 10 * time.Millisecond
	// jump is the least that a suspension moves the wall clock. It is more than clock adjustment moves it
	// while a measurement is fresh.
	jump = 100 * time.Microsecond
	// apart is how far apart the readings of one measurement may be. If the goroutine was interrupted in
	// between, the measurement is useless.
	apart = 20 * time.Microsecond
)

// A lead remembers how far the clock that counts suspended time is ahead of the monotonic one. Only a
// suspension changes that, and it moves the wall clock by the same amount. Reading the second clock takes a
// system call. The wall clock comes for free with the monotonic one. So the second clock is only read if the
// wall clock has not advanced evenly. A suspension stays hidden only if the wall clock is set back by exactly
// as much within a hundredth of a second.
type lead struct {
	last atomic.Pointer[measured]
}

type measured struct {
	mono  time.Duration // when
	off   time.Duration // wall clock less monotonic clock
	ahead time.Duration // second clock less monotonic clock
}

// known returns the lead if the second clock need not be read.
func (l *lead) known(mono, wall time.Duration) (ahead time.Duration, ok bool) {
	m := l.last.Load()
	if m == nil || mono < m.mono || mono-m.mono >= fresh {
		return 0, false
	}
	if moved := wall - mono - m.off; moved >= jump || moved <= -jump {
		return 0, false
	}
	return m.ahead, true
}

// boot reads the second clock, for an instant at which the other clocks showed mono and wall. measure reads the
// monotonic clock, the second one, and the monotonic one again.
func (l *lead) boot(mono, wall time.Duration, measure func() (before, boot, after time.Duration)) time.Duration {
	before, boot, after := measure()
	// If the wall clock was set between its reading and this one, the old value is stored, and the next look
	// measures again.
	if after-before <= apart && after-mono < fresh {
		l.last.Store(&measured{mono: mono, off: wall - mono, ahead: boot - after})
	}
	return boot
}
