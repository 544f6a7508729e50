package clock

import "time"

// SinceBoot reads the second clock of the system.
func SinceBoot() time.Duration { return sinceBoot(time.Now()) }

// A Lead is a lead on clocks that a test sets.
type Lead struct{ lead }

func NewLead(measure func() (before, boot, after time.Duration)) *Lead {
	return &Lead{lead{measure: measure}}
}

// Boot reads the second clock.
func (l *Lead) Boot(mono, wall time.Duration) time.Duration {
	if ahead, ok := l.known(mono, wall); ok {
		return mono + ahead
	}
	return l.boot(mono, wall)
}
