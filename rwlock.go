package relock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// An RWLock is a handle on the read/write lock of one name: any number of readers share it, or one owner writes. As a
// Locker it locks for writing. Goroutines may share it.
//
// Both sides are reentrant for a named owner. A writer may also read. An owner that only reads cannot write, and gets
// ErrUpgrade at once, because two such owners would wait for each other. An owner that reads may read again ahead of
// waiting writers: otherwise it would wait for itself. If many flows of one owner have read holds that overlap without
// end, writers wait for ever: give each flow an owner. Other readers wait behind a writer at the head of the queue, so
// that writers are not starved. Readers that are next to each other in the queue are let in together.
//
// Each hold has its own lease: a dead reader stops blocking writers when its lease ends. Locking both sides, as in a
// downgrade by Lock, RLock, Unlock, needs a named owner. Without one, the second call waits for the first hold, or
// returns ErrDeadlock or ErrUpgrade if its context descends from that hold.
//
// Anonymous read holds of one handle are alike: RUnlock cannot tell which goroutine calls it. RUnlock ends a lost hold
// first, else the oldest. So the first caller is told of a loss, and the goroutine that lost its hold may get nil.
// Nobody reads unprotected because of that. If a goroutine never calls RUnlock, one hold stays. A goroutine that must
// know of its own loss should use RLocker().Acquire or Do, or a handle of its own.
//
// Write tokens and read tokens come from one counter. A fenced resource must advance its largest token on write tokens
// only: readers overlap, and the token of one does not make that of another stale.
type RWLock struct {
	w, r *Lock
}

var _ Locker = (*RWLock)(nil)

// Lock waits until the caller holds the lock for writing, with no other owner reading or writing. ctx bounds the wait:
// if it ends first, Lock returns ctx's error. An owner that only reads gets ErrUpgrade at once. See also Lock.Lock.
func (rw *RWLock) Lock(ctx context.Context) error { return rw.WLocker().Lock(ctx) }

// TryLock is Lock for at most the given time, and takes the lock for writing. It returns (false, nil) if the lock was
// taken the whole time, and an error if ctx ended or Redis did not answer. The errors are Lock.TryLock's. A wait of
// zero or less makes one attempt.
func (rw *RWLock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.WLocker().TryLock(ctx, wait)
}

// Unlock ends one hold for writing of this handle: a lost one first, else the newest. It returns nil, ErrLost,
// ErrNotHeld or ErrUnconfirmed, as Lock.Unlock does: test for ErrLost before ErrNotHeld. If the owner has no other
// write hold and still reads, waiting readers are let in beside that owner.
func (rw *RWLock) Unlock() error {
	return orOther(rw.WLocker().Unlock(), rw.RLocker(), "reading: call RUnlock")
}

// RLock waits until the caller holds the lock for reading, beside other readers. It waits while a writer holds, and
// behind a writer that waits. An owner that already holds does not wait behind writers. ctx bounds the wait: if it ends
// first, RLock returns ctx's error. The read holds of one handle must all have one named owner, or all have none.
// Otherwise RLock returns ErrOwnerMismatch. The other errors are Lock.Lock's.
func (rw *RWLock) RLock(ctx context.Context) error { return rw.RLocker().Lock(ctx) }

// TryRLock is RLock for at most the given time. It returns (false, nil) if the lock was taken the whole time: a writer
// held it or waited for it. It returns an error if ctx ended or Redis did not answer: the errors are Lock.TryLock's. A
// wait of zero or less makes one attempt.
func (rw *RWLock) TryRLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.RLocker().TryLock(ctx, wait)
}

// RUnlock ends one hold for reading of this handle: a lost one first, else the newest, or the oldest if holds of
// several grants are on the handle. Each anonymous hold has its own grant. Each success of RLock and TryRLock needs one
// RUnlock. It returns nil, ErrLost, ErrNotHeld or ErrUnconfirmed, as Lock.Unlock does: test for ErrLost first.
func (rw *RWLock) RUnlock() error {
	return orOther(rw.RLocker().Unlock(), rw.WLocker(), "writing: call Unlock")
}

// orOther adds to an ErrNotHeld of one side that the other side has a hold, and what to do.
func orOther(err error, other *Lock, advice string) error {
	if errors.Is(err, errNoHold) && other.HoldCount() > 0 {
		return fmt.Errorf("%w, which holds for %s", err, advice)
	}
	return err
}

// RLocker returns the reading side as a Lock, which also has Acquire, Do, Token and Lost. It is the same Lock each
// time: its Lock and Unlock are RLock and RUnlock.
func (rw *RWLock) RLocker() *Lock {
	if rw == nil {
		return nil // the methods of a nil Lock return ErrInvalidOption
	}
	return rw.r
}

// WLocker returns the writing side as a Lock, which also has Acquire, Do, Token and Lost. It is the same Lock each
// time: its Lock and Unlock are those of the RWLock.
func (rw *RWLock) WLocker() *Lock {
	if rw == nil {
		return nil
	}
	return rw.w
}

// Downgrade turns the newest write hold of this handle into a read hold, even if Acquire or Do took it. RUnlock or the
// hold's own Release ends the read hold. No writer gets the lock in between. If it was the last write hold of its
// owner, waiting readers may join, and branches (WithChildOwner) that write through it lose their holds: wait for them
// first. Only ctx bounds the call: give it a deadline.
//
// It returns ErrNotHeld if there is no write hold, and ErrLost if the hold was lost: the hold still needs its Unlock.
// It returns ErrOwnerMismatch if the handle has read holds of another owner, lost ones included: RUnlock could not tell
// them apart. If ctx ends before the change, it returns ctx's error. In these cases nothing changes. One ErrLost is
// different: if Redis' answer is the first to show the loss, the hold needs RUnlock, and Unlock returns ErrNotHeld.
// ErrUnconfirmed, perhaps with ctx's error, means that Redis did not answer before ctx ended, or refused. The hold is a
// read hold then, and the client goes on telling Redis: after a refusal, only with the next renewal.
func (rw *RWLock) Downgrade(ctx context.Context) error {
	w := rw.WLocker()
	if err := cmp.Or(w.bad(), unusable(ctx)); err != nil {
		return lockError(w.Name(), err)
	}
	for {
		h := w.newest()
		if h == nil {
			return lockError(w.Name(), fmt.Errorf("%w for writing by this handle", ErrNotHeld))
		}
		err := h.downgrade(ctx, rw)
		if err != errHoldTaken { //nolint:errorlint // made here, never wrapped
			return lockError(w.Name(), err)
		}
	}
}

// errHoldTaken says that an Unlock or Downgrade of the same handle took the hold first.
var errHoldTaken = errors.New("another call has taken the hold")
