// Package holdcontext has the context that ends with a hold, of whatever kind the hold is.
package holdcontext

import "context"

// Key is the key under which Value returns the innermost Context.
type Key struct{}

// A Context ends with its hold. Each answer judges the hold first: a timer is late after a pause of the process.
type Context struct {
	context.Context
	Parent context.Context
	Hold   any
	Cancel context.CancelCauseFunc
	Stop   func() bool // stops the AfterFunc on Parent, if the maker has set one
	ended  func() error
}

// New returns a context below parent for a hold. ended judges the hold by the clock and returns the cause of its end, or
// nil. The caller must call Cancel when the hold ends.
func New(parent context.Context, hold any, ended func() error) *Context {
	inner, cancel := context.WithCancelCause(parent)
	return &Context{Context: inner, Parent: parent, Hold: hold, Cancel: cancel, ended: ended}
}

// Err also judges the holds whose contexts this one descends from. If one of them is lost, this context has ended when
// Err returns, unless a context.WithoutCancel is between them.
func (c *Context) Err() error {
	for above, ok := c, true; ok; above, ok = above.Parent.Value(Key{}).(*Context) {
		above.judge()
	}
	return c.Context.Err()
}

// Value judges the hold first, because context.Cause finds the cause through it.
func (c *Context) Value(key any) any {
	if key == (Key{}) {
		return c
	}
	c.judge()
	return c.Context.Value(key)
}

// judge ends c.Context if the hold has ended. The goroutine that found the loss may not have done so yet.
func (c *Context) judge() {
	if cause := c.ended(); cause != nil {
		c.Cancel(cause)
	}
}
