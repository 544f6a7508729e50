package transport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/ending"
)

// A request is a call that somebody waits for.
type request struct {
	ctx    context.Context // the caller's: its values are for hooks, its end is the caller's affair
	call   Call
	result Result        // before done
	done   chan struct{} // cap 1: its sender waits for nobody
	timer  *time.Timer   // made at the first need, then kept

	// Guarded by Transport.mu:

	batch *batch // that it is sent in; nil: in a queue
	lane  *lane  // whose queue it is or was in
	left  bool   // its caller has gone
}

func (t *Transport) request(ctx context.Context, c *Call) *request {
	r, ok := t.free.Get().(*request)
	if !ok {
		r = &request{done: make(chan struct{}, 1)}
	}
	r.ctx, r.call = ctx, *c
	return r
}

// recycle is for a request that was answered: nobody else has it any more.
func (t *Transport) recycle(r *request) {
	*r = request{done: r.done, timer: r.timer}
	t.free.Put(r)
}

// await returns the request's result, or an error once ctx ends or timeout has passed.
func (t *Transport) await(ctx context.Context, timeout time.Duration, r *request) Result {
	if len(r.done) > 0 {
		timeout = 0 // one of many that are answered by now
	}
	var expired <-chan time.Time
	if timeout > 0 {
		if r.timer == nil {
			r.timer = time.NewTimer(timeout)
		} else {
			r.timer.Reset(timeout)
		}
		expired = r.timer.C
	}
	answered := false
	select {
	case <-r.done:
		answered = true
	case <-ctx.Done():
	case <-expired:
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	if !answered {
		select {
		case <-r.done: // both were ready: a known outcome is worth more
			answered = true
		default:
		}
	}
	if answered {
		result := r.result
		t.recycle(r)
		return result
	}
	return Result{Err: named(&r.call, leaving(ctx, t.leave(r)))}
}

// leaving is the error of a caller that does not wait any longer.
func leaving(ctx context.Context, sent bool) error {
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

// leave notes that the caller has gone, and reports whether the request may
// have been sent. What is in the queue never will be.
func (t *Transport) leave(r *request) (sent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.left = true
	if r.batch == nil {
		r.lane.drop()
		return false
	}
	if r.batch.present--; r.batch.present == 0 {
		r.batch.ctx.end()
	}
	return true
}

// A runContext is what a batch is sent under. It has the values of the first
// caller's context, but neither its deadline, which would make some clients drop
// a good connection, nor its end, which is not the others'. It ends when all
// callers have gone: what still waits for a connection then is never sent.
type runContext struct {
	values context.Context

	mu    sync.Mutex
	done  chan struct{} // made when first asked for
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
