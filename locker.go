package relock

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/access"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/label"
	"github.com/relock-go/relock/internal/leaving"
	"github.com/relock-go/relock/internal/listener"
	"github.com/relock-go/relock/internal/logqueue"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/replay"
	"github.com/relock-go/relock/internal/shutdown"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/unheard"
	"github.com/relock-go/relock/internal/wire"
)

type instant = clock.Instant

// A Locker is a lock that is waited for with a context: an exclusive lock, or one side of a
// read/write lock. The interface never grows.
type Locker interface {
	// Lock waits until the caller holds the lock; ctx bounds the wait, never the hold.
	Lock(ctx context.Context) error
	// TryLock returns (false, nil) when the lock is taken for as long as wait.
	TryLock(ctx context.Context, wait time.Duration) (bool, error)
	// Unlock is called exactly once for each success, also after a loss.
	Unlock() error
}

var _ Locker = (*Lock)(nil)

// A Client makes locks in one Redis. For all its locks it has one subscription and one watchdog
// goroutine, which start on first use. With ShardedPubSub it has one subscription for each hash tag
// that it waits for. Its methods may be called from any goroutine.
type Client struct {
	id          string // 128 random bits: the inbox, and half of every session's identity
	name        string // a random UUID, in generated owners: whoever sees it cannot tell the inbox
	owners      atomic.Int64
	losses      atomic.Uint64 // of sessions
	unheard     unheard.Calls // calls that Redis has not answered, for the log
	labels      *label.Book
	specs       specs
	cfg         config
	inboxPrefix string
	wire        *wire.Encoder
	transport   *transport.Transport
	listeners   *listener.Listeners
	watchdog    *renewal.Schedule
	clock       *clock.Clock
	access      *access.Checker
	journal     *replay.Journal // releases of late; mu guards it too
	skew        atomic.Int64    // the clock of the server that answered last less ours, in ms
	logs        *logqueue.Queue // what the logger's handler has not been given yet
	replayTask  renewal.Task    // the next round of what is released again
	onlyOne     atomic.Bool     // a script may name one lock only
	leaving     leaving.Book    // what calls that have ended leave in Redis, until it is removed
	ending      atomic.Bool     // Close has been called: nothing is granted any more
	ended       chan struct{}   // closed when it has done what it does

	tracker *shutdown.Tracker // goroutines, and the stages of the end; mu guards it too
	ctx     context.Context   // ends with Close; for what goes on without a caller
	open    context.Context   // ends with Shutdown or Close; for waiters
	closing <-chan struct{}   // open's Done

	mu       sync.Mutex                    // guards the following fields; taken after a room's mu
	rooms    map[string]map[string]*keeper // by kind, and by the lock's key: a word less for each than by both
	sessions map[wire.Nonce]*acquisition   // by nonce: waiting, holding, or being released
	lostOf   map[lostKey]int               // exclusive holds of named owners that are lost and not unlocked
}

// A lostKey names one owner of one lock.
type lostKey struct{ kind, hash, owner string }

// New returns a Client that makes locks in the Redis behind rdb: standalone, Sentinel or Cluster,
// but not Ring. A decorator must embed one of go-redis' clients (see docs/operations.md). New does
// no I/O.
//
// rdb stays the caller's, who closes it after the Client. Hooks must be added to rdb before New is
// called.
//
// A LockOption such as TTL is no Option: New(rdb, TTL(d)) fails to compile with "missing method
// apply". Pass it to NewLock, or to all locks of the client by Defaults(TTL(d)).
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
		logs:      new(logqueue.Queue),
		transport: tr,
		clock:     clock.System(),
		ended:     make(chan struct{}),
		rooms:     make(map[string]map[string]*keeper),
		sessions:  make(map[wire.Nonce]*acquisition),
	}
	if to := cfg.log.Handler(); to != slog.DiscardHandler {
		c.cfg.log = slog.New(c.logs.Handler(to))
	}
	if cfg.sharded {
		c.id = key.Sharded(c.id)
	}
	c.inboxPrefix = key.Inbox(cfg.prefix, "")
	c.wire = wire.NewEncoder(c.id, c.inboxPrefix, cfg.terms.TTL, cfg.tokenKeep)
	c.tracker = shutdown.New(&c.mu, func() int { return len(c.sessions) })
	c.ctx, c.open, c.closing = c.tracker.Running, c.tracker.Open, c.tracker.Open.Done()
	c.watchdog = renewal.New(c.clock, c.runDue)
	c.newListeners(rdb)
	c.newJournal()
	c.newAccess()
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
		Inbox:   c.listeners.Inbox(),
		Settle:  c.settle,
		Log:     c.cfg.log,
	})
}

// newListeners makes what the client hears by.
func (c *Client) newListeners(rdb redis.UniversalClient) {
	c.listeners = listener.New(listener.Config{
		Prefix: c.cfg.prefix, Client: c.id, Sharded: c.cfg.sharded, Redis: rdb,
		Deliver: c.deliver,
		Linked:  c.linked,
		Refused: c.transport.Refuses,
		Reload:  c.transport.Reload,
		Spread:  transport.Spread,
		Now:     func() instant { return c.clock.Now() },
		Set:     func(t *renewal.Task, at instant) { c.watchdog.Set(t, at) },
		Log:     c.cfg.log,
	})
}

// newAccess makes what is asked before anything is taken, and what is told of the client.
func (c *Client) newAccess() {
	c.labels = label.New(label.Config{
		Transport: c.transport, Wire: c.wire, Prefix: c.cfg.prefix, Client: c.id, Text: c.cfg.label,
		Now:   func() instant { return c.clock.Now() },
		Spawn: c.spawn,
		Log:   c.cfg.log,
	})
	c.access = access.New(access.Config{
		Prefix: c.cfg.prefix, Client: c.id, Database: c.transport.Database(), Redis: c.transport, Wire: c.wire,
		Open:    c.open,
		Granted: c.labels.Open,
	})
}

func isNil(rdb redis.UniversalClient) bool {
	v := reflect.ValueOf(rdb)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// NewLock returns a handle on the exclusive, reentrant lock of that name. It does no I/O and costs
// nothing. A name has 1 to 512 bytes of UTF-8 without control characters. A bad name or option
// makes every call on the handle fail.
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

// Shutdown ends the client in order. Waiters and new calls get ErrClosed, and re-entries still
// succeed. When the last hold is released, the client closes. If ctx ends before that, Shutdown
// returns ctx's error and says how many holds are left, and of which locks. The client goes on
// waiting for them. Call Close to end it then.
func (c *Client) Shutdown(ctx context.Context) error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeClient)
	}
	if ctx == nil {
		return fmt.Errorf("relock: %w", errNoContext)
	}
	if c.tracker.Drain(); !c.tracker.Quiet(ctx) {
		return fmt.Errorf("relock: shutdown: %w; %s", ending.Of(ctx), c.leftover())
	}
	return c.Close()
}

// leftover says for which holds a Shutdown still waits.
func (c *Client) leftover() string {
	c.mu.Lock()
	known := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	holds, names := 0, make(map[string]bool)
	for _, a := range known {
		a.keeper.mu.Lock()
		if a.Held() || a.Away() {
			if h := a.Session.Newest(); h != nil {
				holds += a.Session.Live()
				names[fmt.Sprintf("%.64q", h.Of.(*Hold).lock.Name())] = true
			}
		}
		a.keeper.mu.Unlock()
	}
	sorted := slices.Sorted(maps.Keys(names))
	switch most := 5; {
	case holds == 0:
		return "no hold is left, but Redis has not confirmed every release"
	case holds == 1:
		return "1 hold is left, of " + sorted[0]
	case len(sorted) > most:
		return fmt.Sprintf("%d holds are left, of %s and %d other locks", holds, strings.Join(sorted[:most], ", "), len(sorted)-most)
	default:
		return fmt.Sprintf("%d holds are left, of %s", holds, strings.Join(sorted, ", "))
	}
}

// closeGrace is how long Close goes on leaving queues and releasing what was unlocked.
const closeGrace = 250 * time.Millisecond

// logGrace is how long Close waits for the handler of the logger.
const logGrace = 100 * time.Millisecond

// Close ends the client now. Holds are lost, and their errors are ErrLost and ErrClosed. Waiters
// get ErrClosed. The leases in Redis run out by themselves. For at most a quarter of a second Close
// still tells Redis which locks were unlocked and which waiters left.
//
// Close returns when the client's goroutines have ended. A goroutine that waits for a silent server
// ends by the redis client's own timeouts. For a slow handler of the Logger, Close waits for 100 ms
// at most, and drops what is not logged by then. Close must not be called from a hook. A second Close
// does nothing.
func (c *Client) Close() error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeClient)
	}
	c.tracker.Drain()
	if c.ending.Swap(true) {
		<-c.ended // who calls at once waits, and cuts nothing short
		return nil
	}
	defer close(c.ended)
	c.loseAll()
	c.tracker.Empty(closeGrace) // an entry that nobody waits for holds up others for up to a lease
	c.tracker.Close()
	c.loseAll() // what was granted meanwhile
	c.tracker.Cancel()
	c.watchdog.Close()
	c.listeners.Close()
	c.tracker.Wait()
	c.transport.Wait()
	c.logs.Close(logGrace)
	return nil
}

// loseAll ends what is held.
func (c *Client) loseAll() {
	var todo []func()
	c.mu.Lock()
	known := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, a := range known {
		at := a.keeper.begin()
		if a.Held() || a.Away() {
			a.Session.Close(lostFor(ErrClosed), &at)
		}
		todo = append(todo, a.keeper.endFirst(&at)...)
	}
	runAll(todo)
}

// spawn runs fn on a goroutine that Close waits for, unless it is too late.
func (c *Client) spawn(fn func(ctx context.Context)) (spawned bool) { return c.tracker.Go(fn) }

// beside is spawn for what is quickly over where the client has been closed: then it
// runs on the caller's goroutine.
func (c *Client) beside(fn func()) {
	if !c.spawn(func(context.Context) { fn() }) {
		fn()
	}
}

// background is spawn for at most the given time.
func (c *Client) background(limit time.Duration, fn func(ctx context.Context)) (spawned bool) {
	return c.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		fn(ctx)
	})
}
