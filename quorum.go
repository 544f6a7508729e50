package relock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/transport"
)

// A Quorum makes locks that are held on a majority of independent primaries, so that
// the failure of any minority of them costs nobody a lock. docs/guarantees.md says what
// that buys, and what not: pauses, clocks, and primaries that restart at once without
// their data.
type Quorum struct {
	clients []*Client
	need    int // a majority
}

// NewQuorum returns a Quorum of one client for each primary. It does no I/O; the clients
// stay the caller's, to be closed. Fewer than two, nil, or one client twice is
// ErrInvalidOption. All processes are to name the primaries in the same order.
func NewQuorum(clients ...*Client) (*Quorum, error) {
	for i, c := range clients {
		if c.unmade() || slices.Contains(clients[:i], c) {
			return nil, fmt.Errorf("relock: %w: client %d of a Quorum is nil, a zero value, or there twice", ErrInvalidOption, i)
		}
	}
	if len(clients) < 2 {
		return nil, fmt.Errorf("relock: %w: a Quorum of %d; it needs two clients, and outlives no failure with fewer than three", ErrInvalidOption, len(clients))
	}
	return &Quorum{slices.Clone(clients), len(clients)/2 + 1}, nil
}

// A QuorumLock is a handle on the exclusive lock of one name on a majority of primaries.
// It is a Locker, with what a Lock has. A named owner re-enters.
//
// Hooks of the clients tell of each primary, on goroutines of their own.
type QuorumLock struct {
	name    string
	members []*Lock // one for each primary, in the order in which contenders take them
	need    int

	mu    sync.Mutex    // guards the following field; nothing is called under it
	holds []*QuorumHold // not released
}

var _ Locker = (*QuorumLock)(nil)

// NewLock returns a handle like Client.NewLock. On each primary the lock is a fair one.
func (q *Quorum) NewLock(name string, opts ...LockOption) *QuorumLock {
	l := &QuorumLock{name: name}
	if q != nil {
		l.need = q.need
		for _, c := range q.clients {
			l.members = append(l.members, c.NewLock(name, slices.Concat(opts, []LockOption{Fair(), apart})...))
		}
	}
	return l
}

// apart has a primary's grant be of one hold: what that has raised the counter to is not of
// the lock's own tokens, which a next hold would have.
var apart = lockOption(func(t *terms) error {
	t.Apart = true
	return nil
})

func (l *QuorumLock) usable() error {
	if l == nil || len(l.members) == 0 {
		return fmt.Errorf("relock: %w: make a QuorumLock with NewQuorum and NewLock", ErrInvalidOption)
	}
	if err := l.members[0].bad(); err != nil {
		return lockError(l.name, err)
	}
	return nil
}

// Lock waits until the caller holds the lock on a majority. ctx bounds the wait, not the hold.
func (l *QuorumLock) Lock(ctx context.Context) error {
	_, err := l.acquire(ctx, manner{unlock: true})
	return err
}

// TryLock is Lock for at most the given time. It returns (false, nil) when a majority of
// the primaries has answered, and says that the lock is taken; where too few answer,
// that is an error. With a wait of zero or less it makes one attempt.
func (l *QuorumLock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	_, err := l.try(ctx, wait, manner{unlock: true})
	if errors.Is(err, ErrNotAcquired) {
		return false, nil
	}
	return err == nil, err
}

// Unlock ends what one Lock or TryLock has taken: what was lost first, else the newest.
func (l *QuorumLock) Unlock() error {
	if err := l.usable(); err != nil {
		return err
	}
	var next *QuorumHold
	best := 0
	for _, h := range l.live() { // what Acquire has returned, only where there is no other
		rank := 1
		if h.unlock {
			rank = 3
		}
		if h.judge() != nil {
			rank++
		}
		if rank >= best {
			next, best = h, rank
		}
	}
	if next == nil {
		return lockError(l.name, fmt.Errorf("%w by this handle", ErrNotHeld))
	}
	return next.Release()
}

// Acquire is Lock, but returns the hold, which is to be ended by its Release.
func (l *QuorumLock) Acquire(ctx context.Context) (*QuorumHold, error) {
	return l.acquire(ctx, manner{})
}

// TryAcquire is TryLock, but returns the hold, or ErrNotAcquired.
func (l *QuorumLock) TryAcquire(ctx context.Context, wait time.Duration) (*QuorumHold, error) {
	return l.try(ctx, wait, manner{})
}

func (l *QuorumLock) try(ctx context.Context, wait time.Duration, m manner) (*QuorumHold, error) {
	m.once = wait <= 0
	if ctx == nil || m.once {
		return l.acquire(ctx, m)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, wait, waitError(wait))
	defer cancel()
	return l.acquire(bounded, m)
}

// Do runs fn while it holds the lock, like Lock.Do.
func (l *QuorumLock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	h, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	return h.do(ctx, fn)
}

// TryDo is Do for a lock that is to be had within wait; ran says whether fn ran.
func (l *QuorumLock) TryDo(ctx context.Context, wait time.Duration, fn func(ctx context.Context) error) (ran bool, err error) {
	h, err := l.TryAcquire(ctx, wait)
	if errors.Is(err, ErrNotAcquired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, h.do(ctx, fn)
}

// Name returns the lock's name.
func (l *QuorumLock) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}

// live are the holds that are not released, the oldest first.
func (l *QuorumLock) live() []*QuorumHold {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.holds)
}

func (l *QuorumLock) newest() *QuorumHold {
	if all := l.live(); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// HoldCount returns how many holds of this handle are live, judged by the clock.
func (l *QuorumLock) HoldCount() (n int) {
	for _, h := range l.live() {
		if h.judge() == nil {
			n++
		}
	}
	return n
}

// Token returns the fencing token of the newest hold of this handle, or 0.
func (l *QuorumLock) Token() int64 { return l.newest().Token() }

// Lost returns the Lost channel of the newest hold of this handle, or nil.
func (l *QuorumLock) Lost() <-chan struct{} {
	if h := l.newest(); h != nil {
		return h.Lost()
	}
	return nil
}

// patience is how long to wait for a primary that may not answer, or may be taken by
// somebody who waits for another: then all is given back.
func (l *QuorumLock) patience() time.Duration {
	return min(max(l.members[0].terms.TTL/6, 100*time.Millisecond), 500*time.Millisecond)
}

// acquire asks until a majority is had.
func (l *QuorumLock) acquire(ctx context.Context, m manner) (*QuorumHold, error) {
	switch err := l.usable(); {
	case err != nil:
		return nil, err
	case ctx == nil:
		return nil, lockError(l.name, fmt.Errorf("%w: the context is nil; pass context.Background()", ErrInvalidOption))
	}
	if err := l.waitsForItself(ctx); err != nil {
		return nil, lockError(l.name, err)
	}
	for try := 1; ; try++ {
		h, err := l.attempt(ctx, m)
		if err == nil {
			return h, nil
		}
		final := m.once || !errors.Is(err, ErrNotAcquired) && !errors.Is(err, errFewAnswer)
		if !final && ctx.Err() == nil && transport.Pause(ctx, nil, transport.Backoff(min(try, 5))) {
			continue
		}
		return nil, lockError(l.name, l.explain(ctx, err))
	}
}

// errFewAnswer is why nobody has the lock: a majority of the primaries is not there.
var errFewAnswer = errors.New("too few primaries answer")

// explain is what a call returns whose last attempt has failed.
func (l *QuorumLock) explain(ctx context.Context, err error) error {
	wait, bounded := errors.AsType[waitError](context.Cause(ctx))
	switch {
	case ctx.Err() == nil:
		return err
	case bounded && errors.Is(err, ErrNotAcquired):
		return fmt.Errorf("%w within %v", ErrNotAcquired, time.Duration(wait))
	case bounded:
		return err
	case errors.Is(err, ctx.Err()):
		return ended(ctx)
	}
	return fmt.Errorf("%w; until then: %w", ended(ctx), err)
}

// unasked is the error of a context that had ended before anybody was asked.
func (l *QuorumLock) unasked(ctx context.Context) error {
	if wait, over := errors.AsType[waitError](context.Cause(ctx)); over {
		return unanswered(time.Duration(wait))
	}
	return ended(ctx)
}

// isFinal says that asking again would get the same answer.
func isFinal(err error) bool {
	for _, one := range []error{ErrClosed, ErrKind, ErrDeadlock, ErrUpgrade, ErrOwnerMismatch, ErrInvalidOption, ErrInvalidName, ErrTooManyHolds} {
		if errors.Is(err, one) {
			return true
		}
	}
	return err != nil && transport.Hopeless(err)
}

// signal fills a channel of one place.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
