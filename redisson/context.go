package redisson

import (
	"context"
	"fmt"

	"github.com/relock-go/relock"
)

// Context returns a context that ends when the hold is lost, when it is released, or when parent
// ends. After a loss its cause is ErrLost.
func (h *Hold) Context(parent context.Context) context.Context {
	inner, cancel := context.WithCancelCause(parent)
	if h.unmade() {
		cancel(errBadHold)
		return inner
	}
	ctx := &holdContext{Context: inner, cancel: cancel, hold: h, parent: parent}
	c := h.lock.c
	ctx.stop = context.AfterFunc(parent, ctx.forget)
	c.mu.Lock()
	err, todo := h.judge(c.clock.Now())
	if err == nil {
		if h.contexts == nil {
			h.contexts = make(map[*holdContext]struct{})
		}
		h.contexts[ctx] = struct{}{}
	}
	c.mu.Unlock()
	run(todo)
	switch {
	case err != nil:
		ctx.stop()
		cancel(err)
	case parent.Err() != nil: // asked without the mutex: parent may be of a hold of this client
		ctx.forget()
	}
	return ctx
}

// A holdContext asks the clock before it answers: after a pause its timer may yet have to
// run.
type holdContext struct {
	context.Context
	cancel context.CancelCauseFunc
	hold   *Hold
	parent context.Context
	stop   func() bool // ends the wait for parent's end
}

type holdKey struct{}

// forget lets a context go whose parent has ended: a long hold may have many.
func (c *holdContext) forget() {
	mu := &c.hold.lock.c.mu
	mu.Lock()
	defer mu.Unlock()
	delete(c.hold.contexts, c)
}

func (c *holdContext) judge() {
	if err := c.hold.state(); err != nil {
		c.cancel(err)
	}
}

// Err judges the holds as well whose contexts this one descends from.
func (c *holdContext) Err() error {
	for above, ok := c, true; ok; above, ok = above.parent.Value(holdKey{}).(*holdContext) {
		above.judge()
	}
	return c.Context.Err()
}

// Value is also how context.Cause finds the cause.
func (c *holdContext) Value(key any) any {
	if key == (holdKey{}) {
		return c
	}
	c.judge()
	return c.Context.Value(key)
}

// waitsForItself reports a call under a context that descends from a live hold of the same
// lock by somebody else: it could only end in a timeout.
func (l *Lock) waitsForItself(ctx context.Context, owner string) error {
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.parent.Value(holdKey{}).(*holdContext) {
		h := c.hold
		if h.lock.c != l.c || h.lock.names != l.names || h.state() != nil {
			continue
		}
		same := owner != "" && h.s.named && h.s.owner.key.name == owner
		shared := l.kind == reading && h.lock.kind == reading
		switch {
		case l.kind.ofLock() != h.lock.kind.ofLock():
			return fmt.Errorf("%w: the call's context is of a hold of this name as a %v; one name is for one kind of lock", relock.ErrKind, h.lock.kind)
		case l.kind == writing && h.lock.kind == reading:
			return fmt.Errorf("%w: the call's context is of a read hold of this lock; end that first", relock.ErrUpgrade)
		case !same && !shared:
			return fmt.Errorf("%w: the call's context is of a hold of this lock by another owner; relock.WithOwner makes it a re-entry", relock.ErrDeadlock)
		}
	}
	return nil
}
