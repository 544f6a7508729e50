package relock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
)

// goOn is how long after a new primary everything that can go on has done so.
const goOn = 5 * time.Second

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
				inbox := c.Serving(c.Slot(key.Inbox("relock", client.ID())))
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
		client := open(t, rdb(t), append(opts, relock.Defaults(relock.TTL(2*time.Second)), relock.ReleaseTimeout(time.Second))...)
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
	soon(t, cond)
	if took := time.Since(since); took > limit {
		t.Errorf("so after %v, want %v", took, limit)
	}
}

func TestWaitersGoOnAfterAFailover(t *testing.T) {
	t.Parallel()
	for where, deploy := range replicatedDeployments {
		for how := range ends {
			t.Run(where+", primary "+how, func(t *testing.T) {
				t.Parallel()
				goOnAfterAFailover(t, deploy(t), how)
			})
		}
	}
}

func goOnAfterAFailover(t *testing.T, r *replicated, how string, opts ...relock.Option) {
	t.Helper()
	c := driveWith(t, r.rdb, opts, "a", "b", "c", "d")
	defer c.disperse()
	soon(t, func() string {
		if n := c.grants.Load(); n < 200 {
			return fmt.Sprint(n, " grants")
		}
		return ""
	})
	c.twoServe(how == "relieved")
	old := ends[how](r, "a")
	r.promoted("a", old)
	back := time.Now()
	goesOn := func(since time.Time) func() string {
		return func() string {
			if names := c.quiet(since); len(names) > 0 {
				return fmt.Sprint("nobody has got ", names)
			}
			return ""
		}
	}
	within(t, goOn, back, goesOn(back))
	c.twoServe(false)
	soon(t, goesOn(time.Now()))
	t.Logf("%d grants; all went on %v after the new primary", c.grants.Load(), time.Since(back))
}

// cutReplication makes a primary refuse its replicas from now on, and returns when
// they are gone: what it writes is lost when it fails.
func cutReplication(t *testing.T, primary *redistest.RealServer) {
	t.Helper()
	admin := primary.Client(t)
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "-psync", "-sync").Err())
	must(t, admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica").Err())
	soon(t, func() string {
		info, err := admin.Info(t.Context(), "replication").Result()
		if err != nil || !strings.Contains(info, "connected_slaves:0") {
			return fmt.Sprint(info, err)
		}
		return ""
	})
}

// thatKnow returns the replicas, once all of them have the lock's holder.
func (r *replicated) thatKnow(t *testing.T, name string) (replicas []*redis.Client) {
	t.Helper()
	for _, replica := range r.replicas(name) {
		rdb := replica.Client(t, func(o *redis.Options) {
			o.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
				_ = cn.ReadOnly(ctx) // a replica of a Cluster demands it, others refuse it
				return nil
			}
		})
		replicas = append(replicas, rdb)
		soon(t, func() string {
			if holder(t, rdb, name) == "" {
				return "the replica does not know the hold"
			}
			return ""
		})
	}
	return replicas
}

// holder is what a server has of who holds a lock.
func holder(t *testing.T, rdb redis.Cmdable, name string) string {
	t.Helper()
	v, err := rdb.HGet(t.Context(), key.For("relock", name).Hash, "holder").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err.Error()
	}
	return v
}

// TestReleasedLockDoesNotComeBackAfterAFailover has a client that only holds, and
// whose releases the new primary does not know.
func TestReleasedLockDoesNotComeBackAfterAFailover(t *testing.T) {
	t.Parallel()
	for where, deploy := range replicatedDeployments {
		for _, how := range []string{"killed", "hung"} {
			t.Run(where+", primary "+how, func(t *testing.T) {
				t.Parallel()
				r := deploy(t)
				holds := open(t, r.rdb(t), relock.Defaults(relock.TTL(time.Minute)))
				name := r.apart(holds)
				l := holds.NewLock(name)
				must(t, l.Lock(t.Context()))
				token := l.Token()
				replicas := r.thatKnow(t, name)
				cutReplication(t, r.primary(name))
				must(t, l.Unlock())
				for _, rdb := range replicas {
					if holder(t, rdb, name) == "" {
						t.Fatal("the replica knows of the release: there is nothing to come back")
					}
				}
				primary := r.promoted(name, ends[how](r, name))
				back := time.Now()
				rdb := primary.Client(t)
				within(t, goOn, back, func() string { return holder(t, rdb, name) })
				other := open(t, r.rdb(t)).NewLock(name)
				must(t, other.Lock(t.Context()))
				wantLater(t, token, other.Token())
				t.Logf("free %v after the new primary", time.Since(back))
				must(t, other.Unlock())
			})
		}
	}
}

// TestDeadHoldersLeaseEndsAcrossAFailover kills the primary under a hold that
// nobody renews any more, and that somebody waits for.
func TestDeadHoldersLeaseEndsAcrossAFailover(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second
	for where, deploy := range replicatedDeployments {
		for _, how := range []string{"killed", "hung"} {
			t.Run(where+", primary "+how, func(t *testing.T) {
				t.Parallel()
				r := deploy(t)
				dead := open(t, r.rdb(t), relock.Defaults(relock.TTL(ttl)))
				name := r.apart(dead)
				token := mustAcquire(t, dead.NewLock(name)).Token()
				ends := ends[how]
				lease := time.Now()
				must(t, dead.Close())
				waiter := open(t, r.rdb(t), relock.Defaults(relock.TTL(ttl))).NewLock(name)
				waits := start(func() error { return waiter.Lock(t.Context()) })
				soon(t, func() string {
					if info, err := waiter.Info(t.Context()); err != nil || info.Waiters != 1 {
						return fmt.Sprint(info, err)
					}
					return ""
				})
				r.thatKnow(t, name) // else nobody is left to wait for
				r.promoted(name, ends(r, name))
				back := time.Now()
				must(t, <-waits)
				held := time.Now()
				due := lease.Add(ttl)
				if back.After(due) {
					due = back
				}
				if late := held.Sub(due); late > goOn {
					t.Errorf("held %v after the lease's end and the new primary, want %v", late, goOn)
				}
				if early := lease.Add(ttl - time.Second).Sub(held); early > 0 {
					t.Errorf("held %v before the lease's end", early)
				}
				wantLater(t, token, waiter.Token())
				t.Logf("held %v after it could", held.Sub(due))
				must(t, waiter.Unlock())
			})
		}
	}
}
