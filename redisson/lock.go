package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/trust"
)

// A Lock is a handle on the lock of one name, or on one side of a read/write lock. Any
// number of handles, in Go and in Java, stand for the same lock. Without an owner, each
// acquisition excludes every other; named owners (relock.WithOwner, Owner) re-enter what
// they hold in this client, to at most 1000 holds at a time: the next is refused with
// ErrTooManyHolds.
type Lock struct {
	c     *Client
	name  string
	names names
	kind  kind
	terms terms
	err   error // a bad name or option: what every call returns

	// Guarded by the client's mu:

	holds []*Hold       // not yet unlocked
	freed chan struct{} // closed when one of these goes; nil: nobody waits for it
}

var _ relock.Locker = (*Lock)(nil)

// NewLock returns a handle on the lock of that name: Redisson's getLock, with Fair its getFairLock,
// with Fenced its getFencedLock. It does no I/O. A bad name or option makes every call fail. A name
// must be used for one kind of lock only.
func (c *Client) NewLock(name string, opts ...LockOption) *Lock {
	return c.newLock(name, plain, opts)
}

func (c *Client) newLock(name string, k kind, opts []LockOption) *Lock {
	l := &Lock{c: c, name: name, names: namesOf(name), kind: k}
	if c == nil || c.transport == nil {
		l.c = nil
		return l
	}
	if l.err = checkName(name); l.err != nil {
		return l
	}
	l.terms, l.err = c.cfg.terms.with(opts)
	switch {
	case k.rw() && (l.terms.fair || l.terms.fenced):
		l.err = fmt.Errorf("%w: Fair or Fenced of a read/write lock: Redisson has neither", relock.ErrInvalidOption)
	case l.terms.fair:
		l.kind = fair
	case l.terms.fenced:
		l.kind = fenced
	case k == reading && l.err == nil:
		l.terms, l.err = l.terms.toRead(c.cfg.readLease)
	}
	return l
}

// unmade says that no client has made the lock: it is nil or a zero value.
func (l *Lock) unmade() bool { return l == nil || l.c == nil }

// wrap puts the lock's name before what happened to it.
func (l *Lock) wrap(err error) error {
	if l == nil || l.name == "" && l.c == nil {
		return fmt.Errorf("redisson: %w", err)
	}
	return fmt.Errorf("redisson: lock %s: %w", key.Quote(l.name), err)
}

// Lock waits until the caller holds the lock. ctx bounds the wait, not the hold: if ctx ends
// first, Lock returns its error. If a hold of the handle is lost, Lock waits until that hold has
// been unlocked. If Redis grants the lock again before the loss is known here, as after a
// ForceUnlock, the older hold is lost at that instant. So no Unlock ends a later grant's hold.
func (l *Lock) Lock(ctx context.Context) error {
	_, err := l.acquire(ctx, &waiting{mark: true})
	return err
}

// TryLock is Lock for at most the given time; with a wait of zero or less it makes one
// attempt. It returns (false, nil) when Redis has said that the lock is taken.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	_, err := l.try(ctx, wait, &waiting{mark: true})
	if ending.Is(err, relock.ErrNotAcquired) {
		return false, nil
	}
	return err == nil, err
}

// Acquire is Lock, but returns the hold. The caller must end it with Release.
func (l *Lock) Acquire(ctx context.Context) (*Hold, error) { return l.acquire(ctx, &waiting{}) }

// TryAcquire is TryLock, but returns the hold, or ErrNotAcquired.
func (l *Lock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	return l.try(ctx, wait, &waiting{})
}

var (
	errWait    = errors.New("wait is over")
	errBadLock = fmt.Errorf("%w: the lock or client was not made by New and NewLock", relock.ErrInvalidOption)
)

func (l *Lock) try(ctx context.Context, wait time.Duration, w *waiting) (*Hold, error) {
	if ctx == nil || l.unmade() {
		return l.acquire(ctx, w) // which says so
	}
	w.once = wait <= 0
	if w.once {
		wait = 2 * trust.Attempt(max(l.terms.ttl, time.Second))
	}
	bounded, cancel := context.WithTimeoutCause(ctx, wait, errWait)
	defer cancel()
	h, err := l.acquire(bounded, w)
	if err != nil && w.taken && ctx.Err() == nil && errors.Is(context.Cause(bounded), errWait) && !errors.Is(err, relock.ErrLost) {
		return nil, l.wrap(fmt.Errorf("%w within %v", relock.ErrNotAcquired, wait))
	}
	return h, err
}

func (l *Lock) acquire(ctx context.Context, w *waiting) (*Hold, error) {
	owner, err := l.enter(ctx)
	if err == nil {
		w.ctx, w.lock, w.owner = ctx, l, owner
		for again := true; again && err == nil; {
			if err = w.gate(); err == nil {
				err = w.take()
			}
			if again = err == nil && w.occupied; again {
				w.giveBack()
			}
		}
		if err == nil {
			err = w.inTime()
		}
	}
	if err != nil {
		return nil, l.wrap(err)
	}
	return w.hold, nil
}

// inTime gives back a hold that came after the call's context or wait had ended, and returns
// that error.
func (w *waiting) inTime() error {
	if !ending.Passed(w.ctx) {
		return nil
	}
	if w.once && errors.Is(context.Cause(w.ctx), errWait) {
		return nil // one attempt has no wait that could be over
	}
	w.hold.giveBack()
	return ending.Of(w.ctx)
}

// take obtains a hold in a session.
func (w *waiting) take() (err error) {
	c := w.lock.c
	if w.s, err = c.session(w); err != nil {
		return err
	}
	err = w.obtain()
	if w.s != nil {
		c.leave(w.s)
	}
	return err
}

// drop takes a hold off the handle. It needs the client's mu.
func (l *Lock) drop(h *Hold) {
	l.holds = slices.DeleteFunc(l.holds, func(other *Hold) bool { return other == h })
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}

// judge judges the holds of the handle by the clock, and returns how many are live.
func (l *Lock) judge() (live int) {
	if l.unmade() {
		return 0
	}
	l.c.mu.Lock()
	now := l.c.clock.Now()
	var todo []func()
	for _, h := range l.holds {
		err, lost := h.judge(now)
		todo = append(todo, lost...)
		if err == nil {
			live++
		}
	}
	l.c.mu.Unlock()
	run(todo)
	return live
}

// Unlock ends one hold of this handle: a lost one first, else the newest, or the oldest of a
// reading side that several owners hold. It ends a hold that Acquire returned or Do has only if
// there is no other. Each success of Lock needs exactly one Unlock, also after a loss.
func (l *Lock) Unlock() error {
	if err := l.bad(context.Background()); err != nil {
		return l.wrap(err)
	}
	h := l.next()
	if h == nil {
		return l.wrap(fmt.Errorf("%w by this handle", relock.ErrNotHeld))
	}
	if err := h.end(); err != nil {
		return l.wrap(err)
	}
	return nil
}

// next takes the hold off that an Unlock is for, or returns nil.
func (l *Lock) next() (found *Hold) {
	l.judge()
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	best := -1
	order := slices.Backward(l.holds)
	if slices.ContainsFunc(l.holds, func(h *Hold) bool { return h.s != l.holds[0].s }) {
		order = slices.All(l.holds) // of readers the oldest: losses that are not known yet are older than the latest hold
	}
	for _, h := range order {
		rank := 0
		if h.lost != nil {
			rank = 1
		}
		if h.unlock {
			rank += 2
		}
		if rank > best {
			best, found = rank, h
		}
	}
	if found != nil {
		l.drop(found)
	}
	return found
}

// Do runs fn while it holds the lock. fn's context ends when the hold is lost, with ErrLost as its
// cause. Do returns fn's error joined with that of the release, which is always ErrLost after a
// loss. If fn panics or calls runtime.Goexit, Do releases the lock and the panic goes on.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	if fn == nil {
		return fmt.Errorf("redisson: %w: the function to run under the lock is nil", relock.ErrInvalidOption)
	}
	h, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Release()) }()
	return fn(h.Context(ctx))
}

// Name returns the lock's name.
func (l *Lock) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}

// HoldCount returns how many holds of this handle are live, judged by the clock.
func (l *Lock) HoldCount() int { return l.judge() }

func (l *Lock) newest() *Hold {
	if l.unmade() {
		return nil
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if len(l.holds) == 0 {
		return nil
	}
	return l.holds[len(l.holds)-1]
}

// Token returns the fencing token of the newest hold of this handle that is not yet
// unlocked; 0 without one, and of a lock that is not Fenced.
func (l *Lock) Token() int64 {
	if h := l.newest(); h != nil {
		return h.token
	}
	return 0
}

// Lost returns the Lost channel of the newest hold of this handle that is not yet
// unlocked, or nil.
func (l *Lock) Lost() <-chan struct{} {
	if h := l.newest(); h != nil {
		return h.Lost()
	}
	return nil
}
