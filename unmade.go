package relock

import (
	"context"
	"fmt"
)

// This file is for values that nobody has made: zero ones, and nil pointers, as where
// an error was overlooked. Each method of theirs says so, or has a zero result.

var (
	errUnmadeClient = fmt.Errorf("%w: the Client was not made by relock.New; look at the error that New has returned", ErrInvalidOption)
	errUnmadeLock   = fmt.Errorf("%w: the lock was not made by Client.NewLock or Client.NewRWLock", ErrInvalidOption)
	errUnmadeHold   = fmt.Errorf("%w (%w): the Hold was not made by Acquire or TryAcquire; look at the error that the call has returned", ErrInvalidOption, ErrNotHeld)
)

func (c *Client) unmade() bool { return c == nil || c.transport == nil }
func (l *Lock) unmade() bool   { return l == nil || l.side == nil }
func (h *Hold) unmade() bool   { return h == nil || h.Session == nil }

func (h *MultiHold) unmade() bool { return h == nil || len(h.holds) == 0 }

// bad is what every call on the handle returns, or nil.
func (l *Lock) bad() error {
	if l.unmade() {
		return errUnmadeLock
	}
	return l.err
}

// endedContext returns a context that has ended, for that reason.
func endedContext(parent context.Context, why error) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	cancel(why)
	return ctx
}

// closed is closed.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
