package transport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/ending"
)

// A request is a call that goes out in a batch. Mostly another goroutine than its caller's sends it.
type request struct {
	ctx    context.Context // the caller's; only its values are used for sending, for hooks
	call   Call
	result Result        // set before done
	done   chan struct{} // cap 1, so that sending to it never blocks

	// Guarded by Transport.mu:

	batch     *batch // the batch that sends it; nil: it is in a queue
	lane      *lane  // its lane; nil: it is of DoAll
	abandoned bool   // its caller has left
}

func newRequest(ctx context.Context, c *Call) *request {
	return &request{ctx: ctx, call: *c, done: make(chan struct{}, 1)}
}

// await returns the request's result, or an error once ctx ends or timeout has passed.
func (t *Transport) await(ctx context.Context, timeout time.Duration, r *request) Result {
	var expired <-chan time.Time
	if timeout > 0 && len(r.done) == 0 { // not answered yet
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-r.done:
		return r.result
	case <-ctx.Done():
	case <-expired:
	}
	select {
	case <-r.done: // select chose at random: a known outcome is worth more
		return r.result
	default:
	}
	return Result{Err: inScript(&r.call, leaveError(ctx, t.leave(r)))}
}

// leaveError returns the error of a call whose caller stops waiting.
func leaveError(ctx context.Context, sent bool) error {
	switch {
	case ctx.Err() != nil && !sent:
		return notSent(ctx)
	case ctx.Err() != nil:
		return ending.Of(ctx)
	case !sent:
		return fmt.Errorf("%w: %w", errNotSent, ErrNoReply)
	}
	return ErrNoReply
}

// leave records that the caller has left, and reports whether the request may have been sent. A request in the queue
// will never be sent.
func (t *Transport) leave(r *request) (sent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.abandoned = true
	if r.batch == nil {
		r.lane.noteAbandoned()
		return false
	}
	if r.batch.callers--; r.batch.callers == 0 {
		r.batch.ctx.end()
	}
	return true
}

// A runContext is the context of a batch. It has the values of the first caller's context. It does not have that
// context's deadline, which would make some clients drop a good connection, nor its end, because others wait too. It
// ends when all callers have left: then a batch that still waits for a connection is never sent.
type runContext struct {
	values context.Context

	mu    sync.Mutex    // guards the following fields
	done  chan struct{} // made by the first Done
	ended bool
}

func (c *runContext) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c *runContext) Value(key any) any { return c.values.Value(key) }

func (c *runContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.ended {
			close(c.done)
		}
	}
	return c.done
}

func (c *runContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return context.Canceled
	}
	return nil
}

func (c *runContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = true; c.done != nil {
		close(c.done)
	}
}
