package relock

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/label"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/replay"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

type instant = clock.Instant

// A Locker is a lock that is waited for with a context: an exclusive lock, or
// one side of a read/write lock. The interface never grows.
type Locker interface {
	// Lock waits until the caller holds the lock; ctx bounds the wait, never the hold.
	Lock(ctx context.Context) error
	// TryLock returns (false, nil) when the lock is taken for as long as wait.
	TryLock(ctx context.Context, wait time.Duration) (bool, error)
	// Unlock is called exactly once for each success, also after a loss.
	Unlock() error
}

var _ Locker = (*Lock)(nil)

// A Client makes locks in one Redis. It has one subscription, or with
// ShardedPubSub one for each hash tag that is waited for, and one watchdog goroutine
// for all its locks, started on first use. Its methods may be called from any
// goroutine.
type Client struct {
	id          string // 128 random bits: the inbox, and half of every session's identity
	name        string // a random UUID, in generated owners: whoever sees it cannot tell the inbox
	owners      atomic.Int64
	losses      atomic.Uint64 // of sessions
	labels      *label.Book
	specs       specs
	cfg         config
	inboxPrefix string
	wire        *wire.Encoder
	transport   *transport.Transport
	inbox       *inbox.Inbox
	shards      *inbox.Shards // instead of the inbox; nil without the option
	listener    *listener     // the inbox's
	watchdog    *renewal.Schedule
	clock       *clock.Clock
	journal     *replay.Journal // releases of late; mu guards it too
	skew        atomic.Int64    // the clock of the server that answered last less ours, in ms
	replayTask  renewal.Task    // the next round of what is released again
	permitted   atomic.Bool     // the user may run all that scripts need
	acked       atomic.Bool     // and WAIT, which Replicas needs
	onlyOne     atomic.Bool     // a script may name one lock only
	linkedOnce  atomic.Bool     // the inbox has been subscribed
	sight       atomic.Int32    // a wire.Sight: whether scripts see who is subscribed
	ending      atomic.Bool     // Close has been called: nothing is granted any more

	ctx     context.Context // ends with Close; for what goes on without a caller
	cancel  context.CancelFunc
	open    context.Context // ends with Shutdown or Close; for waiters
	shut    context.CancelFunc
	closing <-chan struct{} // open's Done
	wg      sync.WaitGroup

	mu       sync.Mutex                    // guards the following fields; taken after a room's mu
	rooms    map[string]map[string]*keeper // by kind, and by the lock's key: a word less for each than by both
	sessions map[wire.Nonce]*acquisition   // by nonce: waiting, holding, or being released
	tasks    int                           // spawned and not ended
	idle     chan struct{}                 // closed and replaced when something ends that Shutdown waits for
	draining bool
	closed   bool
}

// New returns a Client that makes locks in the Redis behind rdb: standalone, by
// Sentinel, or Cluster, but not Ring; a decorator is to embed one of go-redis'
// clients (docs/operations.md). It does no I/O. rdb stays the caller's, to
// be closed after the Client. Hooks are to be added to rdb before.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	if isNil(rdb) {
		return nil, fmt.Errorf("relock: %w: the redis client is nil", ErrInvalidOption)
	}
	if _, ring := rdb.(interface{ Options() *redis.RingOptions }); ring || !transport.CanListen(rdb) {
		return nil, fmt.Errorf("relock: %w: a Ring moves keys between servers when one fails, and holds with them; use Cluster or Sentinel", ErrInvalidOption)
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("relock: %w", err)
	}
	tr := transport.New(rdb)
	if err := cfg.suits(tr); err != nil {
		return nil, fmt.Errorf("relock: %w", err)
	}
	c := &Client{
		id:        wire.NewNonce().String(),
		name:      wire.NewNonce().String()[:nameLen],
		cfg:       cfg,
		transport: tr,
		clock:     clock.System(),
		rooms:     make(map[string]map[string]*keeper),
		sessions:  make(map[wire.Nonce]*acquisition),
		idle:      make(chan struct{}),
	}
	if cfg.sharded {
		c.id = shardedMark + c.id
		c.shards = c.newShards(rdb)
	}
	c.inboxPrefix = key.Inbox(cfg.prefix, "")
	c.wire = wire.NewEncoder(c.id, c.inboxPrefix, cfg.terms.TTL, cfg.tokenKeep)
	c.labels = label.New(tr, c.wire, cfg.prefix, c.id, cfg.label)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.open, c.shut = context.WithCancel(context.Background())
	c.closing = c.open.Done()
	c.watchdog = renewal.New(c.clock, c.runDue)
	c.newInbox(rdb)
	c.newJournal()
	return c, nil
}

// newJournal makes what remembers releases.
func (c *Client) newJournal() {
	c.journal = replay.New(replay.Config{
		Mu:      &c.mu,
		Now:     func() instant { return c.clock.Now() },
		Wake:    func(at instant) { c.watchdog.Set(&c.replayTask, at) },
		Spawn:   c.spawn,
		Busy:    func(n wire.Nonce) bool { return c.sessions[n] != nil },
		Servers: c.transport,
		Wire:    c.wire,
		Inbox:   c.inbox,
		Settle:  c.settle,
		Log:     c.cfg.log,
	})
}

// newInbox makes what the client hears by, unless it has sharded channels for that.
func (c *Client) newInbox(rdb redis.UniversalClient) {
	channel := key.Inbox(c.cfg.prefix, c.id)
	c.inbox = inbox.New(inbox.Config{
		Subscribe: func(ctx context.Context, channels ...string) *redis.PubSub {
			// The link before may have broken with a node that is gone.
			c.transport.Reload()
			return rdb.Subscribe(ctx, channels...)
		},
		Channel: channel,
		Deliver: c.deliver,
		Linked: func() {
			again := c.linkedOnce.Swap(true)
			c.linked(channel, !again)
		},
		Refused: isRefused,
		Failed:  func(err error) { c.deaf(channel, err) },
		Spread:  transport.Spread,
	})
	c.listener = newListener(channel, c.inbox)
}

func isNil(rdb redis.UniversalClient) bool {
	if rdb == nil {
		return true
	}
	v := reflect.ValueOf(rdb)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// NewLock returns a handle on the exclusive, reentrant lock of that name. It
// does no I/O and costs nothing. A name has 1 to 512 bytes of UTF-8 without
// control characters; a bad name or option is what every call on the handle returns.
func (c *Client) NewLock(name string, opts ...LockOption) *Lock {
	s := c.newSpec(name, wire.KindPlain, wire.KindFair, opts)
	return c.newLock(name, c.shared(specLock, s))
}

// newSpec returns what exclusive handles are made with, of the kind plain, or fair if the options say so.
func (c *Client) newSpec(name, plain, fair string, opts []LockOption) spec {
	s := spec{origin: origin{c, plain}}
	if c.unmade() {
		s.err = errUnmadeClient
		return s
	}
	if err := key.CheckName(name); err != nil {
		s.err = fmt.Errorf("%w: %w", ErrInvalidName, err)
		return s
	}
	s.terms, s.err = c.cfg.terms.with(opts)
	if s.terms.fair {
		s.kind = fair
	}
	if s.err == nil && plain != wire.KindSemaphore {
		s.err = s.terms.weightless()
	}
	if s.err == nil {
		s.err = s.terms.rests(plain)
	}
	if s.err == nil {
		s.err = fits(s.terms.Replicas, s.terms.TTL, c.transport.ReadTimeout())
	}
	if s.err == nil {
		s.err = s.terms.suits(c.transport)
	}
	return s
}

func (c *Client) newLock(name string, s *spec) *Lock {
	if s.err != nil {
		return &Lock{spec: s, hash: name}
	}
	return &Lock{spec: s, hash: key.Hash(c.cfg.prefix, name)}
}

// enter returns the room of a lock, to be left again.
func (c *Client) enter(l *Lock) *keeper {
	c.mu.Lock()
	defer c.mu.Unlock()
	rooms := c.rooms[l.kind]
	if rooms == nil {
		rooms = make(map[string]*keeper)
		c.rooms[l.kind] = rooms
	}
	k := rooms[l.hash]
	if k == nil {
		k = &keeper{origin: &l.origin, hash: l.hash, listener: c.listenerFor(l.hash)}
		k.room.Plain, k.room.Runs, k.room.Shared = l.kind == wire.KindPlain, l.kind == wire.KindFair, l.kind == wire.KindRW || l.kind == wire.KindFairRW
		k.skew.Store(c.skew.Load())
		rooms[l.hash] = k
	}
	k.refs++
	return k
}

func (c *Client) leave(k *keeper) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked(k)
}

func (c *Client) leaveLocked(k *keeper) {
	k.refs--
	if k.refs == 0 {
		delete(c.rooms[k.kind], k.hash)
	}
}

// register makes an acquisition known by its nonce, before its first request leaves.
func (c *Client) register(a *acquisition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[a.nonce] == nil {
		c.sessions[a.nonce] = a
		a.keeper.refs++
	}
}

// unregister forgets an acquisition: released, lost, or never known to Redis.
func (c *Client) unregister(a *acquisition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unregisterLocked(a)
}

func (c *Client) unregisterLocked(a *acquisition) {
	if c.sessions[a.nonce] == a {
		delete(c.sessions, a.nonce)
		c.leaveLocked(a.keeper)
		c.notifyLocked()
	}
}

// lookup returns the acquisition that a message or a reply names, or nil.
func (c *Client) lookup(name string) *acquisition {
	n, ok := wire.ParseNonce(name)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[n]
}
