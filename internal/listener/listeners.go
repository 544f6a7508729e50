package listener

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/wire"
)

// Config says which client the listeners belong to, and which functions they call.
type Config struct {
	Prefix  string // of the keys
	Client  string
	Sharded bool // each lock has a channel in its own slot
	Redis   redis.UniversalClient

	// Deliver and Linked run on the goroutine that reads a connection, and must not block.
	Deliver func(payload string)
	// Linked is called when messages of a channel may have been missed. first: it is the channel's first subscription.
	Linked  func(channel string, first bool)
	Refused func(err error) bool
	// Reload makes the redis client load the Cluster's layout again: a link may have broken because its server is gone.
	Reload func()

	Now func() clock.Instant
	Set func(t *renewal.Task, at clock.Instant) // schedules a Check of t.Of for that instant
	Log *slog.Logger
}

// Listeners are all listeners of one client.
type Listeners struct {
	cfg    Config
	all    *Listener     // uses the inbox; it exists with sharded channels too, but is not started then
	shards *inbox.Shards // nil: there is only the inbox
	sight  atomic.Int32  // a wire.Sight: whether scripts see the client's subscription

	mu     sync.Mutex    // guards since of each listener, and echoes
	echoes chan struct{} // closed by the next echo; nil: no HearEcho waits for one
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
		Linked:  func(first bool) { ls.linked(channel, first) },
		Refused: cfg.Refused,
		Failed:  func(err error) { ls.failed(channel, err) },
	})
	ls.all = newListener(channel, box)
	ls.all.Inbox = box
	if cfg.Sharded {
		ls.shards = ls.newShards()
	}
	return ls
}

// Echo returns which echo a request must ask for. silent says that l has received nothing for long. If scripts do not
// see the client's subscription, each request must vouch for it, because what a script notes of that expires.
func (ls *Listeners) Echo(l *Listener, silent bool) wire.Echo {
	switch sight := wire.Sight(ls.sight.Load()); {
	case sight == wire.Unseen && l.Up():
		return wire.Vouch
	case sight != wire.Seen || silent:
		return wire.Prove
	}
	return wire.Quiet
}

// Echoed records an echo. It returns true for the first echo that says that scripts do not see the client's
// subscription. Then all waiters must ask again, so that their requests vouch for it.
func (ls *Listeners) Echoed(sight wire.Sight) (unseen bool) {
	ls.mu.Lock()
	if ls.echoes != nil {
		close(ls.echoes)
		ls.echoes = nil
	}
	ls.mu.Unlock()
	if sight == wire.Unknown { // the echo of a permission check
		return false
	}
	before := ls.sight.Swap(int32(sight))
	return sight == wire.Unseen && before != int32(sight)
}

// linked is called when a channel has a new connection. It may be to another server, so the sight is unknown again.
func (ls *Listeners) linked(channel string, first bool) {
	ls.sight.Store(int32(wire.Unknown))
	ls.cfg.Linked(channel, first)
}

// HearEcho calls publish, which publishes an echo, and waits until l hears it. It gives up a link that does not hear
// the echo in time, as Check does.
func (ls *Listeners) HearEcho(ctx context.Context, l *Listener, publish func() error) error {
	sent, next := ls.cfg.Now(), ls.nextEcho()
	if err := publish(); err != nil {
		return err
	}
	late := time.NewTimer(echoGrace)
	defer late.Stop()
	for {
		select {
		case <-next:
		case <-late.C:
			l.Suspect()
			return l.Subscribing(errDeaf)
		case <-ctx.Done():
			return l.Subscribing(errDeaf)
		}
		next = ls.nextEcho()                // before the check, so that no echo is missed in between
		if !l.Heard().Before(sent.Time()) { // otherwise the echo came on another channel
			return nil
		}
	}
}

// nextEcho returns a channel that the next echo closes, no matter which listener hears it.
func (ls *Listeners) nextEcho() <-chan struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.echoes == nil {
		ls.echoes = make(chan struct{})
	}
	return ls.echoes
}

// Expect schedules a Check that l has heard the echo of the request that was sent at that instant.
func (ls *Listeners) Expect(l *Listener, sent clock.Instant) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.since.IsZero() {
		// Only the oldest request counts. Otherwise frequent heartbeats would postpone the check for ever.
		l.since = sent
		ls.cfg.Set(&l.echo, ls.cfg.Now().Add(echoGrace))
	}
}

// Check gives up l's connection if it has received nothing since the echo was requested. Such a connection is half
// open, or its server does not serve the lock any more, so no message would come.
func (ls *Listeners) Check(l *Listener) {
	ls.mu.Lock()
	since := l.since
	l.since = clock.Instant{}
	ls.mu.Unlock()
	if l.Heard().Before(since.Time()) {
		ls.cfg.Log.Warn("inbox does not hear, connecting again")
		l.Suspect()
	}
}

func (ls *Listeners) newShards() *inbox.Shards {
	return inbox.NewShards(inbox.ShardsConfig{
		Node: func(ctx context.Context, channel string) (string, inbox.Node, error) {
			return inbox.NodeOf(ctx, ls.cfg.Redis, channel)
		},
		Serves:  inbox.Serves,
		Moved:   ls.cfg.Reload,
		Deliver: func(_, payload string) { ls.cfg.Deliver(payload) },
		Linked:  ls.linked,
		Refused: ls.cfg.Refused,
		Failed:  ls.failed,
		Linger:  shardLinger,
	})
}

// Inbox returns the inbox for all locks. The first lock starts it, unless the locks have sharded channels.
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

// failed logs that a channel cannot be subscribed. It is called for the first failure and then in growing intervals.
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

// echoGrace is how long an echo may take before the connection is given up.
const echoGrace = time.Second

// errDeaf is the error of a link that did not hear an echo in time.
var errDeaf = errors.New("a message that this client published to itself was not heard")

// shardLinger is how long a lock's channel stays subscribed after its last waiter has left. It is longer than an echo
// takes, or than passing the lock on within the process.
const shardLinger = 5 * time.Second
