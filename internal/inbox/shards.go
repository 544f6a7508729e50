package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ShardsConfig says where sharded channels are served, and whom to tell.
//
// Deliver and Linked are called one at a time for one channel, and at the same
// time for several. They must not block, and must not call Close.
type ShardsConfig struct {
	// Node returns a client of the server that serves the channel, and a name
	// that tells it from others: "" if there is only one.
	Node func(ctx context.Context, channel string) (name string, node Node, err error)
	// Serves, if it is not nil, is asked after each acknowledgement, and returns an error
	// if the node does not serve the channel after all. A primary that has just become
	// a replica takes subscriptions, too, and hears nothing of what its successor
	// publishes before the two have met.
	Serves func(ctx context.Context, node Node, channel string) error
	// Moved is called when a channel may be served by another server than
	// Node said.
	Moved func()
	// Plain: the channels are ordinary ones, for servers without sharded pub/sub.
	Plain bool
	// Deliver is handed every message.
	Deliver func(channel, payload string)
	// Linked is called at every acknowledged subscription of a channel, before
	// any message that follows it: messages may have been missed until now.
	// first says that it has not been subscribed since it was joined.
	Linked func(channel string, first bool)
	// Refused and Failed are as in [Config]. Failed may be called for several channels at the same time.
	Refused func(err error) bool
	Failed  func(channel string, err error)
	// Linger is how long a channel stays subscribed after its last user has left.
	Linger time.Duration
	// Spread is as in [Config].
	Spread func(time.Duration) time.Duration
}

// A Node is a redis client of one server. It opens a subscription without a channel. The [Shards] decide
// which channels to subscribe to, and how.
type Node interface {
	SSubscribe(ctx context.Context, channels ...string) *redis.PubSub
	HDel(ctx context.Context, key string, fields ...string) *redis.IntCmd
}

// Serves implements [ShardsConfig.Serves] for servers of a Cluster. It sends a write command that changes
// nothing: a replica answers with a redirection.
func Serves(ctx context.Context, node Node, channel string) error {
	err := node.HDel(ctx, channel, "-").Err()
	var answer redis.Error
	if _, moved := redis.IsMovedError(err); !moved && !redis.IsReadOnlyError(err) && errors.As(err, &answer) {
		return nil // another error is no reason not to listen
	}
	return err
}

// Shards keeps a client subscribed to each channel while somebody wants it. The channels are sharded ones
// unless Plain is set. Every channel is an [Inbox]. The channels of one server share a connection.
//
// go-redis does not maintain such subscriptions: it does not follow a slot that moves, and it subscribes to
// channels of several slots in one command, which Redis refuses. So each connection is used until its first
// failure, and each channel is subscribed by its own command.
type Shards struct {
	cfg    ShardsConfig
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // all goroutines except those of the inboxes

	mu     sync.Mutex // protects following fields
	closed bool
	boxes  map[string]*box
	wires  map[string]*wire // by server, for new subscriptions
	gone   map[string]Node  // by server: its client when that was found closed
}

// box is one channel that is wanted or lingers.
type box struct {
	*Inbox
	users  int         // guarded by Shards.mu
	linger *time.Timer // guarded by Shards.mu; nil while it is wanted
	linked bool        // has been subscribed; for Linked, one call at a time
	last   *tap        // guarded by Shards.mu; the latest link that found its server
}

// NewShards returns a Shards. It starts nothing: the first [Channel.Join] does.
func NewShards(cfg ShardsConfig) *Shards {
	s := &Shards{cfg: cfg, boxes: make(map[string]*box), wires: make(map[string]*wire), gone: make(map[string]Node)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// A Channel is a handle on one sharded channel. It costs nothing by itself.
type Channel struct {
	s    *Shards
	name string
}

// Channel returns a handle on the channel of that name.
func (s *Shards) Channel(name string) *Channel { return &Channel{s, name} }

// Close ends all subscriptions and returns when their goroutines have ended,
// within the timeouts of the redis client.
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
		Linked: func() {
			first := !b.linked
			b.linked = true
			s.cfg.Linked(channel, first)
		},
		Refused: s.cfg.Refused,
		Failed: func(err error) {
			if s.cfg.Failed != nil {
				s.cfg.Failed(channel, err)
			}
		},
		Spread: s.cfg.Spread,
	})
	b.open = func(context.Context) feed {
		return &tap{s: s, box: b, channel: channel, news: make(chan struct{}, 1)}
	}
	return b
}

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
	if s.closed || b.users > 0 || s.boxes[channel] != b {
		s.mu.Unlock()
		return
	}
	delete(s.boxes, channel)
	s.wg.Go(b.Close)
	s.mu.Unlock()
}

// doubted returns the wire of the last link if the inbox gave up that link, because it heard nothing when it
// should have.
func (s *Shards) doubted(b *box) *wire {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.last == nil {
		return nil
	}
	b.last.mu.Lock()
	defer b.last.mu.Unlock()
	if b.last.err != nil {
		return nil // the wire has ended it: moved, refused or broken
	}
	return b.last.wire
}

// newWire makes a wire to the node. It needs s.mu.
func (s *Shards) newWire(name string, node Node) *wire {
	w := &wire{s: s, name: name, node: node, work: make(chan struct{}, 1), taps: make(map[string]*tap)}
	w.ctx, w.cancel = context.WithCancel(s.ctx)
	w.ps = node.SSubscribe(w.ctx) // without a channel: no I/O yet
	s.wg.Go(w.write)
	return w
}

// retire makes sure that no new tap uses w.
func (s *Shards) retire(w *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wires[w.name] == w {
		delete(s.wires, w.name)
	}
}

// Join keeps the channel subscribed until leave is called, plus the time it lingers. It does not wait.
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

func (c *Channel) box() *box {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.boxes[c.name]
}

// Ready is [Inbox.Ready] of a channel that has been joined. For other channels it returns ErrClosed.
func (c *Channel) Ready(ctx context.Context) error {
	if b := c.box(); b != nil {
		return b.Ready(ctx)
	}
	return ErrClosed
}

// Up is [Inbox.Up]; false while the channel is not subscribed.
func (c *Channel) Up() bool {
	b := c.box()
	return b != nil && b.Up()
}

// Down is [Inbox.Down].
func (c *Channel) Down() error {
	if b := c.box(); b != nil {
		return b.Down()
	}
	return ErrClosed
}

// Heard is [Inbox.Heard]; the zero time while the channel is not subscribed.
func (c *Channel) Heard() time.Time {
	if b := c.box(); b != nil {
		return b.Heard()
	}
	return time.Time{}
}

// Suspect is [Inbox.Suspect]: the channel gets a new connection. The other channels of its server keep theirs
// until they are suspected too.
func (c *Channel) Suspect() {
	if b := c.box(); b != nil {
		b.Suspect()
	}
}
