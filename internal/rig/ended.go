package rig

import (
	"context"
	"sync/atomic"
)

// An EndedContext has ended after End, but its Done channel stays open: a call that is granted the lock sees the grant
// first, and must ask the context itself.
type EndedContext struct {
	context.Context
	ended atomic.Bool
	done  chan struct{}
}

// NewEndedContext returns one that has not ended.
func NewEndedContext(parent context.Context) *EndedContext {
	return &EndedContext{Context: parent, done: make(chan struct{})}
}

// End makes Err return context.Canceled from now on.
func (c *EndedContext) End() { c.ended.Store(true) }

// Done returns a channel that Wake closes.
func (c *EndedContext) Done() <-chan struct{} { return c.done }

// Wake closes Done.
func (c *EndedContext) Wake() { close(c.done) }

// Err is context.Canceled after End.
func (c *EndedContext) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}
