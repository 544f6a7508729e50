// Package rival puts every measured lock behind one interface.
package rival

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Poll is the pause between tries of the locks that wait by polling. The shorter
// it is the sooner they notice; time.Sleep does not go much below.
const Poll = time.Millisecond

// A Rival is one way to lock.
type Rival struct {
	Name     string
	Settings string // for the report
	// Sends names the commands of which every call comes from the network, beside
	// those that no script can call. MONITOR is what a test compares the sum with.
	Sends []string
	// Floor marks what excludes nobody, and shows the cost of the network alone.
	Floor bool
	Open  func(addr string, s Setup) (Client, error)
}

// Setup is what a workload asks of a client.
type Setup struct {
	TTL     time.Duration
	Renewed func(name string) // called for each renewal, where the library can tell
}

// A Client is what one process would have: connections and locks of its own.
type Client interface {
	// Lock returns a handle for one goroutine.
	Lock(name string) Lock
	Close() error
}

// A Lock waits until it holds. Unlock is called once for each success.
type Lock interface {
	Lock(ctx context.Context) error
	Unlock() error
}

// All are the locks that can wait, and the floor.
func All() []Rival {
	return []Rival{Relock(), RelockFair(), Redislock(), Redsync(), Rueidislock(), ByHand(), Ping()}
}

// client is a Client on a go-redis client of its own.
type client struct {
	rdb  *redis.Client
	lock func(name string) Lock
	shut func() error // before rdb closes; may be nil
}

func (c *client) Lock(name string) Lock { return c.lock(name) }

func (c *client) Close() error {
	var err error
	if c.shut != nil {
		err = c.shut()
	}
	return errors.Join(err, c.rdb.Close())
}

// dial makes the go-redis client that all but rueidislock use here, with its defaults.
func dial(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

// sleep waits for the next try, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
