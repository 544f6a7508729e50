package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ShardsConfig says which servers serve sharded channels, and which functions to call.
//
// Deliver and Linked are called one at a time for each channel, but at the same time for different channels. They must
// not block, and must not call Close.
type ShardsConfig struct {
	// Node returns a client of the server that serves the channel, and the server's name: "" if there is only one.
	Node func(ctx context.Context, channel string) (name string, node Node, err error)
	// Serves, if not nil, is called after each acknowledgement. It returns an error if the node does not serve the
	// channel. A primary that has just become a replica still accepts subscriptions, but receives no messages from the
	// new primary until it replicates from it.
	Serves func(ctx context.Context, node Node, channel string) error
	// Moved is called when a channel may have moved to another server than the one that Node returned.
	Moved func()
	// Plain: the channels are ordinary ones, for servers without sharded pub/sub.
	Plain bool
	// Deliver is handed every message.
	Deliver func(channel, payload string)
	// Linked is called at every acknowledged subscription of a channel, before Deliver of any later message: messages
	// may have been missed until then. first: it is the first subscription since the channel was joined.
	Linked func(channel string, first bool)
	// Refused and Failed are as in [Config]. Failed may be nil, or called for several channels at the same time.
	Refused func(err error) bool
	Failed  func(channel string, err error)
	// Linger is how long a channel stays subscribed after its last user has left.
	Linger time.Duration
}

// A Node is a redis client of one server. Shards call SSubscribe without a channel, only to get a PubSub. On that they
// subscribe to each channel by a command of its own. [Serves] needs HDel.
type Node interface {
	SSubscribe(ctx context.Context, channels ...string) *redis.PubSub
	HDel(ctx context.Context, key string, fields ...string) *redis.IntCmd
}

// NodeOf implements [ShardsConfig.Node] for rdb, which may be a client of a Cluster.
func NodeOf(ctx context.Context, rdb Node, channel string) (name string, node Node, err error) {
	many, ok := rdb.(interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	})
	if !ok {
		return "", rdb, nil
	}
	// The Cluster client's own SSubscribe will not do: it may use a replica, and it does not tell which server it uses.
	primary, err := many.MasterForKey(ctx, channel)
	if err != nil {
		return "", nil, err
	}
	return primary.Options().Addr, primary, nil
}

// Serves implements [ShardsConfig.Serves] for servers of a Cluster. It sends a write command that changes nothing: a
// server that does not serve the channel answers with a redirection.
func Serves(ctx context.Context, node Node, channel string) error {
	err := node.HDel(ctx, channel, "-").Err()
	var answer redis.Error
	if _, moved := redis.IsMovedError(err); !moved && !redis.IsReadOnlyError(err) && errors.As(err, &answer) {
		return nil // other errors of Redis say nothing about who serves the channel
	}
	return err
}

// Shards keeps a client subscribed to the channels that are joined. These are sharded channels unless Plain is set.
// Every channel has an [Inbox]. The channels of one server share a connection.
//
// go-redis cannot keep such subscriptions alive. It does not follow a slot that moves. When it reconnects, it
// subscribes to channels of several slots in one command, which Redis refuses. So each connection is used until its
// first failure, and each channel is subscribed by its own command.
type Shards struct {
	cfg    ShardsConfig
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // all goroutines except those of the inboxes
	none   *Inbox         // a closed inbox, which stands for that of a channel that is not joined

	mu            sync.Mutex // guards the following fields
	closed        bool
	boxes         map[string]*box        // by channel
	conns         map[string]*sharedConn // by server, for new subscriptions
	closedClients map[string]Node        // by server: a client that was found closed
}

// A box is the inbox of one channel that is joined, or whose last user has left less than Linger ago.
type box struct {
	*Inbox
	users    int          // guarded by Shards.mu
	linger   *time.Timer  // guarded by Shards.mu; nil while there are users
	lastFeed *channelFeed // guarded by Shards.mu; the feed of the latest link that found its server
}

// NewShards returns a Shards. It starts nothing: the first [Channel.Join] does.
func NewShards(cfg ShardsConfig) *Shards {
	s := &Shards{cfg: cfg, boxes: make(map[string]*box), conns: make(map[string]*sharedConn), closedClients: make(map[string]Node)}
	s.none = New(Config{})
	s.none.Close()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// A Channel is a handle on one sharded channel. It holds no resources.
type Channel struct {
	s    *Shards
	name string
}

// Channel returns a handle on the channel of that name.
func (s *Shards) Channel(name string) *Channel { return &Channel{s, name} }

// Close ends all subscriptions and returns when their goroutines have ended, within the timeouts of the redis client.
func (s *Shards) Close() {
	s.mu.Lock()
	s.closed = true
	for _, b := range s.boxes {
		if b.linger != nil {
			b.linger.Stop()
		}
		s.wg.Go(b.Close)
	}
	clear(s.boxes)
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
}

func (s *Shards) newBox(channel string) *box {
	b := &box{}
	b.Inbox = New(Config{
		Channel: channel,
		Deliver: func(payload string) { s.cfg.Deliver(channel, payload) },
		Linked:  func(first bool) { s.cfg.Linked(channel, first) },
		Refused: s.cfg.Refused,
		Failed: func(err error) {
			if s.cfg.Failed != nil {
				s.cfg.Failed(channel, err)
			}
		},
	})
	b.open = func(context.Context) feed {
		return &channelFeed{s: s, box: b, channel: channel, wakeup: make(chan struct{}, 1)}
	}
	return b
}

// leave ends a Join. The channel lingers after its last user, so that the next user finds it subscribed.
func (s *Shards) leave(channel string, b *box) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.users--
	if b.users == 0 && !s.closed {
		b.linger = time.AfterFunc(s.cfg.Linger, func() { s.expire(channel, b) })
	}
}

// expire ends a channel whose linger time has passed. It runs on a timer's goroutine.
func (s *Shards) expire(channel string, b *box) {
	s.mu.Lock()
	if b.users > 0 || s.boxes[channel] != b {
		s.mu.Unlock()
		return
	}
	delete(s.boxes, channel)
	s.wg.Go(b.Close)
	s.mu.Unlock()
}

// suspectedConn returns the connection of b's last link, if the inbox gave that link up for want of an acknowledgement
// or an echo. Otherwise it returns nil. The next link must not use that connection.
func (s *Shards) suspectedConn(b *box) *sharedConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.lastFeed == nil {
		return nil
	}
	b.lastFeed.mu.Lock()
	defer b.lastFeed.mu.Unlock()
	if b.lastFeed.err != nil {
		return nil // the link ended for another reason: its channel moved or was refused, or the connection broke
	}
	return b.lastFeed.conn
}

// newConn makes a connection to the node. It needs s.mu.
func (s *Shards) newConn(name string, node Node) *sharedConn {
	c := &sharedConn{s: s, name: name, node: node, feeds: make(map[string]*channelFeed)}
	c.work, c.dialled = make(chan struct{}, 1), make(chan struct{})
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.ps = node.SSubscribe(c.ctx) // without a channel: no I/O yet
	s.wg.Go(c.write)
	return c
}

// retire makes sure that no new feed uses c.
func (s *Shards) retire(c *sharedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c.name] == c {
		delete(s.conns, c.name)
	}
}

// Join keeps the channel subscribed until leave is called, and for the Linger time after that. It does not wait.
func (c *Channel) Join() (leave func()) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return func() {}
	}
	b := s.boxes[c.name]
	if b == nil {
		b = s.newBox(c.name)
		s.boxes[c.name] = b
	}
	b.users++
	if b.linger != nil {
		b.linger.Stop()
		b.linger = nil
	}
	b.Start()
	return sync.OnceFunc(func() { s.leave(c.name, b) })
}

func (c *Channel) inbox() *Inbox {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if b := c.s.boxes[c.name]; b != nil {
		return b.Inbox
	}
	return c.s.none
}

// Ready is [Inbox.Ready] of a channel that has been joined. For other channels it returns ErrClosed.
func (c *Channel) Ready(ctx context.Context) error { return c.inbox().Ready(ctx) }

// Up is [Inbox.Up]; false while the channel is not subscribed.
func (c *Channel) Up() bool { return c.inbox().Up() }

// Down is [Inbox.Down].
func (c *Channel) Down() error { return c.inbox().Down() }

// Heard is [Inbox.Heard]; the zero time while the channel is not subscribed.
func (c *Channel) Heard() time.Time { return c.inbox().Heard() }

// Suspect is [Inbox.Suspect]: the link counts as dead, and the channel gets a new connection. Other channels of its
// server keep theirs until they are suspected too.
func (c *Channel) Suspect() { c.inbox().Suspect() }
