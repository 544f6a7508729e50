package relock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/quorum"
	"github.com/relock-go/relock/internal/transport"
)

// A Multi is several locks that are held together, all or none. It is a Locker, and goroutines may share it.
//
// The locks are taken one by one in the order of their keys, which is the same everywhere. So callers that each take
// one Multi never deadlock, whatever locks they share. A caller that already holds a lock or Multi, or takes single
// locks in another order, can deadlock. While it waits for a lock, a Multi holds those before it. The locks may be of
// several kinds, clients and servers. A branch (WithChildOwner) needs a Multi of its own: Unlock could end an
// ancestor's hold. With a reading side, or with semaphores only, each owner needs a Multi of its own too. Else calls
// may return ErrOwnerMismatch while the Multi has another owner's holds.
type Multi struct {
	locks []*Lock // in the order of their keys
	err   error   // why the locks cannot be held together; every call returns it

	register quorum.Register[*MultiHold] // holds of Lock and TryLock, ended by Unlock
}

var _ Locker = (*Multi)(nil)

// NewMulti returns a Locker over the locks, in any order. It does no I/O. The Multi's holds are on these handles: use
// the handles for nothing else. With no lock, with nil, or with one name twice, every call returns ErrInvalidOption.
// With a bad handle every call returns that handle's error.
func NewMulti(locks ...*Lock) *Multi {
	if err := together(locks); err != nil {
		return &Multi{err: err}
	}
	m := &Multi{locks: slices.Clone(locks)}
	m.register.Shared = !slices.ContainsFunc(locks, func(l *Lock) bool { return !l.read })
	slices.SortFunc(m.locks, func(a, b *Lock) int { return cmp.Compare(a.hash, b.hash) })
	return m
}

// usable returns the error of a Multi whose locks cannot be held together, or that was not made by NewMulti.
func (m *Multi) usable() error {
	if m == nil || m.err == nil && len(m.locks) == 0 {
		return fmt.Errorf("relock: %w: make a Multi with NewMulti, of at least one lock", ErrInvalidOption)
	}
	return m.err
}

// Lock waits until the caller holds all the locks. ctx bounds the wait, not the holds: if it ends first, Lock returns
// its error. If a lock is lost while the next one is waited for, Lock begins again. The other errors are those of
// Lock.Lock. If Lock fails, the caller has only what it held before.
func (m *Multi) Lock(ctx context.Context) error {
	return m.lock(ctx, func() (*MultiHold, error) { return m.Acquire(ctx) })
}

// TryLock is Lock for at most the given time, which is for all the locks together. It returns (false, nil) if one of
// them was taken. It returns an error if ctx ended or Redis did not answer. The errors are those of Lock.TryLock.
// Unless it returns true, the caller holds none. With a wait of zero or less it makes one attempt for each. To give
// back what it has taken, it may need a tenth of a second more.
func (m *Multi) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	return tryResult(m.lock(ctx, func() (*MultiHold, error) { return m.try(ctx, wait, manner{falseIfTaken: true}) }))
}

// lock acquires a hold that only Unlock can end. If several owners may hold at once, it refuses a call while the Multi
// has holds of another owner: Unlock could not tell them apart.
func (m *Multi) lock(ctx context.Context, acquire func() (*MultiHold, error)) error {
	if err := m.usable(); err != nil {
		return err
	}
	if owners, err := m.owners(ctx); err == nil && m.hasOthers(owners) {
		return errOthers
	}
	h, err := acquire()
	if err != nil {
		return err
	}
	if m.register.Add(h, true); m.hasOthers(h.owners()) && m.register.Remove(h) {
		h.giveBack(ctx)
		return errOthers
	}
	return nil
}

var errOthers = fmt.Errorf("relock: %w: the Multi has holds of another owner, and Unlock could not tell them apart; use a Multi for each owner", ErrOwnerMismatch)

// owners returns the owner of a call under ctx for each of the locks. "" means an anonymous call.
func (m *Multi) owners(ctx context.Context) ([]string, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	owners := make([]string, len(m.locks))
	for i, l := range m.locks {
		var err error
		if owners[i], err = ownerFor(ctx, l); err != nil {
			return nil, err
		}
	}
	return owners, nil
}

// hasOthers reports whether the oldest hold has other owners than these, if several owners may hold at once.
func (m *Multi) hasOthers(owners []string) bool {
	first := m.register.Oldest()
	return m.register.Shared && first != nil && !slices.Equal(first.owners(), owners)
}

// Unlock ends what one Lock or TryLock has taken, that is a hold of each lock. After several successes it ends a lost
// one first, else the newest. If all locks are reading sides or semaphores, it ends the oldest instead of the newest.
// Each success needs exactly one Unlock, even after a loss. Unlock returns ErrNotHeld if there is no hold, ErrLost if
// one of the locks was lost, and ErrUnconfirmed if Redis did not answer.
func (m *Multi) Unlock() error {
	if err := m.usable(); err != nil {
		return err
	}
	h, ok := m.register.Take()
	if !ok {
		return fmt.Errorf("relock: %w by this Multi", ErrNotHeld)
	}
	return h.releaseUnlessDetached()
}

// Acquire is Lock, but returns the holds as one MultiHold: it waits until the caller holds all the locks or ctx ends.
// The caller must end them with Release, even after a loss. If it fails, the caller holds none.
func (m *Multi) Acquire(ctx context.Context) (*MultiHold, error) {
	return m.acquire(ctx, func() error { return ending.Passed(ctx) }, func(l *Lock) (*Hold, error) { return l.acquire(ctx, manner{pending: true}) })
}

// TryAcquire is TryLock, but returns the holds as one MultiHold. The caller must end them with Release, even after a
// loss. If one of the locks was taken for the whole wait, the error is ErrNotAcquired. If Redis did not answer, it is
// ErrUnavailable, and if ctx ended first, ctx's error. The caller holds none then. With a wait of zero or less it makes
// one attempt for each.
func (m *Multi) TryAcquire(ctx context.Context, wait time.Duration) (*MultiHold, error) {
	return m.try(ctx, wait, manner{})
}

// try is TryAcquire. Each lock is tried for what is left of wait. A failed call may then take undoTime more.
func (m *Multi) try(ctx context.Context, wait time.Duration, how manner) (*MultiHold, error) {
	how.pending = true
	wait = max(wait, 0) // negative waits could overflow in the subtraction below
	began := time.Now()
	bounded := ctx
	if ctx != nil {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeoutCause(ctx, min(wait, math.MaxInt64-undoTime)+undoTime, waitError(wait))
		defer cancel()
	}
	over := func() error {
		if wait > 0 && time.Since(began) >= wait && ending.Passed(ctx) == nil {
			return fmt.Errorf("%w within %v", ErrNotAcquired, wait) // the last lock came too late
		}
		return ending.Passed(ctx)
	}
	return m.acquire(bounded, over, func(l *Lock) (*Hold, error) {
		left := wait - time.Since(began)
		switch {
		case wait == 0 || left > 0:
		case l == m.locks[0]:
			left = 1 // not 0, which is one attempt, and may take longer than the wait
		default:
			return nil, fmt.Errorf("relock: %w", over())
		}
		return l.try(ctx, left, how)
	})
}

// acquire takes all the locks, each by one(l). If a lock is lost while it waits for another, it starts again. If the
// time of the call has ended, over returns its error, and acquire gives back what it holds.
func (m *Multi) acquire(ctx context.Context, over func() error, one func(l *Lock) (*Hold, error)) (*MultiHold, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		h, err := m.attempt(ctx, one)
		if err != nil {
			return nil, err
		}
		err = over()
		if err == nil && h.Err() == nil {
			for _, hold := range h.holds {
				hold.markReturned(true)
			}
			return h, nil
		}
		h.giveBack(ctx)
		if err != nil {
			return nil, fmt.Errorf("relock: %w", err)
		}
		if !ending.Pause(ctx, nil, transport.Backoff(try)) {
			return nil, fmt.Errorf("relock: %w", endOfTries(ctx, ErrNotAcquired))
		}
	}
}

// attempt takes the locks one after the other. If it fails, it gives back what it has taken.
func (m *Multi) attempt(ctx context.Context, one func(l *Lock) (*Hold, error)) (*MultiHold, error) {
	h, whole := &MultiHold{}, false
	defer func() {
		if !whole { // failed, or a hook has panicked
			h.giveBack(ctx)
		}
	}()
	for _, l := range m.locks {
		hold, err := one(l)
		if err != nil {
			return nil, err
		}
		h.holds = append(h.holds, hold)
	}
	whole = true
	return h, nil
}

// Do is Lock.Do for all the locks together. fn's context ends when any of them is lost, with ErrLost as its cause.
func (m *Multi) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return during(ctx, m.Acquire, fn)
}

// TryDo is Lock.TryDo for all the locks together, and for one wait. If one of them was taken for the whole wait, it
// returns (false, nil). A wait of zero or less makes one attempt for each lock.
func (m *Multi) TryDo(ctx context.Context, wait time.Duration, fn func(ctx context.Context) error) (ran bool, err error) {
	return tryDuring(ctx, wait, func(ctx context.Context, wait time.Duration) (*MultiHold, error) {
		return m.try(ctx, wait, manner{falseIfTaken: true})
	}, fn)
}

// together returns why the locks cannot be held together, or nil. A Multi with one name twice would wait for itself.
// The same name on two servers is refused too, because Tokens has one entry for each name.
func together(locks []*Lock) error {
	seen := make(map[string]bool, len(locks))
	for _, l := range locks {
		switch {
		case l == nil || l.spec == nil:
			return fmt.Errorf("relock: %w: a lock of a Multi is nil or a zero value; make it with NewLock or NewRWLock", ErrInvalidOption)
		case l.err != nil:
			return lockError(l.Name(), l.err)
		case seen[l.Name()]:
			return lockError(l.Name(), fmt.Errorf("%w: a Multi has this name twice, and would wait for itself", ErrInvalidOption))
		}
		seen[l.Name()] = true
	}
	return nil
}

// undoTime is how long a failed try may take, after its wait, to give back what it holds.
const undoTime = 100 * time.Millisecond

// A MultiHold is one successful acquisition of a Multi: a hold of each of its locks. It is lost when the first of them
// is lost. The others are held until its Release, which it always needs. Its methods may be called from any goroutine.
type MultiHold struct {
	holds []*Hold // in the order of the locks' keys

	once sync.Once
	lost chan struct{} // made by the first call of Lost

	asked  sync.Once
	wanted chan struct{} // made by the first call of Wanted
}

// releaseUnlessDetached ends all the holds for Unlock and Do. Unlike Release, it ignores holds that Detach has ended.
func (h *MultiHold) releaseUnlessDetached() error { return h.endAll((*Hold).releaseUnlessDetached) }

// endAll ends all the holds at the same time. It looks for losses first. Otherwise the release of one hold
// could end the shared context before another hold finds its loss, and the cause would not be ErrLost.
func (h *MultiHold) endAll(end func(*Hold) error) error {
	_ = h.Err()
	return quorum.EndAll(h.holds, end)
}

// owners returns the owner of each of the holds. "" means an anonymous one.
func (h *MultiHold) owners() []string {
	owners := make([]string, len(h.holds))
	for i, hold := range h.holds {
		if a := hold.acquisition(); a.Named() {
			owners[i] = a.owner()
		}
	}
	return owners
}

func (h *MultiHold) unmade() bool { return h == nil || len(h.holds) == 0 }

// Release ends all the holds, and tells Redis of all of them at once. It returns nil if all were held until now.
// Otherwise it joins the error of each hold that was not: ErrLost, or ErrUnconfirmed if Redis did not answer. A second
// Release returns ErrNotHeld.
func (h *MultiHold) Release() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	return h.endAll((*Hold).Release)
}

// giveBack ends holds that no caller has seen. It waits for their releases until ctx ends.
func (h *MultiHold) giveBack(ctx context.Context) {
	released := make([]chan struct{}, len(h.holds))
	for i, hold := range h.holds {
		released[i] = make(chan struct{})
		if errors.Is(hold.judge(), ErrLost) { // now: a lost hold is in the way of its owner's next call
			_ = hold.releaseUnlessDetached()
			close(released[i])
			continue
		}
		left := hold.lock.c.leaving.Begin(hold.lock.hash)
		spawned := hold.lock.c.tracker.Go(func(context.Context) {
			defer close(released[i])
			defer left()
			_ = hold.releaseUnlessDetached()
		})
		if !spawned {
			left()
		}
	}
	for i, hold := range h.holds {
		select {
		case <-released[i]:
		case <-ctx.Done():
		case <-hold.lock.c.draining: // once the client ends, released may stay open
		}
	}
}

// Err returns nil while every hold is trusted, ErrLost once one was lost, and ErrNotHeld after the Release. It is
// judged by the clock at the call, and does no I/O.
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

// Lost returns a channel that is closed when the first of the holds is lost. It stays open if they are released before
// that. Every call returns the same channel. After a pause of the process it may be closed a moment late: Err is exact.
func (h *MultiHold) Lost() <-chan struct{} {
	if h.unmade() {
		return closed
	}
	h.once.Do(func() {
		h.lost = make(chan struct{})
		for _, hold := range h.holds { // first, because after the Release a context may have the cause of another hold
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

// Wanted returns a channel that is closed as soon as any one of the holds is wanted: see Hold.Wanted.
func (h *MultiHold) Wanted() <-chan struct{} {
	if h.unmade() {
		return nil
	}
	h.asked.Do(func() {
		h.wanted = make(chan struct{})
		want := sync.OnceFunc(func() { close(h.wanted) })
		for _, hold := range h.holds {
			hold.whenWanted(want)
		}
	})
	return h.wanted
}

// TrustedUntil returns the earliest TrustedUntil of the holds: until then nobody can be granted a hold that conflicts
// with one of them, unless somebody removes one or Redis loses it. Compare it with time.Now in this process. Each
// renewal moves it. It is the zero time once one is lost or released.
func (h *MultiHold) TrustedUntil() time.Time {
	if h.unmade() {
		return time.Time{}
	}
	untils := make([]time.Time, len(h.holds))
	for i, hold := range h.holds {
		untils[i] = hold.TrustedUntil()
	}
	return quorum.Trust(len(untils), untils)
}

// Context returns a context that ends when one of the holds is lost, when they are released, or when parent ends. After
// a loss its cause is ErrLost, and after a release ErrNotHeld. It has the values of parent.
func (h *MultiHold) Context(parent context.Context) context.Context {
	if h.unmade() {
		return endedContext(parent, errUnmadeHold)
	}
	for _, hold := range h.holds {
		parent = hold.Context(parent)
	}
	return parent
}

// Tokens returns the fencing token of each hold, by the name of its lock. Compare a token with those of the same name
// only. NewMulti refuses two locks of one name. The map is the caller's.
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
