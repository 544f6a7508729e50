package rival

import (
	"github.com/relock-go/relock/redisson"
)

// RelockAsRedisson is the lock of package redisson, in Redisson's layout.
func RelockAsRedisson() Rival {
	return shared("relock in Redisson's layout", "package redisson: defaults")
}

// RelockAsRedissonFair is its fair lock.
func RelockAsRedissonFair() Rival {
	return shared("relock Fair() in Redisson's layout", "package redisson: `Fair()`", redisson.Fair())
}

func shared(name, settings string, opts ...redisson.LockOption) Rival {
	return Rival{
		Name:     name,
		Settings: settings,
		Open: func(addr string, s Setup) (Client, error) {
			rdb := dial(addr)
			c, err := redisson.New(rdb, redisson.Defaults(redisson.TTL(s.TTL)))
			if err != nil {
				return nil, err
			}
			return &client{rdb: rdb, shut: c.Close, lock: func(name string) Lock { return c.NewLock(name, opts...) }}, nil
		},
	}
}

// Redisson is a lock of Redisson's own. It runs in a JVM, which measures it there: it has
// no Open.
func Redisson() Rival {
	return Rival{Name: "Redisson (Java)", Settings: "`getLock`; its defaults; in a JVM of its own, warm"}
}

// RedissonFair is its fair lock.
func RedissonFair() Rival {
	return Rival{Name: "Redisson (Java), fair", Settings: "`getFairLock`; its defaults; in a JVM of its own, warm"}
}
