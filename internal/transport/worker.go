package transport

import (
	"context"
	"time"
)

// linger is how long a worker waits for its next batch. A new goroutine for each call would have to grow its stack.
const linger = 100 * time.Millisecond

// A batch is the requests that are sent in one pipeline.
type batch struct {
	requests []*request
	one      [1]*request // backs requests, because most batches have one request
	ctx      *runContext
	lane     *lane // the lane whose leader sends it; nil: DoAll made it, outside the limits of lanes
	callers  int   // callers that have not left; guarded by Transport.mu
}

// add adds a request. It needs Transport.mu, unless the batch is new and nobody else has r.
func (b *batch) add(r *request) {
	if b.ctx == nil {
		b.ctx = &runContext{values: r.ctx}
		if r.ctx.Done() != nil {
			// Otherwise a context derived from this one would inherit the end of the caller's.
			b.ctx.values = context.WithoutCancel(r.ctx)
		}
		if b.requests == nil {
			b.requests = b.one[:0]
		}
	}
	b.requests = append(b.requests, r)
	b.callers++
	r.batch = b
}

// A worker is a goroutine that sends batches, while the callers watch their contexts and timeouts.
type worker struct {
	next chan *batch // cap 1, filled when the worker is taken from idlers; a nil batch ends the worker
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

// finish ends a batch. It returns the worker's next batch, or makes the worker idle and returns nil.
func (t *Transport) finish(w *worker, b *batch) *batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.lane != nil {
		if next := b.lane.nextOrResign(); next != nil {
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

// dismiss takes a worker off the list of idle ones. If the worker was given a batch just before, it returns that.
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

// inline runs a call on its caller's goroutine, because a hand-off to a worker costs more than everything else here. It
// returns false if the call could not end in time there, or if its lane has enough leaders.
func (t *Transport) inline(ctx context.Context, timeout time.Duration, c *Call, server string, known bool) (Result, bool) {
	if !t.clientEnforces(ctx, timeout) {
		return Result{}, false
	}
	lead := t.stepUp(server, known)
	if lead == nil {
		return Result{}, false
	}
	defer t.stepDown(lead) // also when a hook panics
	run, cancel, _ := t.callerContext(ctx, timeout)
	defer cancel()
	return t.run(run, nil, c), true
}

// stepUp makes the caller a leader of the server's lane. It returns nil if the lane has enough leaders.
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

// stepDown ends the caller's time as a leader. If requests are queued, a worker becomes the leader.
func (t *Transport) stepDown(l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next := l.nextOrResign(); next != nil {
		t.start(next)
	}
}

// clientEnforces reports whether the client itself ends a call at the end of ctx and timeout, so that nobody must watch
// them.
func (t *Transport) clientEnforces(ctx context.Context, timeout time.Duration) bool {
	return ctx.Done() == nil && (timeout <= 0 || t.deadlines)
}

// callerContext returns the context for a call on its caller's goroutine. It returns false if clientEnforces does.
func (t *Transport) callerContext(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, bool) {
	switch {
	case !t.clientEnforces(ctx, timeout):
		return nil, nil, false
	case timeout <= 0:
		return ctx, func() {}, true
	}
	run, cancel := context.WithTimeout(ctx, timeout)
	return run, cancel, true
}
