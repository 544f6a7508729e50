package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/virtual"
)

func TestShardIsSubscribedWhileItIsJoinedAndLingersAfter(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		c := x.Channel("a")
		c.Suspect()
		virtual.Sleep(time.Minute)
		if c.Up() || !c.Heard().IsZero() || x.nodes[0].net.dials.Load() > 0 {
			t.Error("subscribed before it was joined")
		}
		if err := c.Ready(t.Context()); !errors.Is(err, inbox.ErrClosed) {
			t.Errorf("Ready of a channel nobody has joined = %v", err)
		}
		_, leave := x.join("a")
		_, other := x.join("a")
		x.publish("a", "m1")
		leave()
		leave()
		virtual.Sleep(2 * linger)
		x.publish("a", "m2")
		other()
		virtual.Sleep(linger - time.Second)
		_, leave = x.join("a")
		virtual.Sleep(2 * linger)
		x.publish("a", "m3")
		if n := x.nodes[0].net.dials.Load(); n != 1 {
			t.Errorf("%d dials, want 1", n)
		}
		leave()
		virtual.Sleep(linger + time.Second)
		x.connections(0, 0)
		x.publish("a", "lost")
		x.saw("a", "first", "m1", "m2", "m3")
		x.join("a")
		x.saw("a", "first", "m1", "m2", "m3", "first")
		if n := x.nodes[0].net.dials.Load(); n != 2 {
			t.Errorf("%d dials, want 2: nobody was subscribed over the first any more", n)
		}
	})
}

func TestShardsOfAServerShareOneConnection(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		var leaves []func()
		for i := range 100 {
			name := fmt.Sprint("c", i)
			x.move(name, i%2)
			leaves = append(leaves, x.Channel(name).Join())
		}
		for i := range 100 {
			x.ready(x.Channel(fmt.Sprint("c", i)))
		}
		x.connections(1, 1)
		for i, n := range x.nodes {
			if n.net.dials.Load() != 1 || n.shard.Channels() != 50 {
				t.Errorf("node %d: %d dials, %d channels", i, n.net.dials.Load(), n.shard.Channels())
			}
		}
		for _, leave := range leaves[:98] {
			leave()
		}
		virtual.Sleep(linger + time.Second)
		x.connections(1, 1)
		if n := x.nodes[0].shard.Channels(); n != 1 {
			t.Errorf("%d channels are left, want 1", n)
		}
		x.publish("c98", "m1")
		x.saw("c98", "first", "m1")
	})
}

func TestShardFollowsItsSlot(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		moving, _ := x.join("moving")
		x.join("staying")
		x.move("moving", 1)
		x.nodes[0].shard.MoveAway("moving")
		synctest.Wait()
		if x.moved.Load() == 0 {
			t.Error("nobody was told that the layout has changed")
		}
		virtual.Sleep(100 * time.Millisecond)
		x.ready(moving)
		x.connections(1, 1)
		x.publish("moving", "m1")
		x.publish("staying", "m1")
		x.saw("moving", "first", "again", "m1")
		x.saw("staying", "first", "m1")
	})
}

// A primary that has become a replica takes the subscription, and hears nothing of what is
// published at its successor before that knows it.
func TestShardIsNotUpOnAServerThatServesItNoMore(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		x.checks.Store(true)
		x.nodes[0].net.srv.FailNext(3, "MOVED 1234 192.0.2.9:6379", func(args []string) bool { return args[0] == "hdel" })
		c := x.Channel("a")
		defer c.Join()()
		virtual.Sleep(10 * time.Millisecond)
		if c.Up() || x.moved.Load() != 1 {
			t.Errorf("Up = %v, %d times told that the layout has changed", c.Up(), x.moved.Load())
		}
		x.saw("a")
		x.ready(c)
		x.saw("a", "first")
		if n := x.moved.Load(); n != 3 {
			t.Errorf("told %d times that the layout has changed, want 3", n)
		}
	})
}

func TestShardIsUpOnAServerThatDoesNotSayWhetherItServesIt(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		x.checks.Store(true)
		x.nodes[0].net.srv.FailNext(3, "NOPERM no hdel", func(args []string) bool { return args[0] == "hdel" })
		x.join("a")
		x.saw("a", "first")
	})
}

// The layout is out of date for a while: the old server sends the subscriber away.
func TestShardThatIsSentAwayAsksForTheLayoutAndDisturbsNobody(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		x.join("staying")
		x.nodes[0].shard.Refuse(func(channel string) string {
			if channel == "moving" {
				return "MOVED 1234 192.0.2.9:6379"
			}
			return ""
		})
		moving := x.Channel("moving")
		defer moving.Join()()
		x.asked.Store(0)
		virtual.Sleep(20 * time.Second)
		if n := x.asked.Load(); n < 15 || n > 60 {
			t.Errorf("%d attempts within 20 s", n)
		}
		if x.moved.Load() < x.asked.Load() {
			t.Error("an attempt was sent away, and the layout not asked for")
		}
		x.move("moving", 1)
		virtual.Sleep(2 * time.Second)
		x.ready(moving)
		x.publish("moving", "m1")
		x.publish("staying", "m1")
		x.saw("moving", "first", "m1")
		x.saw("staying", "first", "m1")
		if n := x.nodes[0].net.dials.Load(); n != 1 {
			t.Errorf("%d dials of the old server, want 1", n)
		}
	})
}

// Channels of several slots in one command are what go-redis sends when it has
// connected anew by itself: none of them is subscribed then.
func TestRefusalOfManyShardsAtOnceBreaksTheConnection(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		x.join("a")
		x.nodes[0].shard.Refuse(func(channel string) string {
			if channel == "b" {
				return "CROSSSLOT Keys in request don't hash to the same slot"
			}
			return ""
		})
		b := x.Channel("b")
		defer b.Join()()
		synctest.Wait()
		x.nodes[0].shard.Refuse(nil)
		virtual.Sleep(time.Second)
		x.ready(b)
		x.saw("a", "first", "again")
	})
}

func TestShardThatIsRefusedSaysSo(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		x.nodes[0].shard.Refuse(func(string) string { return "NOPERM this user has no permissions" })
		c := x.Channel("a")
		defer c.Join()()
		wantText(t, c.Ready(t.Context()), "NOPERM")
		x.nodes[0].shard.Refuse(nil)
		virtual.Sleep(10 * time.Second)
		x.ready(c)
	})
}

func TestBrokenConnectionSubscribesAllShardsAnew(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		names := []string{"a", "b", "c"}
		for _, name := range names {
			x.join(name)
		}
		for range 2 {
			virtual.Sleep(time.Minute)
			x.nodes[0].net.srv.KillSubscribers()
			virtual.Sleep(100 * time.Millisecond)
		}
		x.connections(1, 0)
		for _, name := range names {
			x.publish(name, "m1")
			x.saw(name, "first", "again", "again", "m1")
		}
	})
}

func TestSuspectedShardGetsAnotherConnectionAndTheOthersFollow(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		a, _ := x.join("a")
		b, _ := x.join("b")
		virtual.Sleep(time.Minute)
		x.nodes[0].net.deafen()
		x.publish("a", "lost")
		a.Suspect()
		synctest.Wait()
		x.ready(a)
		x.publish("a", "m1")
		x.saw("a", "first", "again", "m1")
		x.saw("b", "first")
		before := x.moved.Load()
		b.Suspect()
		synctest.Wait()
		if x.moved.Load() == before {
			t.Error("the layout was not asked for: the channel may have moved unnoticed")
		}
		x.ready(b)
		x.publish("b", "m1")
		x.saw("b", "first", "again", "m1")
		x.saw("a", "first", "again", "m1")
		if n := x.nodes[0].net.dials.Load(); n != 2 {
			t.Errorf("%d dials, want 2", n)
		}
		x.connections(1, 0)
	})
}

func TestShardsOfAClosedClientAreClosed(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		c, _ := x.join("a")
		_ = x.nodes[0].rdb.Load().Close()
		virtual.Sleep(5 * time.Second)
		wantText(t, c.Ready(t.Context()), redis.ErrClosed.Error())
	})
}

func TestShardOutlivesAClientThatIsClosedBeforeItDials(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		n := x.nodes[0]
		closed := n.net.srv.Client(t)
		_ = closed.Close()
		n.stale.Store(closed)
		c := x.Channel("a")
		defer c.Join()()
		virtual.Sleep(time.Second)
		x.ready(c)
		x.publish("a", "m1")
		x.saw("a", "first", "m1")
	})
}

// A Cluster client closes its clients of nodes that are gone, and makes new ones.
func TestShardOutlivesTheClientOfItsNode(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		c, _ := x.join("a")
		n := x.nodes[0]
		old := n.rdb.Swap(n.net.srv.Client(t, func(o *redis.Options) { o.Dialer = n.net.dial }))
		_ = old.Close()
		virtual.Sleep(5 * time.Second)
		x.ready(c)
		x.publish("a", "m1")
		x.saw("a", "first", "again", "m1")
	})
}

// slowly makes each connection of the subscriber's to a node take so long.
func (x *cluster) slowly(n *shardNode, takes time.Duration) {
	x.t.Helper()
	n.rdb.Store(n.net.srv.Client(x.t, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case <-time.After(takes):
				return n.net.dial(ctx, network, addr)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}))
}

// Fails when a dial has to be over in the time of an acknowledgement: the next one begins anew, and nothing is ever heard.
func TestShardIsHeardThoughItsConnectionTakesLong(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		x.slowly(x.nodes[0], 4*time.Second)
		a, b := x.Channel("a"), x.Channel("b")
		defer a.Join()()
		virtual.Sleep(3 * time.Second)
		defer b.Join()()
		virtual.Sleep(1100 * time.Millisecond)
		if !a.Up() || !b.Up() {
			t.Fatalf("after the 4 s of the dial: Up = %v and %v", a.Up(), b.Up())
		}
		x.publish("a", "m1")
		x.saw("a", "first", "m1")
		if n := x.nodes[0].net.dials.Load(); n != 1 {
			t.Errorf("%d dials, want 1", n)
		}
	})
}

// Fails when a dial that hangs is waited for although another server has the channel by now.
func TestShardLeavesADialThatHangsWhenItsSlotMoves(t *testing.T) {
	sharded(t, func(t *testing.T, x *cluster) {
		x.nodes[0].net.hang.Store(true)
		c := x.Channel("a")
		defer c.Join()()
		virtual.Sleep(time.Second)
		x.move("a", 1)
		virtual.Sleep(1100 * time.Millisecond)
		if !c.Up() {
			t.Fatal("not subscribed 1.1 s after the slot has moved")
		}
		if n := x.nodes[0].net.hanging.Load(); n > 0 {
			t.Errorf("%d dials hang still", n)
		}
		x.publish("a", "m1")
		x.saw("a", "first", "m1")
	})
}
