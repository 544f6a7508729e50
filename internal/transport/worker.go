package transport

import (
	"context"
	"time"
)

// linger is how long a worker waits for its next batch. A new goroutine would
// have to grow its stack for every call.
const linger = 100 * time.Millisecond

// A batch is what one leader sends at once.
type batch struct {
	requests []*request
	one      [1]*request // the place of the only request of most batches
	ctx      *runContext
	lane     *lane // whose leader sends it; nil: it takes no place
	present  int   // callers that have not gone; guarded by Transport.mu
}

// add needs t.mu, unless the batch is new and nobody else has r.
func (b *batch) add(r *request) {
	if b.ctx == nil {
		b.ctx = &runContext{values: r.ctx}
		if r.ctx.Done() != nil {
			// Else a context made from this one would find the caller's.
			b.ctx.values = context.WithoutCancel(r.ctx)
		}
		if b.requests == nil {
			b.requests = b.one[:0]
		}
	}
	b.requests = append(b.requests, r)
	b.present++
	r.batch = b
}

// A worker sends batches for callers that have something to watch meanwhile.
type worker struct {
	next chan *batch // cap 1, filled when it is taken from the idlers; nil: no more
}

// start gives the batch to a worker. It needs t.mu.
func (t *Transport) start(b *batch) {
	t.running++
	if n := len(t.idlers); n > 0 {
		w := t.idlers[n-1]
		t.idlers = t.idlers[:n-1]
		w.next <- b
		return
	}
	t.workers++
	go t.work(&worker{next: make(chan *batch, 1)}, b)
}

func (t *Transport) work(w *worker, b *batch) {
	idle := time.NewTimer(linger)
	defer idle.Stop()
	for b != nil {
		t.send(b.ctx, b)
		if b = t.finish(w, b); b != nil {
			continue
		}
		idle.Reset(linger)
		select {
		case b = <-w.next:
		case <-idle.C:
			b = t.dismiss(w)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.workers--; t.workers == 0 {
		t.idle.Broadcast()
	}
}

// finish ends a batch, and returns the next for this worker, or makes it idle.
func (t *Transport) finish(w *worker, b *batch) *batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.lane != nil {
		if next := b.lane.succeed(); next != nil {
			return next
		}
	}
	t.running--
	if t.waiting > 0 {
		w.next <- nil
	} else {
		t.idlers = append(t.idlers, w)
	}
	return nil
}

// dismiss takes an idle worker off the list, unless it has just been given a batch.
func (t *Transport) dismiss(w *worker) *batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, idler := range t.idlers {
		if idler == w {
			t.idlers = append(t.idlers[:i], t.idlers[i+1:]...)
			return nil
		}
	}
	return <-w.next
}

// inline runs a call on its caller's goroutine, if it can be ended there and the
// server has a place for a leader: a hand-off costs more than all else here.
func (t *Transport) inline(ctx context.Context, timeout time.Duration, c *Call, server string, known bool) (Result, bool) {
	if !t.keeps(ctx, timeout) {
		return Result{}, false
	}
	lead := t.stepUp(server, known)
	if lead == nil {
		return Result{}, false
	}
	defer t.stepDown(lead) // also when a hook panics
	run, cancel, _ := t.unwatched(ctx, timeout)
	defer cancel()
	return t.run(run, nil, c), true
}

// stepUp makes the caller a leader, if there is a place for one.
func (t *Transport) stepUp(server string, known bool) *lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lane(server, known)
	if l.active >= l.limit {
		return nil
	}
	l.active++
	return l
}

// stepDown ends the lead of a caller, who does not send for others: a worker does.
func (t *Transport) stepDown(l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next := l.succeed(); next != nil {
		t.start(next)
	}
}

// KeepsTime says that a call is ended at its timeout on its caller's goroutine: one whose
// context does not end needs no goroutine but its caller's.
func (t *Transport) KeepsTime() bool { return t.deadlines || t.own != nil }

// keeps says that nothing but the client has to be watched during a call.
func (t *Transport) keeps(ctx context.Context, timeout time.Duration) bool {
	return ctx.Done() == nil && (timeout <= 0 || t.deadlines)
}

// unwatched returns what a call can run under on its caller's goroutine, if
// the client alone keeps ctx and timeout.
func (t *Transport) unwatched(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, bool) {
	switch {
	case !t.keeps(ctx, timeout):
		return nil, nil, false
	case timeout <= 0:
		return ctx, func() {}, true
	}
	run, cancel := context.WithTimeout(ctx, timeout)
	return run, cancel, true
}
