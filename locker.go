package relock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
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
// ShardedPubSub one for each lock that is waited for, and one watchdog goroutine
// for all its locks, started on first use. Its methods may be called from any
// goroutine.
type Client struct {
	id          string // 128 random bits: the inbox, and half of every session's identity
	name        string // a random UUID, in generated owners: whoever sees it cannot tell the inbox
	owners      atomic.Int64
	losses      atomic.Uint64 // of sessions
	sides       sides
	cfg         config
	inboxPrefix string
	args        constants
	transport   *transport.Transport
	inbox       *inbox.Inbox
	shards      *inbox.Shards // instead of the inbox; nil without the option
	ear         *ear          // the inbox's
	watchdog    *renewal.Schedule
	clock       *clock.Clock
	skew        atomic.Int64 // the clock of the server that answered last less ours, in ms
	watchTask   renewal.Task // the next round of what is released again
	permitted   atomic.Bool  // the user may run all that scripts need
	acked       atomic.Bool  // and WAIT, which Replicas needs
	onlyOne     atomic.Bool  // a script may name one lock only
	linkedOnce  atomic.Bool  // the inbox has been subscribed

	ctx     context.Context // ends with Close; for what goes on without a caller
	cancel  context.CancelFunc
	open    context.Context // ends with Shutdown or Close; for waiters
	shut    context.CancelFunc
	closing <-chan struct{} // open's Done
	wg      sync.WaitGroup

	mu       sync.Mutex                  // guards the following fields; taken after a room's mu
	rooms    map[string]map[string]*room // by kind, and by the lock's key: a word less for each than by both
	sessions map[nonce]*session          // by nonce: asking, queued, held, or being released
	watch    releaseWatch
	tasks    int           // spawned and not ended
	idle     chan struct{} // closed and replaced when something ends that Shutdown waits for
	draining bool
	ending   bool // Close has been called: nothing is granted any more
	closed   bool
}

// New returns a Client that makes locks in the Redis behind rdb: standalone, by
// Sentinel, or Cluster, but not Ring; a decorator is to embed one of go-redis'
// clients (docs/operations.md). It does no I/O. rdb stays the caller's, to
// be closed after the Client.
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
		id:        newNonce().String(),
		name:      uuid.NewString(),
		cfg:       cfg,
		transport: tr,
		clock:     clock.System(),
		rooms:     make(map[string]map[string]*room),
		sessions:  make(map[nonce]*session),
		idle:      make(chan struct{}),
	}
	if cfg.sharded {
		c.id = shardedMark + c.id
		c.shards = c.newShards(rdb)
	}
	c.inboxPrefix = key.Inbox(cfg.prefix, "")
	c.args = constants{c.inboxPrefix, c.id, cfg.tokenKeep.Milliseconds(), cfg.terms.ttl.Milliseconds()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.open, c.shut = context.WithCancel(context.Background())
	c.closing = c.open.Done()
	c.watchdog = renewal.New(c.clock, c.runDue)
	channel := key.Inbox(cfg.prefix, c.id)
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
		Spread:  spread,
	})
	c.ear = newEar(channel, c.inbox)
	return c, nil
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
	s := c.newSide(name, kindPlain, kindFair, opts)
	return c.newLock(name, c.shared(sideLock, s))
}

// newSide returns the exclusive side of a lock of the kind plain, or fair if the options say so.
func (c *Client) newSide(name, plain, fair string, opts []LockOption) side {
	s := side{family: family{c, plain}}
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
	if s.err == nil {
		s.err = s.terms.replicas.fits(s.terms.ttl, c.transport.ReadTimeout())
	}
	if s.err == nil {
		s.err = s.terms.suits(c.transport)
	}
	return s
}

func (c *Client) newLock(name string, s *side) *Lock {
	if s.err != nil {
		return &Lock{side: s, hash: name}
	}
	return &Lock{side: s, hash: key.Hash(c.cfg.prefix, name)}
}

// serverNow estimates in ms the clock of the server that has the lock, for
// not-after times only: too early costs a round trip, too late keeps an ended
// nonce for longer. No trust rests on it. The servers of a Cluster have a clock
// each: what another one says is no more than the first guess.
func (r *room) serverNow() int64 { return time.Now().UnixMilli() + r.skew.Load() }

// sample notes what the clock says of the server that has the lock.
func (r *room) sample(serverMs int64) {
	skew := serverMs - time.Now().UnixMilli()
	r.skew.Store(skew)
	r.c.skew.Store(skew)
}

// enter returns the room of a lock, to be left again.
func (c *Client) enter(l *Lock) *room {
	c.mu.Lock()
	defer c.mu.Unlock()
	rooms := c.rooms[l.kind]
	if rooms == nil {
		rooms = make(map[string]*room)
		c.rooms[l.kind] = rooms
	}
	r := rooms[l.hash]
	if r == nil {
		r = &room{family: &l.family, hash: l.hash, ear: c.earFor(l.hash)}
		r.skew.Store(c.skew.Load())
		rooms[l.hash] = r
	}
	r.refs++
	return r
}

func (c *Client) leave(r *room) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked(r)
}

func (c *Client) leaveLocked(r *room) {
	r.refs--
	if r.refs == 0 {
		delete(c.rooms[r.kind], r.hash)
	}
}

// register makes a session known by its nonce, before its first request leaves.
func (c *Client) register(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[s.nonce] == nil {
		c.sessions[s.nonce] = s
		s.room.refs++
	}
}

// unregister forgets a session: released, lost, or never known to Redis.
func (c *Client) unregister(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[s.nonce] == s {
		delete(c.sessions, s.nonce)
		c.leaveLocked(s.room)
		c.notifyLocked()
	}
}

// lookup returns the session that a message or a reply names, or nil.
func (c *Client) lookup(name string) *session {
	n, ok := asNonce(name)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[n]
}

// spawn runs fn on a goroutine that Close waits for, unless it is too late.
func (c *Client) spawn(fn func(ctx context.Context)) (spawned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tasks++
	c.wg.Go(func() {
		defer func() {
			c.mu.Lock()
			c.tasks--
			c.notifyLocked()
			c.mu.Unlock()
		}()
		fn(c.ctx)
	})
	return true
}

// tellApart calls hooks and the logger for the watchdog and the inbox: one that blocks,
// or ends its goroutine, stops neither.
func (c *Client) tellApart(tells ...func()) {
	if len(tells) > 0 && !c.spawn(func(context.Context) { runAll(tells) }) {
		runAll(tells)
	}
}

// background is spawn for at most the given time.
func (c *Client) background(limit time.Duration, fn func(ctx context.Context)) {
	c.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		fn(ctx)
	})
}

// notifyLocked wakes a Shutdown that waits for holds and tasks to end. It needs c.mu.
func (c *Client) notifyLocked() {
	if c.draining {
		close(c.idle)
		c.idle = make(chan struct{})
	}
}

func (c *Client) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

func (c *Client) hasClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// drain makes waiters and new calls fail; holds go on.
func (c *Client) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.draining {
		c.draining = true
		c.shut()
	}
}

// Shutdown ends the client in order: waiters and new calls get ErrClosed,
// re-entries still succeed, and when the last hold is released it closes. When
// ctx ends before that it returns ctx's error, and goes on draining; Close
// remains to be called.
func (c *Client) Shutdown(ctx context.Context) error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeClient)
	}
	if ctx == nil {
		return fmt.Errorf("relock: %w: the context is nil; pass context.Background()", ErrInvalidOption)
	}
	c.drain()
	for {
		c.mu.Lock()
		// What a Close has cut short stays among the sessions.
		idle, quiet := c.idle, c.closed || len(c.sessions) == 0 && c.tasks == 0
		c.mu.Unlock()
		if quiet {
			return c.Close()
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("relock: shutdown: %w", ended(ctx))
		}
	}
}

// closeGrace is how long Close goes on leaving queues and releasing what its
// callers have unlocked.
const closeGrace = 250 * time.Millisecond

// Close ends the client now: holds are lost, with ErrLost and ErrClosed as
// their error, and waiters get ErrClosed. Their leases in Redis run out by
// themselves. What has been unlocked before, and the places of waiters, it
// goes on telling Redis for a quarter of a second at most. It returns when the
// client's goroutines have ended; one
// that waits for a silent server ends by the redis client's own timeouts. So it
// must not be called from a hook. Closing again does nothing.
func (c *Client) Close() error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeClient)
	}
	c.drain()
	c.mu.Lock()
	again := c.ending
	c.ending = true
	c.mu.Unlock()
	c.loseAll()
	if !again {
		c.leaveAll()
	}
	c.mu.Lock()
	c.closed = true
	c.notifyLocked()
	c.mu.Unlock()
	c.loseAll() // what was granted meanwhile
	c.cancel()
	c.watchdog.Close()
	c.inbox.Close()
	if c.shards != nil {
		c.shards.Close()
	}
	c.wg.Wait()
	c.transport.Wait()
	return nil
}

// loseAll ends what is held.
func (c *Client) loseAll() {
	why := errors.Join(ErrLost, ErrClosed)
	var tells []func()
	for _, s := range c.known() {
		s.room.mu.Lock()
		tells = append(tells, s.lose(why, c.clock.Now()))
		s.room.mu.Unlock()
	}
	runAll(tells)
}

// leaveAll waits until no session is left that has a place or a release under
// way: an entry that nobody waits for holds up others for up to a lease.
func (c *Client) leaveAll() {
	limit := time.NewTimer(closeGrace)
	defer limit.Stop()
	for {
		c.mu.Lock()
		idle, none := c.idle, len(c.sessions) == 0
		c.mu.Unlock()
		if none {
			return
		}
		select {
		case <-idle:
		case <-limit.C:
			return
		}
	}
}

func (c *Client) known() []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.sessions))
}
