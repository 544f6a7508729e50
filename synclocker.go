package relock

import (
	"context"
	"errors"
)

// A syncLocker is a Lock as a sync.Locker.
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
