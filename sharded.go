package relock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

const (
	// shardedMark begins the ID of a client that hears on sharded channels: who
	// tells it something knows how by that. No other ID has a dot.
	shardedMark = "s."
	// shardLinger is how long a lock's channel stays subscribed that nobody
	// waits for: longer than an echo takes, and than a hand-over within the process.
	shardLinger = 5 * time.Second
)

// ShardedPubSub has waiters woken over sharded pub/sub. In a Cluster a message
// then goes to the one server that serves the lock's slot, where plain pub/sub
// sends it to all. The client keeps a subscription for each lock that somebody
// waits for here, and one connection for those of a server. Others may have
// the option or not: clients of both sorts wake each other.
//
// It needs Redis 7.0, and permissions that docs/operations.md lists. A hold that
// ForceUnlock ends is told of it by its next renewal only, unless somebody
// waits here for the same lock.
func ShardedPubSub() Option {
	return option(func(c *config) error {
		c.sharded = true
		return nil
	})
}

// hearing is a subscription that may be up, or be coming.
type hearing interface {
	Ready(ctx context.Context) error
	Up() bool
	Down() error // why it is not up
	Heard() time.Time
	Suspect()
}

// A listener is where a client hears of a lock: its inbox, which it has for all, or
// a channel of the lock's own slot.
type listener struct {
	hearing
	channel string
	shard   *inbox.Channel // nil: the inbox
	echo    renewal.Task   // looks whether an echo has come
	since   instant        // guarded by Client.mu: since when one is awaited
}

func newListener(channel string, h hearing) *listener {
	e := &listener{hearing: h, channel: channel}
	e.echo.Of = e
	return e
}

// listenerFor returns the listener for a lock.
func (c *Client) listenerFor(hash string) *listener {
	if c.shards == nil {
		return c.listener
	}
	channel := key.ShardInbox(c.cfg.prefix, hash, c.id)
	shard := c.shards.Channel(channel)
	e := newListener(channel, shard)
	e.shard = shard
	return e
}

// join makes the listener hear for a while: a sharded channel is subscribed for who
// waits. The inbox is subscribed for life.
func (e *listener) join() (leave func()) {
	if e.shard == nil {
		return func() {}
	}
	return e.shard.Join()
}

// needs is what the user must be permitted for the listener to hear.
func (e *listener) needs() string {
	if e.shard == nil {
		return "subscribe"
	}
	return "ssubscribe, sunsubscribe"
}

// subscribing says of err, the end of a wait for the listener, what was waited for.
func (e *listener) subscribing(err error) error {
	return fmt.Errorf("subscribing to the inbox %s: %w", e.channel, err)
}

// newShards returns what a client with the option hears by.
func (c *Client) newShards(rdb redis.UniversalClient) *inbox.Shards {
	return inbox.NewShards(inbox.ShardsConfig{
		Node: func(ctx context.Context, channel string) (string, inbox.Node, error) {
			many, ok := rdb.(interface {
				MasterForKey(ctx context.Context, key string) (*redis.Client, error)
			})
			if !ok {
				return "", rdb, nil
			}
			// Not rdb.SSubscribe: that may be on a replica, and goes by a layout of its own.
			node, err := many.MasterForKey(ctx, channel)
			if err != nil {
				return "", nil, err
			}
			return node.Options().Addr, node, nil
		},
		Serves:  inbox.Serves,
		Moved:   c.transport.Reload,
		Deliver: func(_, payload string) { c.deliver(payload) },
		Linked:  c.linked,
		Refused: isRefused,
		Failed:  c.deaf,
		Linger:  shardLinger,
		Spread:  transport.Spread,
	})
}

// listen keeps the call's lock heard of until the call is over.
func (w *waiting) listen() {
	if w.keeper.listener.shard != nil && w.leave == nil {
		w.leave = w.keeper.listener.join()
	}
}

func (w *waiting) unlisten() {
	if w.leave != nil {
		w.leave()
		w.leave = nil
	}
}

// errNotSharded is the error of servers before sharded pub/sub.
var errNotSharded = errors.New("the server has no sharded pub/sub: ShardedPubSub needs Redis 7.0 or later")

// deaf is called when a channel cannot be subscribed: at once, and later less and
// less often.
func (c *Client) deaf(channel string, err error) {
	c.cfg.log.Warn("inbox cannot be subscribed, trying again", slog.String("channel", channel), slog.Any("err", err))
}

// linked is called when a channel has a new connection: any message may have
// been missed, and the server may be another one, which has lost the latest
// writes. Every waiter who would have heard of them there asks, and what was
// released of late is released again.
func (c *Client) linked(channel string, first bool) {
	c.sight.Store(int32(wire.Unknown))
	if !first {
		now := c.clock.Now()
		c.labels.Doubt(now)
		c.journal.Suspect(now)
	}
	c.rouse(func(a *acquisition) bool { return a.keeper.listener.channel == channel }, !first)
}

// rouse has waiters ask, and with elsewhere those who hold and have said so to another
// server say it again.
func (c *Client) rouse(which func(a *acquisition) bool, elsewhere bool) {
	c.mu.Lock()
	all := make([]*acquisition, 0, len(c.sessions))
	for _, a := range c.sessions {
		if which(a) {
			all = append(all, a)
		}
	}
	c.mu.Unlock()
	for _, a := range all {
		at := a.keeper.begin()
		if a.Waits() {
			a.Entry.Kick(&at)
		}
		if a.Away() && elsewhere {
			a.Entry.Shake(&at)
		}
		a.keeper.end(&at)
	}
}

// echoGrace is how long an echo may take before the inbox counts as deaf.
const echoGrace = time.Second

// echo is what a request that may wait asks of the listener, which has been silent or not.
// A client that is not seen vouches each time: what a script notes of that ends.
func (c *Client) echo(e *listener, silent bool) wire.Echo {
	switch sight := wire.Sight(c.sight.Load()); {
	case sight == wire.Unseen && e.Up():
		return wire.Vouch
	case sight != wire.Seen || silent:
		return wire.Prove
	}
	return wire.Quiet
}

// echoed is called when an echo is heard. The first that says that the client is not seen
// has all who wait ask again: from then on they vouch.
func (c *Client) echoed(sight wire.Sight) {
	if sight == wire.Unknown { // what is asked of permissions
		return
	}
	if before := c.sight.Swap(int32(sight)); sight == wire.Unseen && before != int32(sight) {
		c.rouse(func(*acquisition) bool { return true }, false)
	}
}

// expectEcho checks later that the echo of a heartbeat sent at the given time has come.
func (c *Client) expectEcho(e *listener, sent instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.since.IsZero() {
		// Only the oldest is waited for: heartbeats that follow each other
		// closely must not put the verdict off.
		e.since = sent
		c.watchdog.Set(&e.echo, c.clock.Now().Add(echoGrace))
	}
}

// checkEcho gives up a connection that did not hear what was published to it: it
// is half open, or with a server that serves the lock no more, and waiting on it
// would be in vain.
func (c *Client) checkEcho(e *listener) {
	c.mu.Lock()
	since := e.since
	e.since = instant{}
	c.mu.Unlock()
	if e.Heard().Before(since.Time()) {
		c.cfg.log.Warn("inbox does not hear, connecting again")
		e.Suspect()
	}
}
