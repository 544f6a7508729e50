package transport_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

func TestCallsThatHangHoldUpNobody(t *testing.T) {
	held(t, func(t *testing.T, l *link, c *crowd, sent *traffic, open func()) {
		gate := sent.gate
		sent.gate = nil // for those that follow
		defer close(gate)
		for i := range 10 {
			name := fmt.Sprint("k", i)
			c.call(t.Context(), time.Minute, name, call(name))
		}
		virtual.Sleep(20 * time.Millisecond)
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range 10 {
			name := fmt.Sprint("k", i)
			if r, ok := c.results[name]; !ok || r.Err != nil || c.took[name] > time.Millisecond {
				t.Errorf("%s: answered %v after %v, %v", name, ok, c.took[name], r.Err)
			}
		}
	})
}

func TestHungNodeHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// go-redis asks for the layout on a goroutine of its own, for so long.
		defer virtual.Sleep(time.Second)
		sent := new(traffic)
		n := newTwoNodes(t, sent)
		n.hung.set(swallow)
		sent.gate = make(chan struct{})
		for i := range 15 {
			for _, l := range []*link{n.hung, n.well} {
				n.call(t.Context(), time.Second, n.on[l][i], call(n.on[l][i]))
			}
		}
		virtual.Sleep(5 * time.Millisecond)
		close(sent.gate)
		synctest.Wait()
		for _, key := range n.on[n.well][:15] {
			n.mu.Lock()
			if r, ok := n.results[key]; !ok || r.Err != nil {
				t.Errorf("%s: answered %v, %v", key, ok, r.Err)
			}
			n.mu.Unlock()
		}
		var mixed []transport.Call
		for _, key := range slices.Concat(n.on[n.hung][15:17], n.on[n.well][15:17]) {
			mixed = append(mixed, call(key))
		}
		for i, r := range n.tr.DoAll(t.Context(), time.Second, mixed) {
			if (r.Err != nil) != (i < 2) {
				t.Errorf("call %d of a batch over both: %v", i, r)
			}
		}
		n.wg.Wait()
	})
}

// twoNodes are a cluster of two, of which one is to hang, and callers of it.
type twoNodes struct {
	*crowd
	hung, well *link
	on         map[*link][]string // keys of 40 that are on each; both have seen theirs
}

func newTwoNodes(t *testing.T, hooks ...redis.Hook) *twoNodes {
	t.Helper()
	n := &twoNodes{hung: newLink(t), well: newLink(t), on: make(map[*link][]string)}
	links := map[string]*link{"192.0.2.1:6379": n.hung, "192.0.2.2:6379": n.well}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{
				{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: "192.0.2.1:6379"}}},
				{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "192.0.2.2:6379"}}},
			}, nil
		},
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return links[addr].dial(ctx, network, addr)
		},
	})
	t.Cleanup(func() { rdb.Close() })
	for _, h := range hooks {
		rdb.AddHook(h)
	}
	n.crowd = newCrowd(newTransport(t, rdb))
	for i := range 40 {
		key := fmt.Sprint("k", i)
		node, err := rdb.MasterForKey(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		l := links[node.Options().Addr]
		n.on[l] = append(n.on[l], key)
		if _, err := n.tr.Do(t.Context(), time.Minute, call(key)); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// silent is a server that takes connections, and says nothing on any of them.
func silent(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	return func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		go func() { _, _ = io.Copy(io.Discard, there) }()
		return here, nil
	}
}

// Fails when who ends a call asks a Cluster for its layout, which nobody has told yet.
func TestACallOfAClusterThatSaysNothingEndsInTime(t *testing.T) {
	for name, row := range map[string]struct{ cancel, timeout, read time.Duration }{
		"context":              {time.Second, time.Minute, 3 * time.Second},
		"timeout":              {time.Minute, time.Second, 3 * time.Second},
		"the client's timeout": {time.Second, time.Minute, 900 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, do way) {
				defer virtual.Sleep(time.Minute) // go-redis asks for the layout on goroutines of its own
				rdb := redis.NewClusterClient(&redis.ClusterOptions{
					Addrs: []string{"192.0.2.1:6379"}, Dialer: silent(t), ReadTimeout: row.read, MaxRetries: -1,
				})
				defer rdb.Close()
				tr := newTransport(t, rdb)
				ctx, cancel := context.WithTimeout(t.Context(), row.cancel)
				defer cancel()
				begin := time.Now()
				_, err := do(ctx, tr, row.timeout, call("k"))
				if took := time.Since(begin); took > time.Second || err == nil {
					t.Errorf("returned %v after %v, want an error within 1s", err, took)
				}
			})
		})
	}
}
