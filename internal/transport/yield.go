package transport

import (
	"sync/atomic"
	"time"
)

const (
	// manyCalls is the number of calls under way from which on the writer always yields to the callers that were just
	// woken together: one system call for all costs less. A server reads about 66 commands from a connection at a time.
	// With twice as many it works on one half while the callers queue the other half.
	manyCalls = 128
	// With less than fewCalls under way, yielding is not worth its cost.
	fewCalls = 4
)

// shouldYield reports whether the writer lets other callers queue their commands before it writes. With fewCalls to
// manyCalls under way that may leave the server idle. Or it may save more, if each write has to wake a sleeping core.
// The tuner measures which is faster.
func (s *stream) shouldYield() bool {
	n := s.load.Load()
	return n >= manyCalls || n >= fewCalls && s.tuner.yield.Load()
}

const (
	tunerWindow = 512 // commands in a window
	tunerProbe  = 32  // every 32nd window tries the slower way
	tunerWeight = 0.3 // weight of the latest window in a rate
)

// A yieldTuner measures whether more commands are sent in a second with yielding or without. Load that depends on neither
// has the same rate with both. It is guarded by stream.mu.
type yieldTuner struct {
	yield    atomic.Bool // the choice; read without the mutex
	count    int         // commands in this window
	began    time.Time
	rates    [2]float64 // commands a second, without and with yielding; 0: not known
	windows  int        // how many have been measured
	peak     int        // the most calls under way at a time in this window
	halfPeak int        // half of the peak of the window before: a queue of this length is written at once
}

// sent counts the commands of a batch. load is how many calls are under way.
func (p *yieldTuner) sent(commands, load int, now func() time.Time) {
	p.peak = max(p.peak, load)
	if p.count += commands; p.count < tunerWindow {
		return
	}
	end := now()
	if took := end.Sub(p.began); !p.began.IsZero() && took > 0 {
		p.choose(float64(p.count) / took.Seconds())
	}
	p.count, p.began = 0, end
	p.halfPeak, p.peak = (p.peak+1)/2, 0
}

// choose records the rate of a window, and decides whether the next window yields.
func (p *yieldTuner) choose(rate float64) {
	i := 0
	if p.yield.Load() {
		i = 1
	}
	if p.rates[i] > 0 {
		rate = p.rates[i] + tunerWeight*(rate-p.rates[i])
	}
	p.rates[i] = rate
	better := p.rates[1] > p.rates[0]
	if p.windows++; p.windows%tunerProbe == 0 || p.rates[1-i] == 0 {
		better = !better
		if p.rates[1-i] == 0 {
			better = i == 0
		}
	}
	p.yield.Store(better)
}
