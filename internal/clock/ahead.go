package clock

import (
	"sync/atomic"
	"time"
)

const (
	// fresh is for how long a measurement of the second clock is believed.
	fresh = 10 * time.Millisecond
	// jump is what a suspension moves the wall clock by at least, and more than a
	// clock that is being adjusted is moved by while a measurement is fresh.
	jump = 100 * time.Microsecond
	// apart is what the readings of one measurement may lie apart: a goroutine that
	// was interrupted between them has measured nothing.
	apart = 20 * time.Microsecond
)

// A lead keeps how far the clock that counts suspended time is ahead of the
// monotonic one. Only a suspension changes that, and it moves the wall clock by
// as much at the same moment: so the second clock, which takes a system call,
// need not be read where the wall clock, which comes with the monotonic one for
// nothing, has gone on evenly. What hides a suspension would be a wall clock that
// is set back by just as much within a hundredth of a second.
type lead struct {
	// measure reads the monotonic clock, the second one, and the monotonic one again.
	measure func() (before, boot, after time.Duration)
	last    atomic.Pointer[measured]
}

type measured struct {
	mono  time.Duration // when
	off   time.Duration // wall clock less monotonic clock
	ahead time.Duration // second clock less monotonic clock
}

// known returns the lead, if it can be said without reading the second clock.
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

// boot reads the second clock, for an instant at which the others showed mono and wall.
func (l *lead) boot(mono, wall time.Duration) time.Duration {
	before, boot, after := l.measure()
	// A wall clock that was set between its reading and this would be noted as it
	// was, and the next look measures again.
	if after-before <= apart && after-mono < fresh {
		l.last.Store(&measured{mono: mono, off: wall - mono, ahead: boot - after})
	}
	return boot
}
