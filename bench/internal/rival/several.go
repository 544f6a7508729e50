package rival

import (
	"errors"
	"math"
	"strings"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// Those below open a list of addresses, divided by commas.

// RelockMulti is a Multi of three names.
func RelockMulti() Rival {
	return Rival{
		Name:     "relock Multi of 3",
		Settings: "three names on one server",
		Open: func(addr string, s Setup) (Client, error) {
			c, rdb, err := OpenRelock(addr, s)
			if err != nil {
				return nil, err
			}
			return &client{rdb: rdb, shut: c.Close, lock: func(name string) Lock {
				return relock.NewMulti(c.NewLock(name+"/a"), c.NewLock(name+"/b"), c.NewLock(name+"/c"))
			}}, nil
		},
	}
}

// RelockQuorum is a QuorumLock.
func RelockQuorum() Rival {
	return Rival{
		Name:     "relock Quorum",
		Settings: "of three servers",
		Open: func(addrs string, s Setup) (Client, error) {
			all := &clients{}
			var of []*relock.Client
			for addr := range strings.SplitSeq(addrs, ",") {
				c, rdb, err := OpenRelock(addr, s)
				if err != nil {
					return nil, errors.Join(err, all.Close())
				}
				of = append(of, c)
				all.shut = append(all.shut, c.Close, rdb.Close)
			}
			q, err := relock.NewQuorum(of...)
			if err != nil {
				return nil, errors.Join(err, all.Close())
			}
			all.lock = func(name string) Lock { return q.NewLock(name) }
			return all, nil
		},
	}
}

// RedsyncQuorum is github.com/go-redsync/redsync/v4 with a pool for each server.
func RedsyncQuorum() Rival {
	return Rival{
		Name:     "redsync, Redlock",
		Settings: "a pool for each of three servers, `WithRetryDelay(1ms)`, tries without limit; its lease is not renewed",
		Open: func(addrs string, s Setup) (Client, error) {
			all := &clients{}
			var pools []redsyncredis.Pool
			for addr := range strings.SplitSeq(addrs, ",") {
				rdb := redis.NewClient(&redis.Options{Addr: addr})
				pools = append(pools, goredis.NewPool(rdb))
				all.shut = append(all.shut, rdb.Close)
			}
			rs := redsync.New(pools...)
			all.lock = func(name string) Lock {
				return &redsyncLock{m: rs.NewMutex(name, redsync.WithExpiry(s.TTL), redsync.WithTries(math.MaxInt32), redsync.WithRetryDelay(Poll))}
			}
			return all, nil
		},
	}
}

// clients is a Client of several servers.
type clients struct {
	lock func(name string) Lock
	shut []func() error
}

func (c *clients) Lock(name string) Lock { return c.lock(name) }

func (c *clients) Close() (err error) {
	for _, shut := range c.shut {
		err = errors.Join(err, shut())
	}
	return err
}
