package transport_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/transport"
)

// A slot moves to another server of a Cluster.
// Fails when a WAIT stays with the old server while its script is sent on, or when a stream goes on to use the old one.
func TestACallFollowsItsSlot(t *testing.T) {
	c := newShards(t)
	rdb := c.client()
	tr := newTransport(t, rdb)
	decorated := transport.New(struct{ *redis.ClusterClient }{rdb})
	// All keys of this test are in one slot, which is the first shard's.
	slot, from, to := c.slotOf("a{0}"), c.shards[0], c.shards[1]
	if slot > lastOfFirst {
		t.Fatalf("slot %d is not the first shard's", slot)
	}
	acked := func(step string, key string) {
		t.Helper()
		wantAcked(t, tr, step, key)
		// The first calls use the client's pool, and the later ones a stream to the server that had the slot at first.
		for range 5 {
			if _, err := tr.Do(t.Context(), 20*time.Second, call(key)); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}
	}
	acked("settled", "a{0}")
	to.do("cluster", "setslot", slot, "importing", from.id)
	from.do("cluster", "setslot", slot, "migrating", to.id)
	acked("a key that is still there", "a{0}")
	acked("a key that is not there any more: ASK", "b{0}")
	from.do("migrate", "127.0.0.1", to.port(), "a{0}", 0, 5000)
	acked("a key that has moved: ASK", "a{0}")
	for _, s := range []*shard{to, from} {
		s.do("cluster", "setslot", slot, "node", to.id)
	}
	acked("the slot has moved: MOVED", "a{0}")

	// The shard that has it now has lost its replica, the other has not.
	to.replica.Pause()
	if r := tr.DoAcked(t.Context(), 20*time.Second, 1, 200*time.Millisecond, call("a{0}"))[0]; r.Err != nil || r.Acks != 0 {
		t.Errorf("its replica is stopped: %d replicas, error %v, want none", r.Acks, r.Err)
	}
	both := []transport.Call{call("a{0}"), call(c.keyOfFirst(slot))}
	for what, tr := range map[string]*transport.Transport{"": tr, "decorated: ": decorated} {
		if got := tr.DoAcked(t.Context(), 20*time.Second, 1, 2*time.Second, both...); got[0].Acks != 0 || got[1].Acks != 1 {
			t.Errorf("%sa batch for both shards: %+v, want 0 and 1 replicas", what, got)
		}
	}
	to.replica.Resume()
}

func wantAcked(t *testing.T, tr *transport.Transport, step, key string) {
	t.Helper()
	r := tr.DoAcked(t.Context(), 20*time.Second, 1, 5*time.Second, call(key))[0]
	if r.Err != nil || r.Acks != 1 {
		t.Fatalf("%s: %d replicas, error %v, want 1", step, r.Acks, r.Err)
	}
}

const lastOfFirst = 15000

// shards are a cluster of two primaries with a replica each.
type shards struct {
	t      *testing.T
	shards [2]*shard
}

type shard struct {
	t            *testing.T
	srv, replica *redistest.RealServer
	rdb          *redis.Client
	id           string
}

func newShards(t *testing.T) *shards {
	t.Helper()
	c := &shards{t: t}
	var servers []*redistest.RealServer
	var buses []string
	for range 4 {
		bus := freeBus(t)
		buses = append(buses, bus)
		servers = append(servers, redistest.Real(t, "--cluster-enabled", "yes", "--cluster-port", bus,
			"--cluster-node-timeout", "5000", "--repl-diskless-sync-delay", "0"))
	}
	for i := range c.shards {
		srv := servers[i]
		c.shards[i] = &shard{t: t, srv: srv, replica: servers[2+i], rdb: realClient(t, &redis.Options{Addr: srv.Addr()})}
		c.shards[i].id, _ = c.shards[i].do("cluster", "myid").(string)
		c.shards[i].do("cluster", "set-config-epoch", i+1)
	}
	c.shards[0].do("cluster", "addslotsrange", 0, lastOfFirst)
	c.shards[1].do("cluster", "addslotsrange", lastOfFirst+1, 16383)
	meet(t, servers, buses)
	for _, s := range c.shards {
		rdb := realClient(t, &redis.Options{Addr: s.replica.Addr()})
		eventually(t, "it replicates", func() bool { return rdb.Do(t.Context(), "cluster", "replicate", s.id).Err() == nil })
	}
	for _, s := range c.shards {
		eventually(t, "the shard is served and replicated", func() bool {
			if !strings.HasPrefix(s.rdb.ClusterInfo(t.Context()).Val(), "cluster_state:ok") {
				return false
			}
			wait, err := s.rdb.Do(t.Context(), "wait", 1, 100).Int64()
			return err == nil && wait == 1
		})
	}
	return c
}

// meet introduces each server to all others, by the ports of their buses.
func meet(t *testing.T, servers []*redistest.RealServer, buses []string) {
	t.Helper()
	for i, srv := range servers {
		rdb := realClient(t, &redis.Options{Addr: srv.Addr()})
		for j, other := range servers {
			if i == j {
				continue
			}
			_, port, _ := net.SplitHostPort(other.Addr())
			if err := rdb.Do(t.Context(), "cluster", "meet", "127.0.0.1", port, buses[j]).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (c *shards) client() *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.shards[0].srv.Addr(), c.shards[1].srv.Addr()}})
	c.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func (s *shard) do(args ...any) any {
	s.t.Helper()
	v, err := s.rdb.Do(s.t.Context(), args...).Result()
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

func (s *shard) port() string {
	_, port, _ := net.SplitHostPort(s.srv.Addr())
	return port
}

func (c *shards) slotOf(key string) int {
	n, _ := c.shards[0].do("cluster", "keyslot", key).(int64)
	return int(n)
}

// keyOfFirst returns a key of another slot of the first shard.
func (c *shards) keyOfFirst(not int) string {
	c.t.Helper()
	for i := range 1000 {
		key := "k" + strconv.Itoa(i)
		if slot := c.slotOf(key); slot <= lastOfFirst && slot != not {
			return key
		}
	}
	c.t.Fatal("no key of the first shard")
	return ""
}

// freeBus returns a port for the cluster's own messages.
func freeBus(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !is() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
