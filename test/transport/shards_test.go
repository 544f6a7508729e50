package transport_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

// Fails when calls to a primary of a Cluster use a connection each, or wait for another primary.
func TestCallsToAPrimaryOfAClusterShareAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer virtual.Sleep(time.Second) // go-redis asks for the layout on a goroutine of its own, for so long
		n := newTwoNodes(t)
		before := n.hung.dialled()
		open := n.hung.close()
		for _, key := range n.on[n.hung][:10] {
			n.call(t.Context(), time.Minute, key, call(key))
		}
		synctest.Wait()
		if more := n.hung.dialled() - before; more > 0 {
			t.Errorf("%d connections more for ten calls at a time", more)
		}
		if _, err := n.tr.Do(t.Context(), time.Millisecond, call(n.on[n.well][0])); err != nil {
			t.Errorf("a call to the other primary: %v", err)
		}
		open()
		n.wg.Wait()
		for key, r := range n.results {
			if r.Err != nil {
				t.Errorf("%s: %v", key, r.Err)
			}
		}
	})
}

// A seen is a hook that counts commands.
type seen struct{ n atomic.Int64 }

func (*seen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *seen) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.n.Add(1)
		return next(ctx, cmd)
	}
}

func (*seen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Fails when a stream to a primary leaves out the hooks of the Cluster client.
func TestHooksOfAClusterClientSeeEveryCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer virtual.Sleep(time.Second)
		hook := &seen{}
		n := newTwoNodes(t, hook)
		before := hook.n.Load()
		for _, key := range n.on[n.well][:5] {
			if _, err := n.tr.Do(t.Context(), time.Minute, call(key)); err != nil {
				t.Fatal(err)
			}
		}
		if got := hook.n.Load() - before; got != 5 {
			t.Errorf("the hook has seen %d of 5 commands", got)
		}
	})
}

// Fails when the stream to a primary stays after the primary has left the Cluster.
func TestTheStreamToAServerThatHasLeftIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var second atomic.Pointer[string] // who has the second half of the slots
		old, other := "192.0.2.2:6379", "192.0.2.3:6379"
		second.Store(&old)
		open := map[string]*atomic.Int64{"192.0.2.1:6379": {}, old: {}, other: {}}
		l := newLink(t)
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{
					{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: "192.0.2.1:6379"}}},
					{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: *second.Load()}}},
				}, nil
			},
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := l.dial(ctx, network, addr)
				open[addr].Add(1)
				return &counted{c, open[addr]}, err
			},
		})
		defer rdb.Close()
		tr := newTransport(t, rdb)
		key := "k0" // is in the second half
		if node, err := rdb.MasterForKey(t.Context(), key); err != nil || node.Options().Addr != old {
			t.Fatalf("%s is on %v, %v", key, node, err)
		}
		calls := func() {
			for range 5 {
				if _, err := tr.Do(t.Context(), time.Minute, call(key)); err != nil {
					t.Fatal(err)
				}
			}
		}
		calls()
		if open[old].Load() < 2 {
			t.Fatalf("%d connections to the first, want one of the pool and a stream", open[old].Load())
		}
		second.Store(&other)
		for range 3 { // go-redis closes the client of a server that has left a minute later, at the next look
			rdb.ReloadState(t.Context())
			virtual.Sleep(time.Minute)
		}
		calls()
		synctest.Wait()
		if open[old].Load() != 0 || open[other].Load() < 2 {
			t.Errorf("%d connections to the one that has left, %d to the new one", open[old].Load(), open[other].Load())
		}
	})
}

// A counted is a connection that counts as open until it is closed.
type counted struct {
	net.Conn
	open *atomic.Int64
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	if err == nil {
		c.open.Add(-1)
	}
	return err
}

// A watched is two servers and a Sentinel, which names one of them as the primary.
type watched struct {
	first, next, sentinel *link
	rdb                   *redis.Client
	tr                    *transport.Transport
	primary               atomic.Pointer[string]
	dial                  func(dials int) error // before a dial to the first; nil: it succeeds
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{first: newLink(t), next: newLink(t), sentinel: newLink(t)}
	w.primary.Store(new("192.0.2.1"))
	links := map[string]*link{"192.0.2.1:6379": w.first, "192.0.2.2:6379": w.next, "192.0.2.9:26379": w.sentinel}
	c, err := w.sentinel.srv.Dial() // starts the server
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	err = w.sentinel.srv.Server().Register("SENTINEL", func(p *server.Peer, _ string, args []string) {
		if args[0] != "get-master-addr-by-name" {
			p.WriteLen(0)
			return
		}
		p.WriteStrings([]string{*w.primary.Load(), "6379"})
	})
	if err != nil {
		t.Fatal(err)
	}
	w.rdb = redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "main", SentinelAddrs: []string{"192.0.2.9:26379"}, DialerRetries: 1, MaxIdleConns: 1,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			l := links[addr]
			c, err := l.dial(ctx, network, addr)
			if l == w.first && w.dial != nil {
				err = w.dial(l.dialled())
			}
			return c, err
		},
	})
	t.Cleanup(func() { _ = w.rdb.Close() })
	w.tr = newTransport(t, w.rdb)
	return w
}

func (w *watched) calls(t *testing.T, n int) {
	t.Helper()
	for range n {
		if _, err := w.tr.Do(t.Context(), 2*time.Second, call("k")); err != nil {
			t.Fatal(err)
		}
	}
}

// The Sentinels name the second server while the first, which is cut off from them, would still answer.
// Fails when a call goes to the first one though go-redis has heard of the second.
func TestTheStreamOfASentinelClientEndsWhenAnotherPrimaryIsNamed(t *testing.T) {
	for name, row := range map[string]struct {
		before      func(t *testing.T, w *watched)
		after       func(t *testing.T, w *watched)
		dials, want int // to the first, and calls on it
	}{
		"": {func(t *testing.T, w *watched) { w.calls(t, 5) }, func(*testing.T, *watched) {}, 2, 5},
		"the pool has another connection by then": {
			func(t *testing.T, w *watched) { w.calls(t, 5) },
			func(t *testing.T, w *watched) {
				if err := w.rdb.Ping(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}, 2, 5,
		},
		"the pool has none that would have gone": {
			func(t *testing.T, w *watched) {
				w.dial = func(dials int) error {
					if dials > 1 {
						return nil // of a stream
					}
					virtual.Sleep(time.Second)
					return errors.New("refused")
				}
				if _, err := w.tr.Do(t.Context(), 2*time.Second, call("k")); err == nil {
					t.Fatal("the first call succeeded without a connection")
				}
			},
			func(*testing.T, *watched) {}, 1, 0,
		},
		"the only one is in use": {
			func(t *testing.T, w *watched) {
				w.calls(t, 5)
				used := w.rdb.Conn()
				t.Cleanup(func() { _ = used.Close() })
				if err := used.Ping(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			},
			func(*testing.T, *watched) {}, 2, 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatched(t)
				row.before(t, w)
				if used := w.first.dialled(); used != row.dials {
					t.Fatalf("%d dials, want one by the pool, and one for a stream if there may be one: %d", used, row.dials)
				}
				w.primary.Store(new("192.0.2.2"))
				w.sentinel.srv.Publish("+switch-master", "main 192.0.2.1 6379 192.0.2.2 6379")
				synctest.Wait()
				row.after(t, w)
				w.calls(t, 3)
				virtual.Sleep(time.Second) // the stream was young
				w.calls(t, 2)
				if old, now := w.first.count(t, "k"), w.next.count(t, "k"); old != row.want || now != 5 {
					t.Errorf("%d calls on the old primary, %d on the new one, want %d and 5", old, now, row.want)
				}
				if used := w.next.dialled(); used != 2 {
					t.Errorf("%d connections to the new one, want one of the pool and the stream", used)
				}
			})
		})
	}
}

// Fails when each call makes a stream, which the next one ends because a connection of the pool has gone.
func TestAPoolThatLosesConnectionsAllTheTimeIsNotDialledForStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		w.calls(t, 5)
		before := w.first.dialled()
		const rounds = 20
		for range rounds {
			open := w.first.close()
			var both sync.WaitGroup
			for range 2 { // of which one needs a new connection, and one is left over then
				both.Go(func() { _ = w.rdb.Ping(t.Context()).Err() })
			}
			synctest.Wait()
			open()
			both.Wait()
			w.calls(t, 2)
		}
		if more := w.first.dialled() - before; more < rounds || more > rounds+2 {
			t.Errorf("%d dials, want %d by the pool and at most 2 for streams", more, rounds)
		}
	})
}
