// Package shutdown ends a client in stages: first its waits, then what else is left, and last its goroutines.
// It counts the goroutines, and asks its owner how much else is left. It does not know what that is.
package shutdown

import (
	"context"
	"sync"
	"time"
)

// A Tracker has the goroutines of an owner, and the stages of its end. It is open until Drain, drains until
// Close, and runs until Cancel.
type Tracker struct {
	// Running ends with Cancel. It is for work without a caller.
	Running context.Context
	// Open ends with Drain. It is for waits.
	Open context.Context

	cancel, drain context.CancelFunc
	wg            sync.WaitGroup
	left          func() int // how much else has to end; called with mu

	mu     sync.Locker   // the owner's, which guards what left counts, and the following fields
	tasks  int           // goroutines that have begun and not ended
	ended  chan struct{} // closed and replaced when anything ends during the drain
	drains bool
	closed bool
}

// New returns an open tracker. What left counts and the goroutines are one state for Quiet, because an ending
// thing may start a goroutine first. So mu guards both.
func New(mu sync.Locker, left func() int) *Tracker {
	t := &Tracker{mu: mu, left: left, ended: make(chan struct{})}
	t.Running, t.cancel = context.WithCancel(context.Background())
	t.Open, t.drain = context.WithCancel(context.Background())
	return t
}

// Go runs fn on a goroutine that Wait waits for, unless the tracker is closed.
func (t *Tracker) Go(fn func(ctx context.Context)) (begun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.tasks++
	t.wg.Go(func() {
		defer t.done() // also if fn panics or ends its goroutine
		fn(t.Running)
	})
	return true
}

func (t *Tracker) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tasks--
	t.Ended()
}

// Tasks returns how many goroutines run. It needs mu.
func (t *Tracker) Tasks() int { return t.tasks }

// Ended wakes the calls that wait, once the tracker drains: something has ended. It needs mu.
func (t *Tracker) Ended() {
	if t.drains {
		close(t.ended)
		t.ended = make(chan struct{})
	}
}

// Drain ends Open.
func (t *Tracker) Drain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.drains {
		t.drains = true
		t.drain()
	}
}

// Draining reports whether Open has ended.
func (t *Tracker) Draining() bool { return t.Open.Err() != nil }

// Quiet waits until nothing is left and no goroutine runs, or until the tracker is closed. It returns false
// if ctx ends first.
func (t *Tracker) Quiet(ctx context.Context) bool {
	return t.await(ctx, func() bool { // after a Close, what it interrupted may be left for ever
		return t.closed || t.left() == 0 && t.tasks == 0
	})
}

// Empty waits until nothing is left, but no longer than limit. Goroutines do not count. Call Drain first.
func (t *Tracker) Empty(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	t.await(ctx, func() bool { return t.left() == 0 })
}

// await waits until met returns true, or returns false when ctx ends. During the drain it asks again at each end.
func (t *Tracker) await(ctx context.Context, met func() bool) bool {
	for {
		t.mu.Lock()
		ended, is := t.ended, met()
		t.mu.Unlock()
		if is {
			return true
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return false
		}
	}
}

// Close prevents new goroutines.
func (t *Tracker) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.Ended()
}

// Cancel ends Running.
func (t *Tracker) Cancel() { t.cancel() }

// Wait returns when all goroutines have ended.
func (t *Tracker) Wait() { t.wg.Wait() }
