package relock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
)

// A Lock is a handle on the exclusive, reentrant lock of one name, on one side of a read/write
// lock, or on a semaphore. Any number of handles, in any number of processes, stand for the same
// lock. A handle costs nothing, and goroutines may share it.
//
// Without an owner, each acquisition excludes every other, as with sync.Mutex. That includes one by
// the same goroutine or through the same handle. Named owners (Owner, WithOwner) re-enter: each of
// their holds needs its own Unlock, in any order.
//
// In one process, the next holder sees after Lock what a holder wrote before Unlock, as with a sync.Mutex. Between
// processes only the order is guaranteed.
type Lock struct {
	*spec
	hash string // its key, of which the name and the other key are made; a bad name as it is

	mu    sync.Mutex // guards the following fields; taken before a room's mu
	holds holdList   // not yet unlocked
}

// Lock waits until the caller holds the lock. ctx bounds the wait, not the hold: if ctx ends
// first, Lock returns its error. A ctx that is done at the call fails even if the lock is free.
//
// A handle of an exclusive lock has the holds of one grant at a time. If a hold of the handle is lost, Lock waits
// until that hold has been unlocked. The owner whose hold it was gets ErrLost at once. Redis may grant the lock
// again before the loss is known here. Then the older hold is lost at that instant, and the new grant goes to the
// next waiter. So an Unlock never ends the hold of a later grant. Other handles do not wait: goroutines that must
// not wait for each other's Unlock need a handle each.
func (l *Lock) Lock(ctx context.Context) error {
	_, err := l.acquire(ctx, manner{unlock: true})
	return err
}

// TryLock is Lock for at most the given time. It returns (false, nil) if the lock was taken the
// whole time: Redis said so at least once, or another hold of this client shows it.
//
// An error means that ctx ended, or that nobody knows: Redis did not answer once within the wait,
// or answered with an error. It is ErrLost if a lost hold of the handle must be unlocked first.
//
// With a wait of zero or less it makes one attempt, which takes a third of the TTL, but no longer than 2 s. With
// Replicas it may take their timeout and a twelfth of the TTL. With a very short TTL it may take 100 ms.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	_, err := l.try(ctx, wait, manner{unlock: true, quiet: true})
	return had(err)
}

// Acquire is Lock, but returns the hold. The caller must end it with Release.
func (l *Lock) Acquire(ctx context.Context) (*Hold, error) {
	return l.acquire(ctx, manner{})
}

// TryAcquire is TryLock, but returns the hold, or ErrNotAcquired. The caller must end the hold with
// Release.
func (l *Lock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	return l.try(ctx, wait, manner{})
}

// A manner is how a call asks.
type manner struct {
	once   bool // one attempt, no waiting
	quiet  bool // that the lock is taken is no error of the call
	unlock bool // Unlock is to end the hold: nobody has it to Release
}

func (l *Lock) try(ctx context.Context, wait time.Duration, m manner) (*Hold, error) {
	m.once = wait <= 0
	if ctx == nil || l.unmade() {
		return l.acquire(ctx, m) // which says so
	}
	limit := wait
	if wait <= 0 {
		limit = l.terms.Attempt()
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, waitError(max(wait, 0)))
	defer cancel()
	return l.acquire(bounded, m)
}

func (l *Lock) acquire(ctx context.Context, m manner) (*Hold, error) {
	owner, err := l.enter(ctx)
	if err == nil {
		var h *Hold
		if l.terms.Local && owner != "" {
			if h = l.nest(owner, m.unlock); h != nil {
				err = l.keep(h, func() error { h.acquiredHook(ctx, instant{}); return nil })
				return h, err
			}
		}
		if h, err = l.obtain(ctx, owner, m); err == nil {
			return h, nil
		}
	}
	return nil, lockError(l.Name(), err)
}

// enter checks all that can be said without Redis, and says who locks.
func (l *Lock) enter(ctx context.Context) (owner string, err error) {
	if err := l.bad(); err != nil {
		return "", err
	}
	if ctx == nil {
		return "", errNoContext
	}
	if ctx.Err() != nil {
		return "", unasked(ctx)
	}
	if owner, err = l.ownerFor(ctx); err != nil {
		return "", err
	}
	return owner, l.waitsForItself(ctx, owner)
}

// Unlock ends one hold of this handle: a lost one first, else the newest. Of a reading side or
// a semaphore, on which several grants hold at once, it is the oldest. Unlock ends a hold that
// Acquire returned or Do has only if there is no other. Each success of Lock needs exactly one
// Unlock, also after a loss. Unlock returns ErrNotHeld if there is no hold, ErrLost if the hold
// was lost before, and ErrUnconfirmed if Redis did not answer within the ReleaseTimeout.
//
// If the handle has no hold but one whose owner waits on a condition, Unlock returns ErrNotHeld,
// and that hold has ended: the wait returns without it.
func (l *Lock) Unlock() error {
	if err := l.bad(); err != nil {
		return lockError(l.Name(), err)
	}
	if l.terms.Local {
		if h := l.unnest(); h != nil {
			h.releasedHook(nil, l.c.clock.Now())
			return nil
		}
	}
	l.mu.Lock()
	if l.holds.tally != nil { // of several, a lost one goes first
		l.mu.Unlock()
		l.judge()
		l.mu.Lock()
	}
	h := l.next()
	if h == nil {
		h = l.nextAbsent()
	}
	if h == nil {
		l.mu.Unlock()
		return lockError(l.Name(), fmt.Errorf("%w by this handle", ErrNotHeld))
	}
	l.remove(h)
	l.holds.rejoin(h)
	l.mu.Unlock()
	if err := h.end(); err != nil {
		return lockError(l.Name(), err)
	}
	return nil
}

// Do runs fn while it holds the lock. fn's context ends when the hold is lost, with ErrLost as its
// cause. It names the same owner as ctx, or none. Do returns fn's error joined with that of the
// release, which is always ErrLost after a loss. If fn panics or calls runtime.Goexit, Do releases
// the lock and the panic goes on.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return during(ctx, l.Acquire, fn)
}

// TryDo is Do for at most the given wait. ran says whether fn ran.
func (l *Lock) TryDo(ctx context.Context, wait time.Duration, fn func(ctx context.Context) error) (ran bool, err error) {
	return tryDuring(ctx, wait, func(ctx context.Context, wait time.Duration) (*Hold, error) {
		return l.try(ctx, wait, manner{quiet: true})
	}, fn)
}

// had says whether the call has got what it wanted that made one try: that it was taken
// all the time is no error.
func had(err error) (bool, error) {
	if ending.Is(err, ErrNotAcquired) {
		return false, nil
	}
	return err == nil, err
}

// A held is a hold of one lock, of several or of a majority.
type held interface {
	Context(parent context.Context) context.Context
	leave() error
}

// errNoFunction is returned before the lock is asked for: a nil function would panic while the lock is held.
var errNoFunction = fmt.Errorf("relock: %w: the function to run under the lock is nil", ErrInvalidOption)

// during is Do of a Lock, a Multi or a QuorumLock.
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

// tryDuring is TryDo of a Lock, a Multi or a QuorumLock.
func tryDuring[H held](ctx context.Context, wait time.Duration, try func(context.Context, time.Duration) (H, error), fn func(ctx context.Context) error) (ran bool, err error) {
	if fn == nil {
		return false, errNoFunction
	}
	h, err := try(ctx, wait)
	if err != nil {
		return had(err)
	}
	return true, under(ctx, h, fn)
}

func under(ctx context.Context, h held, fn func(ctx context.Context) error) (err error) {
	defer func() { err = errors.Join(err, h.leave()) }()
	return fn(h.Context(ctx))
}

// Name returns the lock's name.
func (l *Lock) Name() string {
	switch {
	case l.unmade():
		return ""
	case l.err != nil:
		return l.hash
	}
	return key.Name(l.c.cfg.prefix, l.hash)
}

// HoldCount returns the number of live holds of this handle, judged by the clock.
func (l *Lock) HoldCount() int { return l.judge() }

// Token returns the fencing token of the newest hold of this handle that is not yet unlocked, or 0.
func (l *Lock) Token() int64 {
	if h := l.newest(); h != nil {
		return h.token()
	}
	return 0
}

// Lost returns the Lost channel of the newest hold of this handle that is not yet unlocked, or nil.
func (l *Lock) Lost() <-chan struct{} {
	if h := l.newest(); h != nil {
		return h.Lost()
	}
	return nil
}

func (l *Lock) newest() *Hold {
	if l.unmade() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds.newest()
}

// SyncLocker returns the lock as a sync.Locker. Each of its Lock calls has a new owner, whatever
// ctx or the handle say, so goroutines that share the Locker exclude each other. Lock panics if it
// fails, also when ctx ends. Unlock panics on ErrNotHeld and ErrLost.
//
// A Cond of NewCond does not know the owners of a SyncLocker, so its calls need a lock that was
// taken by Lock or Acquire. No context ends with such a hold: to learn of a loss, use Acquire and
// Hold.Lost.
func (l *Lock) SyncLocker(ctx context.Context) sync.Locker {
	if l.unmade() {
		return &syncLocker{ctx: ctx, lock: l}
	}
	own := *l.spec
	own.anonymous = true
	return &syncLocker{ctx: ctx, lock: &Lock{spec: &own, hash: l.hash}}
}

type syncLocker struct {
	ctx  context.Context // sync.Locker leaves no other place for it
	lock *Lock
}

func (s *syncLocker) Lock() {
	if err := s.lock.Lock(s.ctx); err != nil {
		panic(err)
	}
}

func (s *syncLocker) Unlock() {
	if err := s.lock.Unlock(); errors.Is(err, ErrNotHeld) {
		panic(err)
	}
}
