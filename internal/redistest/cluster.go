package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	slots  = 16384
	shards = 3
)

// Cluster is three primaries with a replica each.
type Cluster struct {
	t     testing.TB
	nodes []*RealServer // primaries first, as they were started
	ids   map[*RealServer]string
	// steady is a cluster whose replicas take over only when they are told to.
	steady bool
}

// StartSteadyCluster starts a cluster in which no replica takes over because its
// primary was slow: the old primary would not know for a while, and a migration that it has part in would break.
func StartSteadyCluster(t testing.TB) *Cluster {
	t.Helper()
	c := StartCluster(t, "--cluster-replica-no-failover", "yes")
	c.steady = true
	return c
}

// StartCluster starts a cluster of six servers that is complete when it returns. args go to all of them.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, ids: map[*RealServer]string{}}
	for range 2 * shards {
		c.nodes = append(c.nodes, launch(t, func(r *RealServer) []string {
			return append(append(r.defaults(),
				"--cluster-enabled", "yes", "--cluster-port", r.side, "--cluster-node-timeout", "1000",
				// A replica that was cut off for long may take over, even if it has not come back first.
				"--cluster-replica-validity-factor", "0", "--cluster-migration-barrier", "10",
				"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"), args...)
		}))
	}
	for i, n := range c.nodes {
		c.ids[n], _ = n.must("CLUSTER", "MYID").(string)
		n.must("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i < shards {
			n.must("CLUSTER", "ADDSLOTSRANGE", i*slots/shards, (i+1)*slots/shards-1)
		}
	}
	for _, n := range c.nodes {
		c.meet(n)
	}
	for _, n := range c.nodes {
		again := time.Now().Add(meetWithin)
		n.await("the nodes know each other", func(ctx context.Context) string {
			missing := n.lacksCluster(ctx, "cluster_known_nodes:6")
			if missing != "" && time.Now().After(again) {
				again = time.Now().Add(meetWithin)
				c.meet(n)
			}
			return missing
		})
	}
	for i, n := range c.nodes[shards:] {
		n.await("it may replicate", func(ctx context.Context) string {
			if _, err := n.call(ctx, "CLUSTER", "REPLICATE", c.ids[c.nodes[i]]); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	c.AwaitComplete()
	return c
}

// meetWithin is after what time a node asks again: one that has not answered within a node timeout is forgotten.
const meetWithin = 2 * time.Second

// meet introduces a node to all others, because gossip would take seconds.
func (c *Cluster) meet(n *RealServer) {
	for _, other := range c.nodes {
		if other != n {
			n.must("CLUSTER", "MEET", "127.0.0.1", other.port, other.side)
		}
	}
}

// AwaitComplete waits until every server agrees that all slots are served and
// that each primary has a replica that follows it.
func (c *Cluster) AwaitComplete() {
	c.t.Helper()
	for _, n := range c.nodes {
		n.await("the cluster is complete", func(ctx context.Context) string {
			if missing := n.lacksCluster(ctx, "cluster_state:ok"); missing != "" {
				return missing
			}
			layout, err := n.layout(ctx)
			if err != nil {
				return err.Error()
			}
			served := 0
			for _, part := range layout {
				if len(part.Nodes) < 2 {
					return fmt.Sprint("no replica in ", layout)
				}
				served += part.End - part.Start + 1
			}
			if served != slots {
				return fmt.Sprint("slots are missing in ", layout)
			}
			if n.lacks(ctx, "role:master") == "" {
				return ""
			}
			return n.lacks(ctx, "master_link_status:up")
		})
	}
}

func (r *RealServer) lacksCluster(ctx context.Context, line string) string {
	v, err := r.call(ctx, "CLUSTER", "INFO")
	if err != nil {
		return err.Error()
	}
	if info, _ := v.(string); !strings.Contains(info, line+"\r\n") {
		return fmt.Sprintf("CLUSTER INFO lacks %q:\n%s", line, info)
	}
	return ""
}

// layout returns who serves which slots, as this server sees it.
func (r *RealServer) layout(ctx context.Context) ([]redis.ClusterSlot, error) {
	rdb := r.admin()
	defer func() { _ = rdb.Close() }()
	return rdb.ClusterSlots(ctx).Result() //nolint:staticcheck // SHARDS does not say who serves a slot
}

// Client returns a client of the cluster, closed when t ends.
func (c *Cluster) Client(t testing.TB, mod ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	o := &redis.ClusterOptions{}
	for _, n := range c.nodes {
		o.Addrs = append(o.Addrs, n.Addr())
	}
	for _, m := range mod {
		m(o)
	}
	rdb := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Slot returns the slot of a key, as a server counts it.
func (c *Cluster) Slot(key string) (slot int) {
	c.t.Helper()
	awaitState(c.t, "a server counts the slot", func(ctx context.Context) string {
		var err error
		for _, n := range c.nodes { // some may be stopped
			var v any
			if v, err = n.call(ctx, "CLUSTER", "KEYSLOT", key); err == nil {
				slot = int(v.(int64))
				return ""
			}
		}
		return err.Error()
	})
	return slot
}

// Serving returns the primary of a slot, as most of the other servers that answer see it.
func (c *Cluster) Serving(slot int) *RealServer {
	c.t.Helper()
	return c.Promoted(slot, nil)
}

// Promoted waits until another server than old serves the slot, by its own word, and returns it.
func (c *Cluster) Promoted(slot int, old *RealServer) (primary *RealServer) {
	c.t.Helper()
	awaitState(c.t, "the slot has a primary", func(ctx context.Context) string {
		for _, n := range c.nodes {
			if n == old {
				continue
			}
			layout, err := n.layout(ctx)
			if err != nil {
				continue
			}
			for _, part := range layout {
				if slot >= part.Start && slot <= part.End && withPort(c.nodes, part.Nodes[0].Addr) == n {
					primary = n
					return n.lacksCluster(ctx, "cluster_state:ok")
				}
			}
		}
		return "nobody serves slot " + strconv.Itoa(slot)
	})
	return primary
}

// Replica returns the replica of a primary.
func (c *Cluster) Replica(primary *RealServer) (replica *RealServer) {
	c.t.Helper()
	awaitState(c.t, "the primary has a replica", func(ctx context.Context) string {
		layout, err := primary.layout(ctx)
		for _, part := range layout {
			if withPort(c.nodes, part.Nodes[0].Addr) == primary && len(part.Nodes) > 1 {
				replica = withPort(c.nodes, part.Nodes[1].Addr)
				return ""
			}
		}
		return fmt.Sprint(layout, err)
	})
	return replica
}

// Failover lets the replica of a primary take over in order, and returns it.
func (c *Cluster) Failover(primary *RealServer) *RealServer {
	c.t.Helper()
	replica := c.Replica(primary)
	replica.must("CLUSTER", "FAILOVER")
	replica.await("the replica has taken over", func(ctx context.Context) string {
		return replica.lacks(ctx, "role:master")
	})
	return replica
}

// A Migration moves one slot to another primary, step by step: Begin, MoveKeys as often as wanted, End.
type Migration struct {
	c        *Cluster
	slot     int
	from, to *RealServer
}

// Migrate returns a migration of a slot to a primary that does not serve it. The cluster must be steady.
func (c *Cluster) Migrate(slot int) *Migration {
	c.t.Helper()
	if !c.steady {
		c.t.Fatal("a slot of this cluster may change its primary while it migrates: use StartSteadyCluster")
	}
	m := &Migration{c: c, slot: slot, from: c.Serving(slot)}
	for other := 0; m.to == nil || m.to == m.from; other += slots / shards {
		m.to = c.Serving(other)
	}
	return m
}

// Begin marks the slot. The old primary answers ASK for keys that it does not have.
func (m *Migration) Begin() {
	m.c.t.Helper()
	m.to.must("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.c.ids[m.from])
	m.from.must("CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.c.ids[m.to])
}

// MoveKey moves one key; others of its slot stay.
func (m *Migration) MoveKey(key string) {
	m.c.t.Helper()
	m.from.must("MIGRATE", "127.0.0.1", m.to.port, key, 0, 5000)
}

// MoveKeys moves all keys that the slot has at this time.
func (m *Migration) MoveKeys() {
	m.c.t.Helper()
	for {
		keys, _ := m.from.must("CLUSTER", "GETKEYSINSLOT", m.slot, 100).([]any)
		if len(keys) == 0 {
			return
		}
		for _, key := range keys {
			m.MoveKey(fmt.Sprint(key))
		}
	}
}

// End gives the slot to its new primary: its old one answers MOVED from now on.
func (m *Migration) End() {
	m.c.t.Helper()
	m.MoveKeys()
	m.to.must("CLUSTER", "SETSLOT", m.slot, "NODE", m.c.ids[m.to])
	m.from.await("the slot is given away", func(ctx context.Context) string {
		// A key that came back in between makes the old primary refuse.
		if _, err := m.from.call(ctx, "CLUSTER", "SETSLOT", m.slot, "NODE", m.c.ids[m.to]); err != nil {
			m.MoveKeys()
			return err.Error()
		}
		return ""
	})
}
