package relock

import (
	"context"
	"errors"
)

// A syncLocker is a Lock as a sync.Locker.
type syncLocker struct {
	ctx  context.Context // of each wait; the methods of a sync.Locker take no context
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
