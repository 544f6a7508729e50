package clock

import "time"

// SinceBoot reads the second clock of the system.
func SinceBoot() time.Duration { return sinceBoot(new(lead), time.Now()) }

// A Lead is a lead whose clocks a test sets.
type Lead struct {
	lead
	measure func() (before, boot, after time.Duration)
}

func NewLead(measure func() (before, boot, after time.Duration)) *Lead {
	return &Lead{measure: measure}
}

// Boot reads the second clock.
func (l *Lead) Boot(mono, wall time.Duration) time.Duration {
	if ahead, ok := l.cached(mono, wall); ok {
		return mono + ahead
	}
	return l.boot(mono, wall, l.measure)
}
