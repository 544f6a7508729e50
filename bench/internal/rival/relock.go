package rival

import (
	"github.com/relock-go/relock"
)

// Relock is the plain lock.
func Relock() Rival { return ours("relock", "defaults") }

// RelockFair is the lock with Fair().
func RelockFair() Rival { return ours("relock Fair()", "`Fair()`", relock.Fair()) }

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
