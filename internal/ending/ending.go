// Package ending is how a call says that its context has ended: with the context's error
// and its cause. The cause is what the context's owner says, often an error of another call,
// as an errgroup has it: it is for the caller to read, and never what has happened to this call.
package ending

import (
	"context"
	"errors"
	"time"
)

// An over is the error of a context, and its cause.
type over struct{ err, cause error }

func (o *over) Error() string   { return o.err.Error() + ": " + o.cause.Error() }
func (o *over) Unwrap() []error { return []error{o.err, o.cause} }

// Of is the error of a context that is done: ctx.Err(), and its cause where that says more.
// nil: it is not done.
func Of(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return &over{err, cause}
}

// patience bounds the wait for the Done of a context whose deadline has passed.
const patience = time.Second

// Passed says that a context has ended, also where its deadline has passed and its timer is
// late: then it returns when the timer has fired, so that ctx.Err says so too.
func Passed(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, has := ctx.Deadline()
	if !has || time.Now().Before(deadline) {
		return false
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-late.C: // of a context that has a deadline and does not heed it
	}
	return ctx.Err() != nil
}

// In says that an error has a context's end in it, with a cause.
func In(err error) bool {
	var o *over
	return errors.As(err, &o)
}

// Is is [errors.Is], but for the cause of a context: what is decided by it goes by what has
// happened here.
func Is(err, target error) bool {
	if err == nil || err == target { //nolint:errorlint // this is what goes through the chain
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
