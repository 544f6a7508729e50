// Package logqueue keeps a slow log handler, or one that hangs, from delaying the goroutines that log.
//
// The lock library logs on goroutines that must go on: those that renew holds, and those that wake waiters.
// So it logs to a queue, and a goroutine of the queue calls the handler.
package logqueue

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// size is the most records that wait for the handler. Later ones are dropped.
const size = 1024

// A Queue has the records that their handlers have not been given yet. The zero value is ready for use.
type Queue struct {
	mu    sync.Mutex // protects following fields; the handler is called without it
	items []item
	// drained is closed when the goroutine that calls handlers finds no record; nil: there is no such goroutine.
	drained chan struct{}
}

// An item is a record for a handler, and how many records were dropped after it.
type item struct {
	ctx     context.Context
	to      slog.Handler
	record  slog.Record
	dropped int
}

// Handler returns a handler that queues records for next, and never waits for next.
func (q *Queue) Handler(next slog.Handler) slog.Handler { return &handler{q, next} }

// A handler is the slog.Handler that puts records into a Queue.
type handler struct {
	queue *Queue
	next  slog.Handler
}

// Enabled does not ask the handler, which could block. The queue asks it later.
func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h.queue.add(item{ctx: ctx, to: h.next, record: r.Clone()})
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.queue.Handler(h.next.WithAttrs(attrs))
}

func (h *handler) WithGroup(name string) slog.Handler {
	return h.queue.Handler(h.next.WithGroup(name))
}

// add queues an item. If the queue is full, add only counts the record, at the place where it is missing.
func (q *Queue) add(it item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.items); n >= size {
		q.items[n-1].dropped++
		return
	}
	q.items = append(q.items, it)
	if q.drained == nil {
		q.drained = make(chan struct{})
		go q.drain()
	}
}

// drain calls the handler until the queue is empty.
func (q *Queue) drain() {
	over := false
	defer func() {
		if !over {
			go q.drain() // the handler has called runtime.Goexit
		}
	}()
	for {
		it, ok := q.next()
		if !ok {
			over = true
			return
		}
		if it.to.Enabled(it.ctx, it.record.Level) {
			_ = it.to.Handle(it.ctx, it.record) // slog's own loggers ignore the error too
		}
		if it.dropped > 0 {
			slog.New(it.to).Warn("log records dropped: the handler takes too long", slog.Int("records", it.dropped))
		}
	}
}

// next takes the first item. ok is false if there is none: then the goroutine must end.
func (q *Queue) next() (it item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		q.items = nil
		close(q.drained)
		q.drained = nil
		return item{}, false
	}
	it = q.items[0]
	q.items[0] = item{}
	q.items = q.items[1:]
	return it, true
}

// Close waits until the handlers have been given all records, but no longer than limit. Then it drops what is left. A
// handler that never returns keeps its goroutine. Records that come later are handled as before.
func (q *Queue) Close(limit time.Duration) {
	q.mu.Lock()
	drained := q.drained
	q.mu.Unlock()
	if drained == nil {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		q.mu.Lock()
		defer q.mu.Unlock()
		clear(q.items)
		q.items = nil
	}
}
