package transport

import (
	"sync/atomic"
	"time"
)

const (
	// crowd is how many calls under way are a crowd: who writes lets the others come
	// first, who have just been woken together. The system call costs more than they do.
	// A server takes some 66 of our commands from a connection at a time. Twice that, and
	// it works on one half while the other half gathers here.
	crowd = 128
	// few are too few for that to be worth it.
	few = 4
)

// yields says that who writes lets others come first. With fewer than a crowd the server
// may be idle until they have come; or each message may have to wake a core that sleeps,
// which costs more than that. It is tried which.
func (s *stream) yields() bool {
	n := s.load.Load()
	return n >= crowd || n >= few && s.pace.yield.Load()
}

const (
	paceWindow = 512 // commands
	paceProbe  = 32  // windows, of which one is for what was slower
	paceMemory = 0.3 // how much the latest window counts
)

// A pace finds out which of two ways to write sends more commands in a second. What is
// not limited by that is as fast in either way. It is guarded by stream.mu.
type pace struct {
	yield atomic.Bool
	count int // commands in this window
	began time.Time
	rates [2]float64 // commands a second: without and with yielding; 0: not known
	n     int        // windows
	most  int        // calls that were under way at a time in this window, at most
	half  int        // of as many in the window before: so many are not kept waiting
}

// sent counts commands, and calls under way.
func (p *pace) sent(commands, load int, now func() time.Time) {
	p.most = max(p.most, load)
	if p.count += commands; p.count < paceWindow {
		return
	}
	end := now()
	if took := end.Sub(p.began); !p.began.IsZero() && took > 0 {
		p.measured(float64(p.count) / took.Seconds())
	}
	p.count, p.began = 0, end
	p.half, p.most = (p.most+1)/2, 0
}

// measured takes the rate of a window, and chooses the way of the next.
func (p *pace) measured(rate float64) {
	i := 0
	if p.yield.Load() {
		i = 1
	}
	if p.rates[i] > 0 {
		rate = p.rates[i] + paceMemory*(rate-p.rates[i])
	}
	p.rates[i] = rate
	better := p.rates[1] > p.rates[0]
	if p.n++; p.n%paceProbe == 0 || p.rates[1-i] == 0 {
		better = !better
		if p.rates[1-i] == 0 {
			better = i == 0
		}
	}
	p.yield.Store(better)
}
