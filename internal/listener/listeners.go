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

// shardLinger is how long a lock's channel stays subscribed that nobody
// waits for: longer than an echo takes, and than a hand-over within the process.
const shardLinger = 5 * time.Second

// Config is whose listeners they are, and whom they tell.
type Config struct {
	Prefix  string // of the keys
	Client  string
	Sharded bool // each lock has a channel in its own slot
	Redis   redis.UniversalClient

	// Deliver and Linked run on goroutines of a link, and must not block.
	Deliver func(payload string)
	// Linked says that messages of a channel may have been missed. first: nobody has
	// waited for any yet.
	Linked  func(channel string, first bool)
	Refused func(err error) bool
	// Reload has the redis client learn its layout anew: a link may have broken with a
	// server that is gone.
	Reload func()
	Spread func(time.Duration) time.Duration

	Now func() clock.Instant
	Set func(t *renewal.Task, at clock.Instant) // has Check called then with what the task is of
	Log *slog.Logger
}

// Listeners are all of one client.
type Listeners struct {
	cfg    Config
	all    *Listener     // the inbox; it is there with shards too, and does not start then
	shards *inbox.Shards // nil: there is the inbox alone
	linked atomic.Bool   // the inbox has been subscribed
	sight  atomic.Int32  // a wire.Sight: whether scripts see who is subscribed

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

// node is the server that has a channel.
func (ls *Listeners) node(ctx context.Context, channel string) (string, inbox.Node, error) {
	many, ok := ls.cfg.Redis.(interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	})
	if !ok {
		return "", ls.cfg.Redis, nil
	}
	// Not SSubscribe of a Cluster's client: that may be on a replica, and goes by a layout of its own.
	node, err := many.MasterForKey(ctx, channel)
	if err != nil {
		return "", nil, err
	}
	return node.Options().Addr, node, nil
}

// Inbox is that of all locks, which starts with the first of them unless they have
// channels of their own.
func (ls *Listeners) Inbox() *inbox.Inbox { return ls.all.Inbox }

// Of returns the listener for the lock that has the hash.
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

// failed is called when a channel cannot be subscribed: at once, and later less and
// less often.
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
