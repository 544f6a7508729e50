// Package shutdown ends a client in stages: first its waits, then what the client still holds, and last its goroutines.
// It counts the goroutines itself, and asks the client how much else is left, without knowing what that is.
package shutdown

import (
	"context"
	"sync"
)

// A Tracker counts the goroutines of a client and has the stages of its end. The client is open until Drain, draining
// until Close, and running until Cancel.
type Tracker struct {
	// Running is the context of work without a caller. It ends with Cancel.
	Running context.Context
	Cancel  context.CancelFunc
	// Open is the context of waits. It ends with Drain.
	Open  context.Context
	Drain context.CancelFunc

	wg   sync.WaitGroup
	left func() int // how much has not ended, apart from goroutines; called with mu

	mu     sync.Locker   // the client's, which guards what left counts, and the following fields
	tasks  int           // goroutines that have begun and not ended
	ended  chan struct{} // closed and replaced when anything ends during the drain
	closed bool
}

// New returns an open tracker. mu must guard what left counts. It guards the count of goroutines too: what ends may
// start a goroutine first, and Await must see one of the two.
func New(mu sync.Locker, left func() int) *Tracker {
	t := &Tracker{mu: mu, left: left, ended: make(chan struct{})}
	t.Running, t.Cancel = context.WithCancel(context.Background())
	t.Open, t.Drain = context.WithCancel(context.Background())
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
		defer func() { // also if fn panics or ends its goroutine
			t.mu.Lock()
			defer t.mu.Unlock()
			t.tasks--
			t.Ended()
		}()
		fn(t.Running)
	})
	return true
}

// Tasks returns how many goroutines run. It needs mu.
func (t *Tracker) Tasks() int { return t.tasks }

// Ended wakes calls of Await, because something has ended. Before Drain none waits. It needs mu.
func (t *Tracker) Ended() {
	if t.Draining() {
		close(t.ended)
		t.ended = make(chan struct{})
	}
}

// Draining reports whether Open has ended.
func (t *Tracker) Draining() bool { return t.Open.Err() != nil }

// Await waits until nothing is left, and if tasks is set, until no goroutine runs either. After Close it returns true
// at once, because what the client has interrupted may be left for ever. It returns false if ctx ends first. Call Drain
// first.
func (t *Tracker) Await(ctx context.Context, tasks bool) bool {
	for {
		t.mu.Lock()
		ended, met := t.ended, t.closed || t.left() == 0 && (!tasks || t.tasks == 0)
		t.mu.Unlock()
		if met {
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

// Wait returns when all goroutines have ended.
func (t *Tracker) Wait() { t.wg.Wait() }
