package relock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/transport"
)

// A Multi is several locks that are held together: all of them, or none. It is a
// Locker, and may be shared by goroutines.
//
// The locks are taken one after the other in the order of their keys, which is the
// same in every process. So Multis never wait for each other in a circle, whatever
// locks they share; a caller who holds one of the locks already, or takes single
// locks in an order of its own, is not protected by that. While it waits for one
// lock it holds those before it. The locks may be of several kinds and of several
// clients, also on servers of their own.
type Multi struct {
	locks []*Lock // in the order of their keys
	err   error   // the locks do not go together: what every call returns

	mu    sync.Mutex   // guards the following field; nothing is called under it
	holds []*MultiHold // made by Lock and TryLock, to be ended by Unlock
}

var _ Locker = (*Multi)(nil)

// NewMulti returns a Locker over the locks. It does no I/O. With no lock, with nil,
// with a bad handle, or with one name twice, every call returns ErrInvalidOption or
// the error of that handle.
func NewMulti(locks ...*Lock) *Multi {
	if err := together(locks); err != nil {
		return &Multi{err: err}
	}
	m := &Multi{locks: slices.Clone(locks)}
	slices.SortFunc(m.locks, func(a, b *Lock) int { return cmp.Compare(a.hash, b.hash) })
	return m
}

// usable is the error of a Multi that was not made of locks that go together.
func (m *Multi) usable() error {
	if m == nil || m.err == nil && len(m.locks) == 0 {
		return fmt.Errorf("relock: %w: make a Multi with NewMulti, of at least one lock", ErrInvalidOption)
	}
	return m.err
}

// together says why the locks cannot be held together. One name twice would wait
// for itself; that of two servers counts as the same, so that tokens have a name each.
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

// Lock waits until the caller holds all the locks. ctx bounds the wait, not the
// holds. When it fails, none is held.
func (m *Multi) Lock(ctx context.Context) error {
	h, err := m.Acquire(ctx)
	m.keep(h)
	return err
}

// TryLock is Lock for at most the given time, which is for all the locks together.
// It returns (false, nil) when one of them was not to be had within it. With a wait
// of zero or less it makes one attempt for each.
func (m *Multi) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	h, err := m.TryAcquire(ctx, wait)
	if errors.Is(err, ErrNotAcquired) {
		return false, nil
	}
	m.keep(h)
	return err == nil, err
}

func (m *Multi) keep(h *MultiHold) {
	if h != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.holds = append(m.holds, h)
	}
}

// Unlock ends what one Lock or TryLock has taken: what was lost first, else the
// newest. Each success needs exactly one, also after a loss. It returns ErrNotHeld
// when there is none, and otherwise what MultiHold.Release does.
func (m *Multi) Unlock() error {
	if err := m.usable(); err != nil {
		return err
	}
	h := m.next()
	if h == nil {
		return fmt.Errorf("relock: %w by this Multi", ErrNotHeld)
	}
	return h.Release()
}

// next takes the hold off the Multi that an Unlock is for; nil: there is none.
func (m *Multi) next() *MultiHold {
	m.mu.Lock()
	holds := slices.Clone(m.holds)
	m.mu.Unlock()
	for _, h := range holds {
		_ = h.Err() // finds losses, and calls hooks for them: not under m.mu
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.holds, (*MultiHold).broken)
	if i < 0 {
		i = len(m.holds) - 1
	}
	if i < 0 {
		return nil
	}
	h := m.holds[i]
	m.holds = slices.Delete(m.holds, i, i+1)
	return h
}

// Acquire is Lock, but returns the holds, which are to be ended by their Release.
func (m *Multi) Acquire(ctx context.Context) (*MultiHold, error) {
	return m.acquire(ctx, func(l *Lock) (*Hold, error) { return l.Acquire(ctx) })
}

// TryAcquire is TryLock, but returns the holds, which are to be ended by their
// Release, or ErrNotAcquired.
func (m *Multi) TryAcquire(ctx context.Context, wait time.Duration) (*MultiHold, error) {
	began := time.Now()
	return m.acquire(ctx, func(l *Lock) (*Hold, error) { return l.TryAcquire(ctx, wait-time.Since(began)) })
}

// acquire asks anew when a lock was lost while the next was waited for: what is
// not held whole is not a result.
func (m *Multi) acquire(ctx context.Context, one func(l *Lock) (*Hold, error)) (*MultiHold, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		h, err := m.attempt(ctx, one)
		if err != nil || h.Err() == nil {
			return h, err
		}
		h.giveBack(ctx)
		transport.Pause(ctx, nil, transport.Backoff(try)) // its end is the next attempt's error
	}
}

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

// Do runs fn while it holds all the locks, like Lock.Do.
func (m *Multi) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	h, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	return h.do(ctx, fn)
}

// TryDo is Do for locks that are all to be had within wait; ran says whether fn ran.
func (m *Multi) TryDo(ctx context.Context, wait time.Duration, fn func(ctx context.Context) error) (ran bool, err error) {
	h, err := m.TryAcquire(ctx, wait)
	if errors.Is(err, ErrNotAcquired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, h.do(ctx, fn)
}
