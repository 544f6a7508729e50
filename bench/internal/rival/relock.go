package rival

import (
	"context"

	"github.com/relock-go/relock"
)

// Relock is the plain lock.
func Relock() Rival { return ours("relock", "defaults") }

// RelockFair is the lock with Fair().
func RelockFair() Rival {
	return ours("relock Fair()", "`Fair()`", relock.Fair())
}

func ours(name, settings string, opts ...relock.LockOption) Rival {
	return Rival{
		Name:     name,
		Settings: settings,
		Open: func(addr string, s Setup) (Client, error) {
			c, rdb, err := OpenRelock(addr, s)
			if err != nil {
				return nil, err
			}
			return &client{rdb: rdb, shut: c.Close, lock: func(name string) Lock { return c.NewLock(name, opts...) }}, nil
		},
	}
}

// RelockSemaphore is a semaphore of which a lock uses two permits of five.
func RelockSemaphore() Rival {
	return Rival{
		Name:     "relock semaphore",
		Settings: "5 permits, `Weight(2)`",
		Open: func(addr string, s Setup) (Client, error) {
			c, rdb, err := OpenRelock(addr, s)
			if err != nil {
				return nil, err
			}
			return &client{rdb: rdb, shut: c.Close, lock: func(name string) Lock { return c.NewSemaphore(name, 5, relock.Weight(2)) }}, nil
		},
	}
}

// A CondLock has a condition.
type CondLock interface {
	Lock
	Wait(ctx context.Context) error
	Signal(ctx context.Context) error
}

// RelockCond is the fair lock with a condition.
func RelockCond() Rival {
	return Rival{
		Name:     "relock Cond",
		Settings: "a condition of a lock with `Fair()`",
		Open: func(addr string, s Setup) (Client, error) {
			c, rdb, err := OpenRelock(addr, s)
			if err != nil {
				return nil, err
			}
			return &client{rdb: rdb, shut: c.Close, lock: func(name string) Lock {
				l := c.NewLock(name, relock.Fair())
				return awaited{l, l.NewCond("c")}
			}}, nil
		},
	}
}

type awaited struct {
	locker
	*relock.Cond
}

// locker is Lock by a name that is none of its methods'.
type locker = Lock

// A ReadLock has another side, for reading; the lock itself is for writing.
type ReadLock interface{ Reading() Lock }

// RelockRW is the read/write lock.
func RelockRW() Rival {
	return Rival{
		Name:     "relock RWLock",
		Settings: "defaults",
		Open: func(addr string, s Setup) (Client, error) {
			c, rdb, err := OpenRelock(addr, s)
			if err != nil {
				return nil, err
			}
			return &client{rdb: rdb, shut: c.Close, lock: func(name string) Lock { return both{c.NewRWLock(name)} }}, nil
		},
	}
}

type both struct{ rw *relock.RWLock }

func (b both) Lock(ctx context.Context) error { return b.rw.Lock(ctx) }
func (b both) Unlock() error                  { return b.rw.Unlock() }
func (b both) Reading() Lock                  { return b.rw.RLocker() }
