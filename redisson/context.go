package redisson

import (
	"context"
)

// A holdContext is a context that ends with a hold. It checks the clock before it answers: after a pause of the
// process, the watchdog may not have found the loss yet.
type holdContext struct {
	context.Context
	cancel context.CancelCauseFunc
	hold   *Hold
	parent context.Context
	stop   func() bool // ends the wait for parent's end
}

// holdKey is the key under which Value returns the innermost holdContext.
type holdKey struct{}

// forget removes the context from its hold when its parent has ended, because a long hold may have many contexts.
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

// Err also judges the holds whose contexts this one descends from.
func (c *holdContext) Err() error {
	for above, ok := c, true; ok; above, ok = above.parent.Value(holdKey{}).(*holdContext) {
		above.judge()
	}
	return c.Context.Err()
}

// Value also judges the hold, because context.Cause finds the cause through it.
func (c *holdContext) Value(key any) any {
	if key == (holdKey{}) {
		return c
	}
	c.judge()
	return c.Context.Value(key)
}
