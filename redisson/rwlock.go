package redisson

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/ending"
)

// An RWLock is a handle on the read/write lock of one name, Redisson's getReadWriteLock. It is a
// Locker for writing.
//
// Readers share it, or one owner writes. A writer may also read. An owner that only reads cannot
// write, and gets ErrUpgrade. Readers overtake waiting writers, because the layout has no queue.
// The lease of a read hold is bounded by the WatchdogTimeout.
type RWLock struct{ w, r *Lock }

var _ relock.Locker = (*RWLock)(nil)

// Lock waits until the caller holds the lock for writing.
func (rw *RWLock) Lock(ctx context.Context) error { return rw.WLocker().Lock(ctx) }

// TryLock is Lock for at most the given time.
func (rw *RWLock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.WLocker().TryLock(ctx, wait)
}

// Unlock ends one hold for writing. Where its owner goes on reading, other readers join it.
func (rw *RWLock) Unlock() error { return rw.WLocker().Unlock() }

// RLock waits until the caller holds the lock for reading.
func (rw *RWLock) RLock(ctx context.Context) error { return rw.RLocker().Lock(ctx) }

// TryRLock is RLock for at most the given time.
func (rw *RWLock) TryRLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.RLocker().TryLock(ctx, wait)
}

// RUnlock ends one hold for reading.
func (rw *RWLock) RUnlock() error { return rw.RLocker().Unlock() }

// RLocker returns the reading side, with all that a Lock has.
func (rw *RWLock) RLocker() *Lock {
	if rw == nil {
		return nil // its methods say what is wrong
	}
	return rw.r
}

// WLocker returns the writing side, with all that a Lock has.
func (rw *RWLock) WLocker() *Lock {
	if rw == nil {
		return nil // its methods say what is wrong
	}
	return rw.w
}

// Downgrade makes the newest write hold of this handle a read hold, which RUnlock ends. There is no
// gap: the owner reads before it stops writing. Waiting readers may join if it was its last write
// hold. It returns ErrNotHeld if there is no hold. It returns ErrLost if the hold was lost: the
// hold must still be unlocked then, and there is no read hold.
//
// ErrUnconfirmed means that Redis did not confirm, within the ReleaseTimeout, that the write hold
// has ended. The caller reads from then on, until RUnlock. Other readers join when Redis has been
// told, and the client goes on telling it. If somebody removed the write hold, there may have been
// a gap.
func (rw *RWLock) Downgrade(ctx context.Context) error {
	if err := rw.RLocker().bad(ctx); err != nil {
		return rw.RLocker().wrap(err)
	}
	h := rw.w.newest()
	if h == nil {
		return rw.w.wrap(fmt.Errorf("%w for writing by this handle", relock.ErrNotHeld))
	}
	if err := h.state(); err != nil {
		return rw.w.wrap(err)
	}
	w := &waiting{ctx: ctx, lock: rw.r, as: h.s.owner, mark: true}
	if h.s.named {
		w.owner = h.s.owner.key.name
	}
	err := w.gate()
	if err == nil {
		err = w.take()
	}
	switch {
	case ending.Is(err, relock.ErrNotAcquired):
		err = fmt.Errorf("%w: another owner holds it now", relock.ErrLost)
		h.missed(err, false)
	case err == nil:
		err = h.handOver(w.hold)
	}
	if err != nil {
		return rw.w.wrap(err)
	}
	return nil
}
