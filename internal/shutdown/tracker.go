// Package shutdown is how a client ends: first its waits do, then what is left of it is
// waited for, and at last its goroutines. It counts these, and asks its owner for the
// number of the rest. It does not know what that is.
package shutdown

import (
	"context"
	"sync"
	"time"
)

// A Tracker has the goroutines of an owner, and the stages of its end: it is open until it
// drains, drains until it is closed, and runs until it is cancelled.
type Tracker struct {
	// Running ends with Cancel: for what goes on without a caller.
	Running context.Context
	// Open ends with Drain: for who waits.
	Open context.Context

	cancel, drain context.CancelFunc
	draining      <-chan struct{} // Open's Done
	wg            sync.WaitGroup
	left          func() int // what else is to end; called with mu

	mu     sync.Locker   // the owner's, which guards what left counts, and:
	tasks  int           // goroutines that were begun and have not ended
	ended  chan struct{} // closed and replaced when anything ends while it drains
	drains bool
	closed bool
}

// New returns a tracker that is open. What left counts and the goroutines are one state, which
// Quiet judges: what ends may begin a goroutine first. So mu guards both.
func New(mu sync.Locker, left func() int) *Tracker {
	t := &Tracker{mu: mu, left: left, ended: make(chan struct{})}
	t.Running, t.cancel = context.WithCancel(context.Background())
	t.Open, t.drain = context.WithCancel(context.Background())
	t.draining = t.Open.Done()
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
		defer t.done() // also where fn panics or ends its goroutine
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

// Tasks is how many goroutines run. It needs mu.
func (t *Tracker) Tasks() int { return t.tasks }

// Ended wakes who waits for what left counts: there is less of it. It needs mu.
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

// Draining says that Open has ended.
func (t *Tracker) Draining() bool {
	select {
	case <-t.draining:
		return true
	default:
		return false
	}
}

// Quiet waits until nothing is left and no goroutine runs, or the tracker is closed, and
// reports whether ctx did not end first.
func (t *Tracker) Quiet(ctx context.Context) bool {
	return t.await(ctx, func() bool { // what Close has cut short may be left for ever
		return t.closed || t.left() == 0 && t.tasks == 0
	})
}

// Empty waits until nothing is left, but no longer than limit.
func (t *Tracker) Empty(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	t.await(ctx, func() bool { return t.left() == 0 })
}

// await waits until it is so, which each that ends may have brought about.
func (t *Tracker) await(ctx context.Context, so func() bool) bool {
	for {
		t.mu.Lock()
		ended, is := t.ended, so()
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

// Close has no goroutine begun any more.
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
