package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// long is a lease that ends too late for any test: who holds was woken, or found it by
// a heartbeat, every 10 s.
const long = time.Hour

func TestShardedLockOnEveryDeployment(t *testing.T) {
	t.Parallel()
	for name, deploy := range map[string]func(t *testing.T) func() redis.UniversalClient{
		"standalone": deployments["standalone"],
		"RESP2": func(t *testing.T) func() redis.UniversalClient {
			srv := redistest.Real(t)
			return func() redis.UniversalClient {
				return srv.Client(t, func(o *redis.Options) { o.Protocol = 2 })
			}
		},
		"sentinel":                   deployments["sentinel"],
		"cluster, least permissions": shardedCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := deploy(t)
			a, b := rig.Open(t, rdb(), relock.ShardedPubSub()), rig.Open(t, rdb(), relock.ShardedPubSub())
			for what, do := range suite {
				if what == "a removed hold is told" {
					continue // by its next renewal: TestShardedHolderIsToldOfItsRemoval
				}
				for _, lock := range []string{"job: " + what, "{tenant}: " + what} {
					t.Run(lock, func(t *testing.T) {
						t.Parallel()
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						defer cancel()
						do(&deployed{T: t, ctx: ctx, a: a, b: b, rdb: rdb, opts: []relock.Option{relock.ShardedPubSub()}, name: lock})
					})
				}
			}
		})
	}
}

// shardedQueue is locks that one client holds and others wait for.
type shardedQueue struct {
	t     *testing.T
	ctx   context.Context
	locks []*relock.Lock
	holds []*relock.Hold
	waits []rig.Going
}

// queueUp has waiter wait for locks that holder has.
func queueUp(t *testing.T, holder, waiter *relock.Client, names ...string) *shardedQueue {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	q := &shardedQueue{t: t, ctx: ctx}
	for _, name := range names {
		l := holder.NewLock(name, relock.TTL(long))
		q.locks = append(q.locks, l)
		q.holds = append(q.holds, rig.MustAcquire(t, l))
		q.waits = append(q.waits, rig.Beside(func() error {
			l := waiter.NewLock(name, relock.TTL(long))
			if err := l.Lock(ctx); err != nil {
				return err
			}
			return l.Unlock()
		}))
	}
	for _, l := range q.locks {
		rig.Queued(t, l, 1)
	}
	return q
}

// pass releases all, and fails unless every waiter is woken.
func (q *shardedQueue) pass() {
	q.t.Helper()
	began := time.Now()
	for _, h := range q.holds {
		rig.Must(q.t, h.Release())
	}
	late := time.NewTimer(promptly)
	defer late.Stop()
	for i, wait := range q.waits {
		select {
		case err := <-wait:
			rig.Must(q.t, err)
		case <-late.C:
			q.t.Fatalf("%q: not woken", q.locks[i].Name())
		}
	}
	q.t.Logf("%d waiters were woken within %v", len(q.waits), time.Since(began))
}

func numbered(what string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(what, i))
	}
	return names
}

// eachPrimary runs f for each of them.
func eachPrimary(t *testing.T, rdb *redis.ClusterClient, f func(node *redis.Client) error) {
	t.Helper()
	rig.Must(t, rdb.ForEachMaster(context.WithoutCancel(t.Context()), func(_ context.Context, node *redis.Client) error { return f(node) }))
}

// subscribed is how many connections there are for pub/sub, at most to one primary, and
// how many sharded channels on all.
func subscribed(t *testing.T, rdb *redis.ClusterClient) (most, channels int) {
	t.Helper()
	var worst, all atomic.Int64
	eachPrimary(t, rdb, func(node *redis.Client) error {
		ctx := context.WithoutCancel(t.Context())
		list, err := node.Do(ctx, "CLIENT", "LIST", "TYPE", "pubsub").Text()
		if err != nil {
			return err
		}
		n := int64(strings.Count(list, "\n"))
		for old := worst.Load(); n > old && !worst.CompareAndSwap(old, n); old = worst.Load() {
		}
		names, err := node.PubSubShardChannels(ctx, "*").Result()
		all.Add(int64(len(names)))
		return err
	})
	return int(worst.Load()), int(all.Load())
}

// published is how many messages the primaries have sent to other servers.
func published(t *testing.T, rdb *redis.ClusterClient) (plain, shard int64) {
	t.Helper()
	var sent [2]atomic.Int64
	eachPrimary(t, rdb, func(node *redis.Client) error {
		info, err := node.ClusterInfo(t.Context()).Result()
		for line := range strings.Lines(info) {
			for i, name := range []string{"publish_sent:", "publishshard_sent:"} {
				if n, ok := strings.CutPrefix(strings.TrimSpace(line), "cluster_stats_messages_"+name); ok {
					count, _ := strconv.ParseInt(n, 10, 64)
					sent[i].Add(count)
				}
			}
		}
		return err
	})
	return sent[0].Load(), sent[1].Load()
}

func TestShardedWaitersInCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartSteadyCluster(t)
	client := func(t *testing.T, opts ...relock.Option) *relock.Client {
		return rig.Open(t, c.Client(t), append(opts, relock.ShardedPubSub())...)
	}
	t.Run("are woken by message", func(t *testing.T) {
		names := append(numbered("woken ", 10), "{tag}: a", "{tag}: b", "}{", "a b", "日本")
		q, admin := queueUp(t, client(t), client(t), names...), c.Client(t)
		plain, shard := published(t, admin)
		q.pass()
		plainAfter, shardAfter := published(t, admin)
		if plainAfter != plain || shardAfter == shard {
			t.Errorf("the servers have sent each other %d plain and %d sharded messages, want none and some",
				plainAfter-plain, shardAfter-shard)
		}
	})
	t.Run("wake others and are woken by others", func(t *testing.T) {
		plain, sharded := rig.Open(t, c.Client(t)), client(t)
		queueUp(t, plain, sharded, numbered("one way ", 6)...).pass()
		queueUp(t, sharded, plain, numbered("other way ", 6)...).pass()
	})
	t.Run("share a connection to each server and leave none", func(t *testing.T) {
		shareConnections(t, c.Client(t), client)
	})
	t.Run("hear again when their connections were killed", func(t *testing.T) {
		q := queueUp(t, client(t), client(t), numbered("killed ", 12)...)
		for range 3 {
			eachPrimary(t, c.Client(t), func(node *redis.Client) error {
				return node.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err()
			})
		}
		q.pass()
	})
	t.Run("go with their slot", func(t *testing.T) { migrateSharded(t, c, client) })
}

// shareConnections counts connections and channels while many calls of a client wait,
// and after it was closed.
func shareConnections(t *testing.T, admin *redis.ClusterClient, client func(*testing.T, ...relock.Option) *relock.Client) {
	waiter := client(t)
	q := queueUp(t, client(t), waiter, numbered("many ", 100)...)
	rig.Soon(t, func() string { // the holder's first call has seen whether it may hear, which lingers
		if most, channels := subscribed(t, admin); most != 1 || channels != 100 {
			return fmt.Sprintf("%d connections to a server, want 1, and %d channels, want 100", most, channels)
		}
		return ""
	})
	q.pass()
	q = queueUp(t, client(t), waiter, numbered("many ", 10)...)
	rig.Must(t, waiter.Close())
	for i, wait := range q.waits {
		if err := <-wait; !errors.Is(err, relock.ErrClosed) {
			t.Errorf("Lock of a closed client = %v", err)
		}
		rig.Must(t, q.holds[i].Release())
	}
	rig.Soon(t, func() string {
		if most, channels := subscribed(t, admin); most > 0 || channels > 0 {
			return fmt.Sprintf("%d connections to a server and %d channels are left", most, channels)
		}
		return ""
	})
}

// migrateSharded moves the slot of locks that are waited for, beside others of
// the same server, and then has a grant made while the slot is between two.
func migrateSharded(t *testing.T, c *redistest.Cluster, client func(*testing.T, ...relock.Option) *relock.Client) {
	slot := c.Slot("moving")
	beside := ""
	for i := 0; beside == ""; i++ {
		if name := fmt.Sprint("beside ", i); c.Serving(c.Slot(key.For("relock", name).Hash)) == c.Serving(slot) {
			beside = name
		}
	}
	waiter := client(t)
	q := queueUp(t, client(t), waiter, "{moving} 1", "{moving} 2", beside)
	m := c.Migrate(slot)
	m.Begin()
	m.MoveKeys()
	m.End()
	q.pass()

	q = queueUp(t, client(t), waiter, "{moving} 1", "{moving} 2")
	m = c.Migrate(slot)
	m.Begin()
	m.MoveKeys()
	for _, h := range q.holds {
		rig.Must(t, h.Release()) // at the new server, where nobody is subscribed yet
	}
	q.holds = nil
	m.End()
	q.pass()
}

func TestShardedWaitersGoOnAfterAFailover(t *testing.T) {
	t.Parallel()
	for how := range ends {
		t.Run("primary "+how, func(t *testing.T) {
			t.Parallel()
			goOnAfterAFailover(t, replicatedDeployments["cluster"](t), how, relock.ShardedPubSub())
		})
	}
}

// TestShardedWaiterIsWokenAfterAFailover has waiters whose heartbeats come too late.
func TestShardedWaiterIsWokenAfterAFailover(t *testing.T) {
	t.Parallel()
	for how, end := range ends {
		if how == "hung" {
			continue // a connection that is silent is found by a heartbeat's echo
		}
		t.Run("primary "+how, func(t *testing.T) {
			t.Parallel()
			r := replicatedDeployments["cluster"](t)
			q := queueUp(t, rig.Open(t, r.rdb(t), relock.ShardedPubSub()), rig.Open(t, r.rdb(t), relock.ShardedPubSub()), "a", "b", "c", "d")
			r.promoted("a", end(r, "a"))
			q.pass()
		})
	}
}
