package relocktest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/ending"
)

// A Fake is a relock.Locker without a Redis, for code that takes the interface. Like a relock.Lock without an owner it
// is not reentrant: one caller holds it, and the others wait, at most until their context ends. Its zero value is free.
// In a bubble of synctest, make it in that bubble. Do not copy it. Its methods may be called from any goroutine.
type Fake struct {
	once sync.Once
	free chan struct{} // has one element while the lock is free

	mu    sync.Mutex // protects following fields
	fails error
	held  bool // by a caller of Lock or TryLock
	lost  bool
	locks int
}

var _ relock.Locker = (*Fake)(nil)

func (f *Fake) place() chan struct{} {
	f.once.Do(func() {
		f.free = make(chan struct{}, 1)
		f.free <- struct{}{}
	})
	return f.free
}

// Lock waits until the lock is free, and takes it. It returns ctx's error if ctx ends before that. A call that begins
// after Fake.Fail returns that error. A lost lock is free only after its Unlock.
func (f *Fake) Lock(ctx context.Context) error {
	if err := f.enter(ctx); err != nil {
		return err
	}
	select {
	case <-f.place():
		return f.take(ctx)
	case <-ctx.Done():
		return ending.Of(ctx)
	}
}

// TryLock waits for at most wait, and returns true if the caller holds the lock. If another hold is there for the whole
// wait, it returns (false, nil), or ErrLost if that hold is lost and not yet unlocked. With a wait of zero or less it
// makes one attempt. If ctx ends first, it returns ctx's error. After Fake.Fail new calls return that error.
func (f *Fake) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	if err := f.enter(ctx); err != nil {
		return false, err
	}
	select {
	case <-f.place():
		err := f.take(ctx)
		return err == nil, err
	default:
	}
	if wait <= 0 {
		return false, f.inTheWay()
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case <-f.place():
		err := f.take(ctx)
		return err == nil, err
	case <-over.C:
		return false, f.inTheWay()
	case <-ctx.Done():
		return false, ending.Of(ctx)
	}
}

// Unlock frees the lock that a Lock or TryLock took. It returns relock.ErrLost after Fake.Lose, and relock.ErrNotHeld
// if no call of Lock or TryLock holds. It does not end a Fake.Hold.
func (f *Fake) Unlock() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.held {
		return relock.ErrNotHeld
	}
	lost := f.lost
	f.held, f.lost = false, false
	f.place() <- struct{}{}
	if lost {
		return relock.ErrLost
	}
	return nil
}

// Hold makes somebody else hold the lock, until release is called. It blocks until the lock is free. From then until
// the release Lock waits, and TryLock and Held return false. A second release does nothing.
func (f *Fake) Hold() (release func()) {
	<-f.place()
	return sync.OnceFunc(func() { f.place() <- struct{}{} })
}

// Lose makes the hold of a Lock or TryLock a lost one, and reports whether there was such a hold. The holder learns of
// it from Unlock, which returns relock.ErrLost. Until then Held is true, and nobody else gets the lock.
func (f *Fake) Lose() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = f.held
	return f.held
}

// Fail makes calls of Lock and TryLock return err, as it is, from now on. For a Redis that does not answer, pass
// relock.ErrUnavailable. nil makes them work again. Calls that already wait are not changed, and neither is Unlock.
func (f *Fake) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = err
}

// Held reports whether a hold of Lock or TryLock is not yet unlocked. A lost one counts, and a Fake.Hold does not.
func (f *Fake) Held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held
}

// Locks returns how many calls of Lock and TryLock have succeeded since the Fake was made. Unlock does not lower it.
func (f *Fake) Locks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.locks
}

// enter returns an error if the call fails before it waits.
func (f *Fake) enter(ctx context.Context) error {
	switch {
	case ctx == nil:
		return fmt.Errorf("relock: %w: the context is nil; pass context.Background()", relock.ErrInvalidOption)
	case ctx.Err() != nil:
		return ending.Of(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fails
}

// inTheWay returns why a TryLock did not get the lock: nil, or that the lock was lost and is not unlocked
// yet.
func (f *Fake) inTheWay() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		return fmt.Errorf("%w; a hold that is not unlocked yet", relock.ErrLost)
	}
	return nil
}

// take records that a caller has got the lock, or frees it if ctx has ended by now.
func (f *Fake) take(ctx context.Context) error {
	if err := ending.Passed(ctx); err != nil {
		f.place() <- struct{}{}
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
	f.locks++
	return nil
}
