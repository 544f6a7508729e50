package redisson

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/ending"
)

// An RWLock is a handle on the read/write lock of one name, Redisson's getReadWriteLock. As a relock.Locker it locks
// for writing.
//
// Readers share it, or one owner writes. A writer may also read. An owner that only reads cannot
// write, and gets ErrUpgrade. Readers overtake waiting writers, because the layout has no queue.
// The lease of a read hold is bounded by the WatchdogTimeout.
type RWLock struct{ w, r *Lock }

var _ relock.Locker = (*RWLock)(nil)

// Lock waits until the caller holds the lock for writing, with no other owner reading or writing. ctx bounds the wait:
// if it ends first, Lock returns its error. An owner that only reads gets ErrUpgrade at once. Other errors are
// Lock.Lock's.
func (rw *RWLock) Lock(ctx context.Context) error { return rw.WLocker().Lock(ctx) }

// TryLock is Lock, but waits for at most the given time. It returns (false, nil) once Redis has said that the lock is
// taken, and an error if ctx ended or Redis never answered. The errors are Lock.TryLock's. A wait of zero or less makes
// one attempt.
func (rw *RWLock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.WLocker().TryLock(ctx, wait)
}

// Unlock ends one hold for writing of this handle: a lost one first, else the newest. It returns nil, ErrLost,
// ErrNotHeld or ErrUnconfirmed, as Lock.Unlock does: test for ErrLost before ErrNotHeld. If that was its owner's last
// write hold, and the owner still reads, waiting readers can join it. Each success needs exactly one Unlock, even after
// a loss.
func (rw *RWLock) Unlock() error { return rw.WLocker().Unlock() }

// RLock waits until the caller holds the lock for reading, beside other readers. It waits while another owner writes,
// and overtakes writers that wait. An owner that writes may read too. ctx bounds the wait: if it ends first, RLock
// returns its error. The holds that one handle has by RLock and TryRLock must all have one named owner, or all have
// none. Otherwise RLock returns ErrOwnerMismatch. The other errors are Lock.Lock's.
func (rw *RWLock) RLock(ctx context.Context) error { return rw.RLocker().Lock(ctx) }

// TryRLock is RLock, but waits for at most the given time. It returns (false, nil) once Redis has said that another
// owner writes, and an error if ctx ended or Redis never answered. The errors are Lock.TryLock's. A wait of zero or
// less makes one attempt.
func (rw *RWLock) TryRLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.RLocker().TryLock(ctx, wait)
}

// RUnlock ends one hold for reading of this handle: a lost one first, else the newest, or the oldest if several owners
// hold through it. Each anonymous acquisition counts as an owner. Each success of RLock and TryRLock needs one RUnlock.
// It returns nil, ErrLost, ErrNotHeld or ErrUnconfirmed, as Lock.Unlock does: test for ErrLost before ErrNotHeld.
func (rw *RWLock) RUnlock() error { return rw.RLocker().Unlock() }

// RLocker returns the reading side as a Lock, which also has Acquire, Do and Lost. It is the same Lock each time. Its
// methods Lock and Unlock are RLock and RUnlock.
func (rw *RWLock) RLocker() *Lock {
	if rw == nil {
		return nil // the methods of a nil Lock return an error
	}
	return rw.r
}

// WLocker returns the writing side as a Lock, which also has Acquire, Do and Lost. It is the same Lock each time: its
// Lock and Unlock are those of the RWLock.
func (rw *RWLock) WLocker() *Lock {
	if rw == nil {
		return nil // the methods of a nil Lock return an error
	}
	return rw.w
}

// Downgrade makes the newest write hold of this handle a read hold, which RUnlock ends. For a hold of Acquire or Do,
// the Release or Do then returns ErrNotHeld. There is no gap, unless somebody removes the write hold: the owner reads
// before it stops writing. Waiting readers may join if that was the owner's last write hold. Downgrade returns
// ErrNotHeld if there is no write hold, and ErrLost if the write hold was lost. Then there is no read hold, and the
// lost hold must still be unlocked. With another error, such as ctx's, the hold stays a write hold. That error is
// ErrOwnerMismatch if the handle has read holds of another owner.
//
// ErrUnconfirmed is the exception. It means that Redis did not confirm, within the ReleaseTimeout, that the write hold
// has ended. The caller reads from then on, until RUnlock. Other readers join when Redis has been told, and the client
// goes on telling it, after a refusal with each renewal of the read hold. If Close interrupts that, the error is
// ErrClosed too: the write hold has ended, and the read hold is lost but still needs its RUnlock.
func (rw *RWLock) Downgrade(ctx context.Context) error {
	if err := rw.RLocker().unusable(ctx); err != nil {
		return rw.RLocker().wrap(err)
	}
	h := rw.w.newest()
	if h == nil {
		return rw.w.wrap(fmt.Errorf("%w for writing by this handle", relock.ErrNotHeld))
	}
	if err := h.state(); err != nil {
		return rw.w.wrap(err)
	}
	return rw.downgrade(ctx, h)
}

// downgrade is Downgrade of that hold, which may end meanwhile.
func (rw *RWLock) downgrade(ctx context.Context, h *Hold) error {
	w := &waiting{ctx: ctx, lock: rw.r, downgraded: h.s.owner, unlock: true}
	if h.s.named {
		w.owner = h.s.owner.key.name
	}
	err := w.grant()
	switch {
	case ending.Is(err, relock.ErrNotAcquired):
		err = fmt.Errorf("%w: another owner holds it now", relock.ErrLost)
		h.missed(err, false)
	case err == nil:
		err = h.endForReader(w.hold)
	}
	if err != nil {
		return rw.w.wrap(err)
	}
	return nil
}
