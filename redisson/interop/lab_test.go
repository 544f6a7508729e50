package interop_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/redisson"
)

// A lab is one Redis with Redisson's clients and ours.
type lab struct {
	*testing.T
	*driver
	addr    string
	setup   string // single or cluster, as Java is told
	connect func() redis.UniversalClient
	admin   redis.UniversalClient
	server  *redistest.RealServer // of a single one
}

// watchdog is the lease of Java's locks, and by default of ours.
const watchdog = 6 * time.Second

// fairWait is for how long a waiter of a fair lock may be silent, in Java and here.
const fairWait = 10 * time.Second

// onOneServer runs f with a single server.
func onOneServer(t *testing.T, f func(x *lab)) {
	j := startJVM(t)
	srv := redistest.Real(t)
	x := &lab{T: t, driver: j, addr: srv.Addr(), setup: "single", server: srv}
	x.connect = func() redis.UniversalClient { return srv.Client(t) }
	x.admin = srv.Client(t)
	f(x)
}

// onACluster runs f with a Cluster, where unlocks are told by sharded pub/sub.
func onACluster(t *testing.T, f func(x *lab)) {
	j := startJVM(t)
	cl := redistest.StartCluster(t)
	x := &lab{T: t, driver: j, addr: cl.Serving(0).Addr(), setup: "cluster"}
	x.connect = func() redis.UniversalClient { return cl.Client(t) }
	x.admin = cl.Client(t)
	f(x)
}

// everywhere runs f on one server and on a Cluster.
func everywhere(t *testing.T, f func(x *lab)) {
	t.Run("server", func(t *testing.T) { onOneServer(t, f) })
	t.Run("cluster", func(t *testing.T) { onACluster(t, f) })
}

// java opens a client of Redisson's.
func (x *lab) java(name string) string {
	x.Helper()
	x.tell(name, 0, "open", x.setup, x.addr, watchdog.Milliseconds(), fairWait.Milliseconds()).ok()
	return name
}

// golang opens a client of ours.
func (x *lab) golang() *redisson.Client {
	x.Helper()
	return x.over(x.connect())
}

// linked opens a client of ours whose network can be cut.
func (x *lab) linked() (*redisson.Client, *redistest.Link) {
	x.Helper()
	link := redistest.NewLink(x, x.server.Dial)
	return x.over(x.server.Client(x, func(o *redis.Options) { o.Dialer = link.Dial })), link
}

func (x *lab) over(rdb redis.UniversalClient) *redisson.Client {
	x.Helper()
	c, err := redisson.New(rdb, redisson.Defaults(redisson.TTL(watchdog)), redisson.FairWait(fairWait), redisson.WatchdogTimeout(watchdog))
	must(x, err)
	x.Cleanup(func() { must(x, c.Close()) })
	return c
}

// handle returns our handle on a lock of one of Java's kinds.
func handle(c *redisson.Client, kind, name string, opts ...redisson.LockOption) *redisson.Lock {
	switch kind {
	case "fair":
		opts = append(opts, redisson.Fair())
	case "fenced":
		opts = append(opts, redisson.Fenced())
	case "read":
		return c.NewRWLock(name, opts...).RLocker()
	case "write":
		return c.NewRWLock(name, opts...).WLocker()
	}
	return c.NewLock(name, opts...)
}

// begin locks beside the test.
func begin(x *lab, l relock.Locker) chan error {
	done := make(chan error, 1)
	go func() { done <- l.Lock(x.Context()) }()
	return done
}

// within fails unless done comes by then, and returns after how long it did.
func within(x *lab, d time.Duration, what string, done <-chan error) {
	x.Helper()
	select {
	case err := <-done:
		if err != nil {
			x.Fatalf("%s: %v", what, err)
		}
	case <-time.After(d):
		x.Fatalf("%s has not happened within %v", what, d)
	}
}
