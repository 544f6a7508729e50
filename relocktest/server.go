package relocktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/seam"
)

// dialsEnd is the longest time that go-redis' dials outlive its Close.
const dialsEnd = 10 * time.Second

// A Server is a Redis in the memory of one test. Each client that Server.Client and Server.Redis return has a network
// of its own, which Server.Partition and Server.Outage affect. Methods that cannot do what they say fail the test, so
// call them from the test's goroutine.
type Server struct {
	t       testing.TB
	redis   *redistest.Server
	virtual bool           // the Server is in a bubble
	other   *relock.Client // uses no network, so no fault affects it

	mu     sync.Mutex                // protects following fields
	eyes   map[string]*relock.Client // look at locks of other key prefixes than that of other
	links  []network
	faults []*fault // that still last and affect all clients
	ends   []func() // of all faults, also those that have ended
}

// A network is the connection of one client to the server.
type network struct {
	client *relock.Client // nil: the client was returned by Redis
	link   *redistest.Link
}

// New starts a Server, a Redis in the memory of the test, and ends it with the test. It listens on no port:
// Server.Client and Server.Redis make its clients. In a bubble of synctest, t must be that of the bubble, and leases
// and waits take the bubble's time. If the environment has RELOCK_TEST_VIRTUAL=0, as some runs of relock's own tests
// do, New skips the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, virtual: redistest.InBubble()}
	if s.virtual {
		t.Cleanup(func() { time.Sleep(dialsEnd) })
	}
	s.redis = redistest.Start(t)
	s.other = s.open(s.redis.Client(t))
	s.eyes = map[string]*relock.Client{}
	return s
}

// Client returns a new client of the Server, as another process would have, with a network of its own. It is closed
// when the test ends. A bad option fails the test and ends it. relock.ShardedPubSub and relock.Replicas do not work on
// a Server. Hold and Lose are about locks with the default relock.KeyPrefix.
func (s *Server) Client(opts ...relock.Option) *relock.Client {
	s.t.Helper()
	rdb, link := s.dial()
	c := s.open(rdb, opts...)
	s.add(network{client: c, link: link})
	return c
}

// Redis returns a new go-redis client of the Server, for code that calls relock.New itself or keeps data there. It is
// closed when the test ends.
//
// In a bubble, prefer Server.Client. On Linux a client of relock.New also goes by the machine's real clock. It loses a
// hold if the test computes for a lease of real time.
func (s *Server) Redis() *redis.Client {
	s.t.Helper()
	rdb, link := s.dial()
	s.add(network{link: link})
	return rdb
}

// Other returns the client that Hold uses, the same each time. Server.Partition and Server.Outage do not affect it. Use
// it for what Hold cannot do: to read, to wait, to hold a semaphore.
func (s *Server) Other() *relock.Client { return s.other }

// dial returns a client with a network of its own.
func (s *Server) dial() (*redis.Client, *redistest.Link) {
	link := redistest.NewLink(s.t, s.redis.Dial)
	return s.redis.Client(s.t, func(o *redis.Options) { o.Dialer = link.Dial }), link
}

// add registers a network, and applies the faults to it that affect all clients.
func (s *Server) add(n network) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = append(s.links, n)
	for _, f := range s.faults {
		f.befall(n.link)
	}
}

// open returns a client that uses only the test's clock.
func (s *Server) open(rdb *redis.Client, opts ...relock.Option) *relock.Client {
	s.t.Helper()
	c, err := relock.New(rdb, opts...)
	if err != nil {
		s.t.Fatalf("relocktest: %v", err)
	}
	if s.virtual {
		seam.SetClock(c, clock.New(time.Now, nil))
	}
	s.t.Cleanup(func() {
		s.endFaults()
		_ = c.Close()
	})
	return c
}

// ctx returns the test's context without its end, for cleanups.
func (s *Server) ctx() context.Context { return context.WithoutCancel(s.t.Context()) }
