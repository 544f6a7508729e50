package transport

import (
	"context"
	"time"
)

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

// start sends a batch on a goroutine, and then what its lane has next. The callers watch their contexts and timeouts. It
// needs t.mu.
func (t *Transport) start(b *batch) {
	t.spawn(func() {
		growStack(0)
		for next := b; next != nil; next = t.nextAfter(next) {
			t.send(next.ctx, next)
		}
	})
}

// growStack makes room on a new goroutine's stack for a command of go-redis. Otherwise the stack would grow several times
// while it is deep, and copying it would take a quarter of the CPU time of a call.
//
//go:noinline
func growStack(i int) byte {
	var room [6 << 10]byte
	return room[i]
}

// nextAfter returns the batch that the sender of b sends next, or nil if it has to end.
func (t *Transport) nextAfter(b *batch) *batch {
	if b.lane == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return b.lane.nextOrResign()
}

// inline runs a call on its caller's goroutine, because a hand-off to another one costs more than everything else here. It
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

// stepDown ends the caller's time as a leader. If requests are queued, a new goroutine may become one.
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
