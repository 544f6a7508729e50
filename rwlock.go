package relock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// An RWLock is a handle on the read/write lock of one name: any number of readers share it, or one
// owner writes. It is a Locker for writing.
//
// Both sides are reentrant for a named owner. A writer may also read. An owner that only reads
// cannot write, and gets ErrUpgrade at once, because two such owners would wait for each other. An
// owner that reads may read again past waiting writers. Other readers wait behind a writer at the
// head of the queue, so that writers are not starved. Readers that are next to each other in the
// queue are let in together.
//
// Each hold has its own lease: a dead reader stops blocking writers when its lease ends. Locking
// both sides, as in a downgrade by Lock, RLock, Unlock, needs a named owner. Anonymous holds
// exclude each other: such a call returns ErrDeadlock or ErrUpgrade if its context shows the other
// hold, or waits.
//
// Anonymous read holds of one handle are alike: RUnlock cannot tell which goroutine calls it.
// RUnlock ends a lost hold first, else the oldest. So the first caller is told of a loss, and the
// goroutine that lost its hold may get nil. Until all of them have called RUnlock, as many holds
// live as there are callers whose hold was not lost. A goroutine that must know of its own loss
// should use RLocker().Acquire or Do, or a handle of its own.
//
// Write tokens and read tokens come from one counter. A fenced resource must advance its largest
// token on write tokens only: readers overlap, and the token of one does not make that of another
// stale.
type RWLock struct {
	w, r *Lock
}

var _ Locker = (*RWLock)(nil)

// NewRWLock returns a handle on the read/write lock of that name. It does no I/O. A bad name or
// option makes every call on the handle fail.
func (c *Client) NewRWLock(name string, opts ...LockOption) *RWLock {
	s := c.newSpec(name, wire.KindRW, wire.KindFairRW, opts)
	w := c.newLock(name, c.shared(specWrite, s))
	s.read = true
	return &RWLock{w: w, r: &Lock{spec: c.shared(specRead, s), hash: w.hash}}
}

// Lock waits until the caller holds the lock for writing, like Lock.Lock.
func (rw *RWLock) Lock(ctx context.Context) error { return rw.WLocker().Lock(ctx) }

// TryLock is Lock for at most the given time, like Lock.TryLock.
func (rw *RWLock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.WLocker().TryLock(ctx, wait)
}

// Unlock ends one hold for writing, like Lock.Unlock. If its owner still reads, other readers join
// it.
func (rw *RWLock) Unlock() error { return rw.WLocker().Unlock() }

// RLock waits until the caller holds the lock for reading. The read holds of one handle must all
// have one named owner, or all have none. Otherwise RLock returns ErrOwnerMismatch.
func (rw *RWLock) RLock(ctx context.Context) error { return rw.RLocker().Lock(ctx) }

// TryRLock is RLock for at most the given time, like Lock.TryLock.
func (rw *RWLock) TryRLock(ctx context.Context, wait time.Duration) (bool, error) {
	return rw.RLocker().TryLock(ctx, wait)
}

// RUnlock ends one hold for reading, like Lock.Unlock: a lost one first, else the oldest.
func (rw *RWLock) RUnlock() error { return rw.RLocker().Unlock() }

// RLocker returns the reading side as a Lock.
func (rw *RWLock) RLocker() *Lock {
	if rw == nil {
		return nil // whose methods say what is wrong
	}
	return rw.r
}

// WLocker returns the writing side as a Lock.
func (rw *RWLock) WLocker() *Lock {
	if rw == nil {
		return nil
	}
	return rw.w
}

// Downgrade makes the newest write hold of this handle a read hold, which RUnlock ends. There is no
// gap: no writer comes between. Waiting readers may join if it was the last write hold of its
// owner.
//
// It returns ErrNotHeld if there is no write hold, and ErrLost if it was lost. It returns
// ErrOwnerMismatch if the handle has read holds of another owner, lost ones included.
// ErrUnconfirmed means that Redis did not answer until ctx ended, or refused: the hold is a read
// hold from now on, and the client goes on telling Redis.
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
		if err == nil {
			return nil
		}
		if err != errTaken { //nolint:errorlint // made here, never wrapped
			return lockError(w.Name(), err)
		}
	}
}

// errTaken says that an Unlock or Downgrade of the same handle came first.
var errTaken = errors.New("another call has taken the hold")

// downgrade moves the hold to the reading side, then tells Redis: what has been
// asked for once may come true at any time, and a read hold is true either way.
func (h *Hold) downgrade(ctx context.Context, rw *RWLock) error {
	a := h.acquisition()
	switch err := a.takeTurn(ctx); {
	case ending.Is(err, ErrClosed):
		return h.judge() // lost
	case err != nil:
		return ending.Of(ctx)
	}
	x := &ledger.Wish{}
	if err := h.move(rw, x); err != nil {
		return err
	}
	_, err := a.tell(ctx, x, false)
	a.keeper.mu.Lock()
	a.Session.Ledger.Withdraw(x)
	a.keeper.mu.Unlock()
	switch {
	case err == nil:
		return nil
	case ending.Is(err, errGone):
		return h.judge()
	case transport.Hopeless(err):
		return fmt.Errorf("%w, and will not be: the hold is a read hold now, which the next renewal tells redis: %w", ErrUnconfirmed, err)
	}
	a.tellApart()
	return fmt.Errorf("%w: the hold is a read hold now, and the client goes on telling redis: %w", ErrUnconfirmed, err)
}

// move takes the hold from the writing side to the reading one, for Redis to be told
// of it. The caller has the session's turn, which it gives back. The handle's list
// decides between calls that want the same hold: one finds it there.
func (h *Hold) move(rw *RWLock, x *ledger.Wish) (err error) {
	defer func() { <-h.acquisition().turn.place }() // also where a hook does not return
	lost := h.judge()
	if !rw.w.take(h) {
		return errTaken
	}
	if err = lost; err == nil {
		err = rw.r.adopt(h)
	}
	if err != nil {
		rw.w.put(h) // its Unlock is still to come
		return err
	}
	k := h.keeper()
	k.mu.Lock()
	if err = h.state(); err == nil {
		h.extra().moved = rw.r
		h.hold.Downgrade(x)
	}
	k.mu.Unlock()
	switch {
	case errors.Is(err, ErrLost):
		rw.r.detach(h)
		rw.w.put(h)
	case err != nil: // its Release came first
		rw.r.detach(h)
	case h.peek() == ErrNotHeld: //nolint:errorlint // made here, never wrapped
		rw.r.detach(h) // its Release came meanwhile, and may have looked for it before it was there
	}
	return err
}

// take takes a hold off the handle, and reports whether it was there.
func (l *Lock) take(h *Hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remove(h)
}

// put puts a hold back that take took.
func (l *Lock) put(h *Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restore(h)
}

// restore puts back a hold that was taken off for a while, unless it is there, or has ended
// since: who ends it looks for it after that, and one of the two sees the other. It needs l.mu.
func (l *Lock) restore(h *Hold) {
	l.holds.rejoin(h)
	if h.in.Load() == nil {
		l.holds.add(h)
	}
	if h.peek() == ErrNotHeld { //nolint:errorlint // made here, never wrapped
		l.remove(h)
	}
}

// unlist takes the hold off its handle, and off the reading side that a downgrade has moved it to.
func (h *Hold) unlist() {
	h.lock.detach(h)
	if side := h.downgraded(); side != nil {
		side.detach(h)
	}
}

// stayOff takes a hold that has ended off its handle, where a wait of its owner has put it back since its end began.
func (h *Hold) stayOff() {
	if h.in.Load() != nil {
		h.unlist()
	}
}

// adopt adds a hold to the reading side, whose holds are of one named owner, or
// all of none: also those that are lost and not unlocked yet.
func (l *Lock) adopt(h *Hold) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	owner := ""
	if h.acquisition().Named() {
		owner = h.acquisition().owner()
	}
	if _, err := l.occupied(owner, h, h.unlock); err != nil {
		return err
	}
	l.holds.add(h)
	return nil
}
