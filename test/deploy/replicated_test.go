package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// redisClient is what New takes.
type redisClient = redis.UniversalClient

// replicated is a deployment that survives its primary.
type replicated struct {
	rdb      func(t testing.TB) redisClient
	primary  func(name string) *redistest.RealServer // of a lock
	replicas func(name string) []*redistest.RealServer
	promoted func(name string, old *redistest.RealServer) *redistest.RealServer
	failover func(name string) // in order
	// apart names a lock that is not on the server that has the client's inbox,
	// if there is another one.
	apart func(c *relock.Client) (name string)
}

var replicatedDeployments = map[string]func(t *testing.T) *replicated{
	"sentinel": func(t *testing.T) *replicated {
		s := redistest.StartSentinel(t)
		return &replicated{
			rdb:      func(t testing.TB) redisClient { return s.Client(t) },
			primary:  func(string) *redistest.RealServer { return s.Now() },
			replicas: func(string) []*redistest.RealServer { return s.Replicas },
			promoted: func(_ string, old *redistest.RealServer) *redistest.RealServer { return s.Promoted(old) },
			failover: func(string) { s.Failover() },
			apart:    func(*relock.Client) string { return "job" },
		}
	},
	"cluster": func(t *testing.T) *replicated {
		c := redistest.StartCluster(t)
		slot := func(name string) int { return c.Slot(key.For("relock", name).Hash) }
		return &replicated{
			rdb: func(t testing.TB) redisClient {
				// As docs/operations.md has it: go-redis may ask the node that hangs for the layout.
				return c.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = time.Second })
			},
			primary: func(name string) *redistest.RealServer { return c.Serving(slot(name)) },
			replicas: func(name string) []*redistest.RealServer {
				return []*redistest.RealServer{c.Replica(c.Serving(slot(name)))}
			},
			promoted: func(name string, old *redistest.RealServer) *redistest.RealServer {
				return c.Promoted(slot(name), old)
			},
			failover: func(name string) { c.Failover(c.Serving(slot(name))) },
			apart: func(client *relock.Client) (name string) {
				inbox := c.Serving(c.Slot(key.Inbox("relock", rig.ID(client))))
				for i := 0; name == "" || c.Serving(slot(name)) == inbox; i++ {
					name = fmt.Sprint("job ", i)
				}
				return name
			},
		}
	},
}

// ends are the ways in which a primary stops being one.
var ends = map[string]func(r *replicated, name string) (old *redistest.RealServer){
	"killed": func(r *replicated, name string) *redistest.RealServer {
		old := r.primary(name)
		old.Kill()
		return old
	},
	"hung": func(r *replicated, name string) *redistest.RealServer {
		old := r.primary(name)
		old.Pause()
		return old
	},
	"relieved": func(r *replicated, name string) *redistest.RealServer {
		old := r.primary(name)
		r.failover(name)
		return old
	},
}

// traffic is clients that lock and unlock without end, and what they have seen.
type traffic struct {
	t      *testing.T
	end    context.CancelFunc
	calls  sync.WaitGroup
	grants atomic.Int64

	mu     sync.Mutex // guards the following fields
	tokens map[string]int64
	before map[string]int64     // tokens when two primaries began to serve; nil: one does
	last   map[string]time.Time // of the latest grant
}

func drive(t *testing.T, rdb func(testing.TB) redisClient, names ...string) *traffic {
	return driveWith(t, rdb, nil, names...)
}

func driveWith(t *testing.T, rdb func(testing.TB) redisClient, opts []relock.Option, names ...string) *traffic {
	ctx, cancel := context.WithCancel(t.Context())
	c := &traffic{t: t, end: cancel, tokens: map[string]int64{}, last: map[string]time.Time{}}
	for range 2 {
		client := rig.Open(t, rdb(t), append(opts, relock.Defaults(relock.TTL(2*time.Second)), relock.ReleaseTimeout(time.Second))...)
		for i, name := range names {
			opts := [][]relock.LockOption{nil, {relock.Fair()}}[i%2]
			for range 2 {
				c.calls.Go(func() { c.loop(ctx, client.NewLock(name, opts...)) })
			}
		}
	}
	return c
}

func (c *traffic) loop(ctx context.Context, l *relock.Lock) {
	for ctx.Err() == nil {
		h, err := l.Acquire(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.t.Errorf("Acquire: %v", err)
			}
			return
		}
		c.note(h)
		busyFor(ctx, time.Millisecond)
		if err := h.Release(); err != nil && !errors.Is(err, relock.ErrLost) && !errors.Is(err, relock.ErrUnconfirmed) {
			c.t.Errorf("Release: %v", err)
		}
	}
}

// busyFor is what a holder does with its lock.
func busyFor(ctx context.Context, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}

func (c *traffic) note(h *relock.Hold) {
	c.grants.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	above := c.tokens[h.Name()]
	if c.before != nil {
		above = c.before[h.Name()]
	}
	if h.Token() <= above {
		c.t.Errorf("lock %s: token %d follows %d", h.Name(), h.Token(), above)
	}
	c.tokens[h.Name()] = max(h.Token(), c.tokens[h.Name()])
	c.last[h.Name()] = time.Now()
}

// twoServe says that a primary which is relieved may serve for some milliseconds
// beside its successor, as docs/guarantees.md has it of asynchronous failover: of
// the two that then hold, the second may be noted first. Tokens still are larger
// than all before that, and after it than all of it.
func (c *traffic) twoServe(so bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before = nil; so {
		c.before = maps.Clone(c.tokens)
	}
}

// quiet names the locks that nobody has got since then.
func (c *traffic) quiet(since time.Time) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, last := range c.last {
		if last.Before(since) {
			names = append(names, name)
		}
	}
	return names
}

func (c *traffic) disperse() {
	c.end()
	c.calls.Wait()
}

// within fails unless cond, which says what is still amiss, says "" by then.
func within(t *testing.T, limit time.Duration, since time.Time, cond func() string) {
	t.Helper()
	rig.Soon(t, cond)
	if took := time.Since(since); took > limit {
		t.Errorf("so after %v, want %v", took, limit)
	}
}
