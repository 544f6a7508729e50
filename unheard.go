package relock

import (
	"sync"
	"time"
)

// unheard counts the calls that Redis has not answered. Each of them asks again about once a
// second, so the log has one line for all of them, and ever less often.
type unheard struct {
	mu    sync.Mutex // guards the following fields
	calls int
	pause time.Duration // from the latest line to the next, at least; 0: the next is due
	told  instant       // the latest line
}

const (
	firstUnheard = time.Second
	mostUnheard  = time.Minute
)

func (u *unheard) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
}

// end forgets a call. When the last is answered the outage is over, and the next outage is told
// of at once.
func (u *unheard) end(answered bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls--; answered && u.calls == 0 {
		u.pause = 0
	}
}

// due says whether a line is due now, and how many calls are unanswered. After a long silence it
// begins anew: calls that gave up have not seen the end of their outage.
func (u *unheard) due(now instant) (calls int, due bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch since := now.Sub(u.told); {
	case u.pause == 0, since > 10*u.pause:
		u.pause = firstUnheard
	case since < u.pause:
		return u.calls, false
	default:
		u.pause = min(2*u.pause, mostUnheard)
	}
	u.told = now
	return u.calls, true
}
