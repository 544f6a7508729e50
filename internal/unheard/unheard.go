// Package unheard decides when a client logs that Redis does not answer. Each waiting call asks again about
// once a second. One log line covers all of them, and the lines become rarer.
package unheard

import (
	"sync"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

const (
	firstPause = time.Second
	mostPause  = time.Minute
)

// Calls counts the calls of a client that Redis has not answered. The zero value has none.
type Calls struct {
	mu    sync.Mutex // guards the following fields
	n     int
	pause time.Duration // from the latest line to the next, at least; 0: the next line is due
	told  clock.Instant // the latest line
}

// Begin counts a call.
func (c *Calls) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// End removes a call. If it was the last one, and was answered, the outage is over, and the next one is logged at once.
func (c *Calls) End(answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; answered && c.n == 0 {
		c.pause = 0
	}
}

// Due reports whether a line is due now, and how many calls are unanswered. If no line was due for long, the pauses
// start again. The calls before that may have given up, so that none saw the end of the outage.
func (c *Calls) Due(now clock.Instant) (calls int, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch since := now.Sub(c.told); {
	case c.pause == 0, since > 10*c.pause:
		c.pause = firstPause
	case since < c.pause:
		return c.n, false
	default:
		c.pause = min(2*c.pause, mostPause)
	}
	c.told = now
	return c.n, true
}
