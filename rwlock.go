package relock

import (
	"context"
	"fmt"
	"time"
)

// An RWLock is a handle on the read/write lock of one name: any number of
// readers share it, or one owner writes. It is a Locker for writing.
//
// Both sides are reentrant for a named owner. A writer may also read; an owner
// that only reads cannot write, and gets ErrUpgrade at once, since two that
// tried would wait for each other. An owner that reads may read again past
// writers that wait. Other readers wait behind a writer at the head of the
// queue, so that writers are not starved; readers next to each other in the
// queue are let in together.
//
// Each hold has its own lease: a dead reader stops blocking writers when its own
// lease ends. Locking both sides, as in a downgrade by Lock, RLock, Unlock,
// takes a named owner: anonymous holds exclude each other, and the call ends
// with ErrDeadlock or ErrUpgrade where its context shows it, or waits.
//
// Write tokens and read tokens come from one counter. A resource that is fenced
// advances its maximum on write tokens only: readers overlap, and the token of
// one does not make that of another stale.
type RWLock struct {
	w, r *Lock
}

var _ Locker = (*RWLock)(nil)

// NewRWLock returns a handle on the read/write lock of that name. Like NewLock
// it does no I/O, and a bad name or option is what every call returns.
func (c *Client) NewRWLock(name string, opts ...LockOption) *RWLock {
	w := c.newLock(name, kindRW, kindFairRW, opts)
	r := &Lock{c: w.c, name: w.name, keys: w.keys, kind: w.kind, terms: w.terms, err: w.err, read: true}
	return &RWLock{w: w, r: r}
}

// Lock waits until the caller holds the lock for writing, like Lock.Lock.
func (rw *RWLock) Lock(ctx context.Context) error { return rw.w.Lock(ctx) }

// TryLock is Lock for at most the given time, like Lock.TryLock.
func (rw *RWLock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.w.TryLock(ctx, wait)
}

// Unlock ends one hold for writing, like Lock.Unlock. Where its owner goes on
// reading, other readers join it.
func (rw *RWLock) Unlock() error { return rw.w.Unlock() }

// RLock waits until the caller holds the lock for reading. The read holds of one
// handle belong to one named owner, or all to none: else it returns ErrOwnerMismatch.
func (rw *RWLock) RLock(ctx context.Context) error { return rw.r.Lock(ctx) }

// TryRLock is RLock for at most the given time, like Lock.TryLock.
func (rw *RWLock) TryRLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.r.TryLock(ctx, wait)
}

// RUnlock ends one hold for reading, like Lock.Unlock.
func (rw *RWLock) RUnlock() error { return rw.r.Unlock() }

// RLocker returns the reading side, with all that a Lock has.
func (rw *RWLock) RLocker() *Lock { return rw.r }

// WLocker returns the writing side, with all that a Lock has.
func (rw *RWLock) WLocker() *Lock { return rw.w }

// Downgrade makes the newest write hold of this handle a read hold, to be ended
// by RUnlock, without a gap: no writer comes between, and readers that wait may
// join if it was the last write hold of its owner. It returns ErrNotHeld where
// there is none, and ErrLost where it was lost. ErrUnconfirmed means that Redis
// was asked and has not answered until ctx ended: the hold is a read hold from
// now on, and the client goes on telling Redis so.
func (rw *RWLock) Downgrade(ctx context.Context) error {
	w := rw.w
	if w.err != nil {
		return lockError(w.name, w.err)
	}
	if ctx == nil {
		return lockError(w.name, fmt.Errorf("%w: the context is nil; pass context.Background()", ErrInvalidOption))
	}
	if ctx.Err() != nil {
		return lockError(w.name, ended(ctx))
	}
	h := w.newest()
	if h == nil {
		return lockError(w.name, fmt.Errorf("%w for writing by this handle", ErrNotHeld))
	}
	if err := h.downgrade(ctx, rw); err != nil {
		return lockError(w.name, err)
	}
	return nil
}

// downgrade moves the hold to the reading side, then tells Redis: what has been
// asked for once may come true at any time, and a read hold is true either way.
func (h *Hold) downgrade(ctx context.Context, rw *RWLock) error {
	s := h.session
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ended(ctx)
	}
	if err := h.judge(); err != nil {
		<-s.turn
		return err
	}
	rw.w.detach(h)
	rw.r.mu.Lock()
	rw.r.holds = append(rw.r.holds, h)
	rw.r.mu.Unlock()
	s.room.mu.Lock()
	h.read, h.moved = true, rw.r
	n := s.claims()
	s.intent = n
	s.room.mu.Unlock()

	err := s.state(ctx, n, 0, false)
	if err == nil {
		s.confirmed(n)
		<-s.turn
		return nil
	}
	if err == errGone { //nolint:errorlint // returned as it is
		<-s.turn
		return h.judge()
	}
	s.room.c.background(s.patience(), s.converge)
	return fmt.Errorf("%w: the hold is a read hold now, and the client goes on telling redis: %w", ErrUnconfirmed, err)
}
