package listener

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/renewal"
)

// shardLinger is how long a lock's channel stays subscribed after its last waiter has left. It is longer than
// an echo takes, and than a hand-over within the process.
const shardLinger = 5 * time.Second

// Config says whose listeners they are, and which functions they call.
type Config struct {
	Prefix  string // of the keys
	Client  string
	Sharded bool // each lock has a channel in its own slot
	Redis   redis.UniversalClient

	// Deliver and Linked run on goroutines of a link, and must not block.
	Deliver func(payload string)
	// Linked says that messages of a channel may have been missed. first: the channel is subscribed for the
	// first time.
	Linked  func(channel string, first bool)
	Refused func(err error) bool
	// Reload has the redis client read its layout again: a link may have broken because its server is gone.
	Reload func()
	Spread func(time.Duration) time.Duration

	Now func() clock.Instant
	Set func(t *renewal.Task, at clock.Instant) // schedules a Check of t.Of for that instant
	Log *slog.Logger
}

// Listeners are all listeners of one client.
type Listeners struct {
	cfg    Config
	all    *Listener     // the inbox; it exists with sharded channels too, but is not started then
	shards *inbox.Shards // nil: there is only the inbox
	linked atomic.Bool   // the inbox has been subscribed
	sight  atomic.Int32  // a wire.Sight: whether scripts see the client's subscription

	mu sync.Mutex // guards since of each listener
}

// New returns the listeners of a client. It does no I/O.
func New(cfg Config) *Listeners {
	ls := &Listeners{cfg: cfg}
	channel := key.Inbox(cfg.Prefix, cfg.Client)
	box := inbox.New(inbox.Config{
		Subscribe: func(ctx context.Context, channels ...string) *redis.PubSub {
			cfg.Reload()
			return cfg.Redis.Subscribe(ctx, channels...)
		},
		Channel: channel,
		Deliver: cfg.Deliver,
		Linked:  func() { ls.linkedAs(channel, !ls.linked.Swap(true)) },
		Refused: cfg.Refused,
		Failed:  func(err error) { ls.failed(channel, err) },
		Spread:  cfg.Spread,
	})
	ls.all = newListener(channel, box)
	ls.all.Inbox = box
	if cfg.Sharded {
		ls.shards = ls.newShards()
	}
	return ls
}

func (ls *Listeners) newShards() *inbox.Shards {
	return inbox.NewShards(inbox.ShardsConfig{
		Node:    ls.node,
		Serves:  inbox.Serves,
		Moved:   ls.cfg.Reload,
		Deliver: func(_, payload string) { ls.cfg.Deliver(payload) },
		Linked:  ls.linkedAs,
		Refused: ls.cfg.Refused,
		Failed:  ls.failed,
		Linger:  shardLinger,
		Spread:  ls.cfg.Spread,
	})
}

// node returns the server that serves a channel.
func (ls *Listeners) node(ctx context.Context, channel string) (string, inbox.Node, error) {
	many, ok := ls.cfg.Redis.(interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	})
	if !ok {
		return "", ls.cfg.Redis, nil
	}
	// Not SSubscribe of the Cluster client: it may use a replica, and it has its own layout.
	node, err := many.MasterForKey(ctx, channel)
	if err != nil {
		return "", nil, err
	}
	return node.Options().Addr, node, nil
}

// Inbox returns the inbox for all locks. It starts with the first lock, unless the locks have sharded
// channels.
func (ls *Listeners) Inbox() *inbox.Inbox { return ls.all.Inbox }

// Of returns the listener for the lock with this hash.
func (ls *Listeners) Of(hash string) *Listener {
	if ls.shards == nil {
		return ls.all
	}
	channel := key.ShardInbox(ls.cfg.Prefix, hash, ls.cfg.Client)
	shard := ls.shards.Channel(channel)
	l := newListener(channel, shard)
	l.shard = shard
	return l
}

// failed is called when a channel cannot be subscribed: the first time at once, then in growing intervals.
func (ls *Listeners) failed(channel string, err error) {
	ls.cfg.Log.Warn("inbox cannot be subscribed, trying again", slog.String("channel", channel), slog.Any("err", err))
}

// Close ends all subscriptions and returns when their goroutines have ended.
func (ls *Listeners) Close() {
	ls.all.Inbox.Close()
	if ls.shards != nil {
		ls.shards.Close()
	}
}
