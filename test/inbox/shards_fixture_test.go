package inbox_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/redistest"
)

const linger = 5 * time.Second

// shardNode is one server of a cluster.
type shardNode struct {
	name  string
	shard *redistest.Shard
	net   *network
	rdb   atomic.Pointer[redis.Client] // the subscriber's
	pub   *redis.Client
	stale atomic.Pointer[redis.Client] // said to be the subscriber's, once
}

// cluster is a subscriber's shards and two servers, in one bubble.
type cluster struct {
	*inbox.Shards
	t     *testing.T
	nodes []*shardNode
	moved atomic.Int64
	asked atomic.Int64 // how often the layout was
	// checks: a server is asked whether it serves a channel.
	checks atomic.Bool

	mu     sync.Mutex // protects following fields
	layout map[string]int
	events map[string][]string // of each channel
}

func sharded(t *testing.T, f func(*testing.T, *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := &cluster{t: t, layout: map[string]int{}, events: map[string][]string{}}
		for i := range 2 {
			srv := redistest.Start(t)
			n := &shardNode{name: fmt.Sprint("node ", i), shard: srv.Shard(), net: &network{srv: srv}, pub: srv.Client(t)}
			n.rdb.Store(srv.Client(t, func(o *redis.Options) { o.Dialer = n.net.dial }))
			x.nodes = append(x.nodes, n)
		}
		x.Shards = inbox.NewShards(inbox.ShardsConfig{
			Node:  x.node,
			Moved: func() { x.moved.Add(1) },
			Serves: func(ctx context.Context, node inbox.Node, channel string) error {
				if !x.checks.Load() {
					return nil // connections are counted
				}
				return inbox.Serves(ctx, node, channel)
			},
			Deliver: x.deliver,
			Refused: refused,
			Linked: func(channel string, first bool) {
				x.note(channel, map[bool]string{true: "first", false: "again"}[first])
			},
			Linger: linger,
		})
		t.Cleanup(x.Close)
		f(t, x)
	})
}

func (x *cluster) node(_ context.Context, channel string) (string, inbox.Node, error) {
	x.asked.Add(1)
	n := x.serving(channel)
	if stale := n.stale.Swap(nil); stale != nil {
		return n.name, stale, nil
	}
	return n.name, n.rdb.Load(), nil
}

func (x *cluster) serving(channel string) *shardNode {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.nodes[x.layout[channel]]
}

func (x *cluster) move(channel string, node int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.layout[channel] = node
}

// deliver takes messages that begin with their channel.
func (x *cluster) deliver(channel, payload string) {
	named, message, _ := strings.Cut(payload, " ")
	if named != channel {
		x.t.Errorf("a message for %q came by %q", named, channel)
	}
	x.note(channel, message)
}

func (x *cluster) note(channel, event string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.events[channel] = append(x.events[channel], event)
}

func (x *cluster) join(name string) (c *inbox.Channel, leave func()) {
	x.t.Helper()
	c = x.Channel(name)
	leave = c.Join()
	x.ready(c)
	return c, leave
}

func (x *cluster) ready(c *inbox.Channel) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
	defer cancel()
	if err := c.Ready(ctx); err != nil || !c.Up() {
		x.t.Fatalf("Ready = %v, Up = %v", err, c.Up())
	}
}

func (x *cluster) publish(channel, message string) {
	x.t.Helper()
	if err := x.serving(channel).pub.SPublish(x.t.Context(), channel, channel+" "+message).Err(); err != nil {
		x.t.Fatal(err)
	}
	synctest.Wait()
}

func (x *cluster) saw(channel string, want ...string) {
	x.t.Helper()
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if got := x.events[channel]; !slices.Equal(got, want) {
		x.t.Errorf("events of %s = %q, want %q", channel, got, want)
	}
}

func (x *cluster) connections(want ...int) {
	x.t.Helper()
	synctest.Wait()
	for i, n := range x.nodes {
		if got := n.shard.Connections(); got != want[i] {
			x.t.Errorf("%d connections to node %d are subscribed, want %d", got, i, want[i])
		}
	}
}
