package relock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A MultiHold is one successful acquisition of a Multi: a hold of each of its
// locks. It is lost with the first of them that is lost; the others are held until
// its Release. Its methods may be called from any goroutine.
type MultiHold struct {
	holds []*Hold // in the order of the locks' keys

	once sync.Once
	lost chan struct{} // made by the first Lost
}

// Release ends all the holds. It returns nil when all were held until now, and
// otherwise what Hold.Release returned for each that was not. Redis is told of all
// of them at once.
func (h *MultiHold) Release() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	errs := make([]error, len(h.holds))
	panics := make(chan any, len(h.holds))
	end := func(i int) {
		defer func() {
			if p := recover(); p != nil { // of a hook: the caller's to handle
				panics <- p
			}
		}()
		errs[i] = h.holds[i].Release()
	}
	var beside sync.WaitGroup
	last := len(h.holds) - 1
	for i := range last {
		beside.Go(func() { end(i) })
	}
	end(last)
	beside.Wait()
	select {
	case p := <-panics:
		panic(p)
	default:
		return errors.Join(errs...)
	}
}

// giveBack ends holds that no caller has seen. A call whose context has ended does
// not wait for Redis.
func (h *MultiHold) giveBack(ctx context.Context) {
	released := make([]chan struct{}, len(h.holds))
	for i, hold := range h.holds {
		released[i] = make(chan struct{})
		hold.lock.c.spawn(func(context.Context) {
			defer close(released[i])
			_ = hold.forgo()
		})
	}
	for i, hold := range h.holds {
		select {
		case <-released[i]:
		case <-ctx.Done():
		case <-hold.lock.c.closing: // a closed client starts nothing, and has lost the hold
		}
	}
}

// broken says that a hold was lost, as far as that has been found.
func (h *MultiHold) broken() bool {
	return slices.ContainsFunc(h.holds, func(hold *Hold) bool { return hold.peek() != nil })
}

// Err returns nil while every hold is trusted, else the error of one that is not:
// ErrLost if any was lost, or ErrNotHeld after the Release. It is judged like Hold.Err.
func (h *MultiHold) Err() (err error) {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	for _, hold := range h.holds {
		switch e := hold.Err(); {
		case errors.Is(e, ErrLost):
			return e
		case err == nil:
			err = e
		}
	}
	return err
}

// Lost returns a channel that is closed when the first of the holds is lost. It
// stays open when they are released in time.
func (h *MultiHold) Lost() <-chan struct{} {
	if h.unmade() {
		return closed
	}
	h.once.Do(func() {
		h.lost = make(chan struct{})
		for _, hold := range h.holds {
			select {
			case <-hold.Lost():
				close(h.lost)
				return
			default:
			}
		}
		ctx := h.Context(context.Background())
		context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), ErrLost) {
				close(h.lost)
			}
		})
	})
	return h.lost
}

// TrustedUntil returns until when all the holds are certain as things stand: the
// earliest of theirs, and the zero time once one is lost or released.
func (h *MultiHold) TrustedUntil() time.Time {
	var first time.Time
	if h.unmade() {
		return first
	}
	for i, hold := range h.holds {
		if t := hold.TrustedUntil(); i == 0 || t.Before(first) {
			first = t
		}
	}
	return first
}

// Context returns a context that ends when one of the holds is lost, with ErrLost
// as its cause, when they are released, or when parent ends, like Hold.Context.
func (h *MultiHold) Context(parent context.Context) context.Context {
	if h.unmade() {
		return endedContext(parent, errUnmadeHold)
	}
	for _, hold := range h.holds {
		parent = hold.Context(parent)
	}
	return parent
}

// Tokens returns the fencing token of each hold by the name of its lock.
func (h *MultiHold) Tokens() map[string]int64 {
	if h.unmade() {
		return nil
	}
	tokens := make(map[string]int64, len(h.holds))
	for _, hold := range h.holds {
		tokens[hold.Name()] = hold.Token()
	}
	return tokens
}

func (h *MultiHold) do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	defer func() { err = errors.Join(err, h.Release()) }()
	return fn(h.Context(ctx))
}
