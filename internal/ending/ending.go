// Package ending makes the error of a call whose context has ended: the context's error with its cause. The cause comes
// from the context's owner. Often it is the error of another call, as with an errgroup. It is only there for people to
// read: no code may take it for what happened to this call. Pause is a sleep that a context may end, and Spread draws
// the random part of such a sleep.
package ending

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// An over is the error of a context with its cause.
type over struct{ err, cause error }

func (o *over) Error() string   { return o.err.Error() + ": " + o.cause.Error() }
func (o *over) Unwrap() []error { return []error{o.err, o.cause} }

// Of returns the error of a context that is done, with the cause if that says more. It returns nil if ctx is not done.
func Of(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return &over{err, cause}
}

// patience bounds the wait for the Done of a context whose deadline has passed.
const patience = time.Second

// Passed is Of for a context whose timer may be late: once the deadline has passed, it waits until the timer has fired,
// so that ctx.Err agrees.
func Passed(ctx context.Context) error {
	if ctx.Err() == nil {
		deadline, has := ctx.Deadline()
		if !has || time.Now().Before(deadline) {
			return nil
		}
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case <-ctx.Done():
		case <-late.C: // a foreign context that does not end at its deadline
		}
	}
	return Of(ctx)
}

// Pause waits for d. It returns false if ctx or stop ended first.
func Pause(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}

// Spread returns a random duration from 0 up to d. Tests that replay a schedule replace it.
var Spread = func(d time.Duration) time.Duration { return rand.N(d) }

// In reports whether err contains the end of a context with a cause.
func In(err error) bool {
	var o *over
	return errors.As(err, &o)
}

// Is is [errors.Is] without the causes of contexts, because decisions must rest on what happened to this call.
func Is(err, target error) bool {
	if err == nil || err == target { //nolint:errorlint // this function walks the chain itself
		return err != nil
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case *over:
		return Is(e.err, target)
	case interface{ Unwrap() error }:
		return Is(e.Unwrap(), target)
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if Is(part, target) {
				return true
			}
		}
	}
	return false
}
