package redisson

import (
	"context"
	"fmt"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/ending"
)

// enter checks all that can be said without Redis, and says who locks.
func (l *Lock) enter(ctx context.Context) (owner string, err error) {
	if err := l.bad(ctx); err != nil {
		return "", err
	}
	owner = l.terms.owner
	if id, named := relock.OwnerFrom(ctx); named {
		if err := checkOwner(id); err != nil {
			return "", err
		}
		if owner != "" && owner != id {
			return "", fmt.Errorf("%w: the handle is of owner %q, the context of %q; use a handle without Owner, or one owner", relock.ErrOwnerMismatch, owner, id)
		}
		owner = id
	}
	return owner, l.waitsForItself(ctx, owner)
}

// gate waits while a lost hold that is not yet unlocked occupies the handle.
func (w *waiting) gate() error {
	for {
		freed, err := w.lock.occupied(w.owner)
		if freed == nil {
			return err
		}
		select {
		case <-freed:
		case <-w.ctx.Done():
			return fmt.Errorf("%w: a lost hold of this handle is yet to be unlocked: %w", relock.ErrLost, ending.Of(w.ctx))
		case <-w.lock.c.open.Done():
			return relock.ErrClosed // a hold that Close has lost may never be unlocked
		}
	}
}

// outdo has the holds of other sessions on an exclusive handle be lost, as Redis has granted the
// lock to s, and says whether there is any. An older hold may not have heard of its loss: its
// Unlock must not end the new one. outdo needs the client's mu; run todo without it.
func (l *Lock) outdo(s *session, todo *[]func()) (occupied bool) {
	if l.kind == reading {
		return false
	}
	for _, h := range l.holds {
		if h.s != s {
			occupied = true
			*todo = append(*todo, h.s.lose(errRegranted)...)
		}
	}
	return occupied
}

var errRegranted = fmt.Errorf("%w: Redis has granted the lock again, to another call of the same handle", relock.ErrLost)

// giveBack ends a hold that the call cannot return.
func (w *waiting) giveBack() {
	h := w.hold
	w.hold, w.occupied = nil, false
	h.lock.c.mu.Lock()
	h.released, h.told = true, true
	h.lock.c.mu.Unlock()
	h.s.lessBeside(h)
}

// occupied returns a channel to wait on if a lost hold of another owner is in the way, or
// an error where waiting is in vain.
func (l *Lock) occupied(owner string) (freed <-chan struct{}, err error) {
	l.judge()
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for _, h := range l.holds {
		same := h.s.named && h.s.owner.key.name == owner
		switch {
		case l.kind == reading && !same && (owner != "" || h.s.named) && h.unlock:
			return nil, fmt.Errorf("%w: the read holds of one handle belong to one named owner, or all to none; use a handle for each owner", relock.ErrOwnerMismatch)
		case l.kind == reading || h.lost == nil:
		case same:
			return nil, fmt.Errorf("%w; unlock that hold first", h.lost)
		default:
			if l.freed == nil {
				l.freed = make(chan struct{})
			}
			return l.freed, nil
		}
	}
	return nil, nil
}
