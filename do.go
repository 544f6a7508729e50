package relock

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
)

// A held is a hold of one lock, of several locks, or of a majority.
type held interface {
	Context(parent context.Context) context.Context
	releaseUnlessDetached() error
}

// errNoFunction is returned before the lock is acquired: a nil function would panic while the lock is held.
var errNoFunction = fmt.Errorf("relock: %w: the function to run under the lock is nil", ErrInvalidOption)

// during implements Do for a Lock, a Multi or a QuorumLock.
func during[H held](ctx context.Context, acquire func(context.Context) (H, error), fn func(ctx context.Context) error) error {
	if fn == nil {
		return errNoFunction
	}
	h, err := acquire(ctx)
	if err != nil {
		return err
	}
	return under(ctx, h, fn)
}

// tryDuring implements TryDo for a Lock, a Multi or a QuorumLock.
func tryDuring[H held](ctx context.Context, wait time.Duration, try func(context.Context, time.Duration) (H, error), fn func(ctx context.Context) error) (ran bool, err error) {
	if fn == nil {
		return false, errNoFunction
	}
	h, err := try(ctx, wait)
	if err != nil {
		return tryResult(err)
	}
	return true, under(ctx, h, fn)
}

// under runs fn and then ends the hold, even if fn panics or ends its goroutine.
func under(ctx context.Context, h held, fn func(ctx context.Context) error) (err error) {
	defer func() { err = ending.Join(err, h.releaseUnlessDetached()) }()
	return fn(h.Context(ctx))
}

// tryResult turns ErrNotAcquired into (false, nil): a TryLock that found the lock taken returns no error.
func tryResult(err error) (bool, error) {
	if ending.Is(err, ErrNotAcquired) {
		return false, nil
	}
	return err == nil, err
}
