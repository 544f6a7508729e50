package redistest

import "sync"

// queue is an unbounded channel. push never waits, so the goroutine that reads a connection keeps reading it,
// whatever happens to what it has read.
type queue[T any] struct {
	mu      sync.Mutex // protects following fields
	items   []T
	ended   bool
	changed chan struct{} // closed and replaced by push and end
}

func newQueue[T any]() *queue[T] { return &queue[T]{changed: make(chan struct{})} }

func (q *queue[T]) push(item T) { q.update(func() { q.items = append(q.items, item) }) }

// end lets next return what is left, and then nothing.
func (q *queue[T]) end() { q.update(func() { q.ended = true }) }

func (q *queue[T]) update(change func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
	close(q.changed)
	q.changed = make(chan struct{})
}

// next waits for an item. It returns false once the queue has ended or stop is closed.
func (q *queue[T]) next(stop <-chan struct{}) (item T, ok bool) {
	for {
		item, ok, ended, changed := q.poll()
		if ok || ended {
			return item, ok
		}
		select {
		case <-changed:
		case <-stop:
			return item, false
		}
	}
}

func (q *queue[T]) poll() (item T, ok, ended bool, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item, false, q.ended, q.changed
	}
	item, q.items = q.items[0], q.items[1:]
	return item, true, false, nil
}
