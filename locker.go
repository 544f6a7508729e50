package relock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
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
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/shutdown"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/unheard"
	"github.com/relock-go/relock/internal/wire"
)

type instant = clock.Instant

// A Locker is like a sync.Locker, with contexts and errors: a Lock, an RWLock for writing, a Multi or a QuorumLock. The
// interface never gets another method, so a test may implement it.
type Locker interface {
	// Lock waits until the caller holds the lock, and then returns nil. ctx bounds the wait, never the hold. If ctx ends
	// first, Lock returns ctx's error. It may return other errors at once, such as ErrClosed or ErrDeadlock.
	Lock(ctx context.Context) error
	// TryLock is Lock for at most the given wait. It returns (false, nil) if the lock was taken all that time, and an
	// error such as ErrUnavailable if Redis did not answer (redisson: never). A wait of zero or less is one attempt.
	TryLock(ctx context.Context, wait time.Duration) (bool, error)
	// Unlock ends one hold. Each success of Lock and TryLock needs one Unlock, even after a loss. It returns nil if the
	// lock was held until now, ErrLost if the hold was lost, and ErrNotHeld if there is no hold. ErrUnconfirmed: the hold
	// ended here, but Redis did not confirm it. Test for ErrLost before ErrNotHeld: ErrLost matches both.
	Unlock() error
}

var _ Locker = (*Lock)(nil)

// A Client makes locks in one Redis. A process needs one Client for each Redis: New makes it, and Shutdown or Close
// ends it. From its first use on it has one subscription and, between renewals, five goroutines (in a Cluster more).
// With ShardedPubSub it has one subscription for each hash tag among the locks that it waits for. Its methods may be
// called from any goroutine. A nil or zero Client makes handles whose calls return ErrInvalidOption.
type Client struct {
	id          string        // 128 random bits; names the inbox, and stands beside the client's nonces in Redis
	ownerPrefix string        // random, in the names of anonymous owners: people see these, and id would reveal the inbox
	ownerCount  atomic.Int64  // the number of the latest anonymous owner
	unheard     unheard.Calls // counts calls that Redis does not answer, for the log
	labels      *label.Book
	specs       specs
	cfg         config
	wire        *wire.Encoder
	transport   *transport.Transport
	listeners   *listener.Listeners
	watchdog    watchdog
	clock       *clock.Clock
	access      *access.Checker
	registry    registry        // the locks in use
	latestSkew  atomic.Int64    // the clock of the server that answered last, minus ours, in ms
	logs        *logqueue.Queue // log records that wait for the logger's handler
	replayTask  renewal.Task    // the journal's timer: checks whether releases must be sent again
	oneKeyEach  atomic.Bool     // the server refuses commands with keys of several locks
	leaving     leaving.Book    // queue entries and grants of ended calls, which are being removed from Redis
	refusing    atomic.Bool     // Close was called: a grant that arrives now is given back
	closing     context.Context // ends when Close begins
	endClosing  context.CancelFunc
	ended       chan struct{} // closed at the end of Close

	tracker  *shutdown.Tracker // counts goroutines, and ends the client in stages
	ctx      context.Context   // for work without a caller; ends late in Close, after closeGrace
	open     context.Context   // for calls that wait; ends when Shutdown or Close begins
	draining <-chan struct{}   // open.Done(): closed when Shutdown or Close begins
}

// New returns a Client that makes locks in the Redis behind rdb: standalone, Sentinel or Cluster, but not Ring. It does
// no I/O: call Check to learn whether Redis is there. If rdb is nil or a Ring, or an option is bad, New returns
// ErrInvalidOption. If rdb is a decorator, it should embed one of go-redis' clients (see docs/operations.md).
//
// The caller must close rdb, after the Client. Hooks of rdb (AddHook) must be added before New is called.
//
// A LockOption such as TTL is not an Option: New(rdb, TTL(d)) fails to compile with "missing method apply". Pass it to
// NewLock, or to all locks of the client by Defaults(TTL(d)).
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	if isNil(rdb) {
		return nil, fmt.Errorf("relock: %w: the redis client is nil", ErrInvalidOption)
	}
	if _, ring := rdb.(interface{ Options() *redis.RingOptions }); ring {
		return nil, fmt.Errorf("relock: %w: a Ring moves keys, and so holds, to another server when one fails; use Cluster or Sentinel", ErrInvalidOption)
	}
	if !transport.CanListen(rdb) {
		return nil, fmt.Errorf("relock: %w: the redis client is a decorator around nil, or around a Ring; embed a client of a server, Sentinel or Cluster", ErrInvalidOption)
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
		id:          wire.NewNonce().String(),
		ownerPrefix: wire.NewNonce().String()[:nameLen],
		cfg:         cfg,
		logs:        new(logqueue.Queue),
		transport:   tr,
		clock:       new(clock.Clock),
		ended:       make(chan struct{}),
		registry: registry{
			keepers:       make(map[string]map[string]*keeper),
			stopListening: make(map[*keeper]func()),
			acquisitions:  make(map[wire.Nonce]*acquisition),
		},
	}
	if to := cfg.log.Handler(); to != slog.DiscardHandler {
		c.cfg.log = slog.New(c.logs.Handler(to))
	}
	if cfg.sharded {
		c.id = key.Sharded(c.id)
	}
	c.wire = wire.NewEncoder(c.id, key.Inbox(cfg.prefix, ""), cfg.terms.TTL, cfg.tokenKeep)
	c.tracker = shutdown.New(&c.registry.mu, func() int { return len(c.registry.acquisitions) + c.registry.ticketReleases })
	c.registry.tracker = c.tracker
	c.closing, c.endClosing = context.WithCancel(context.Background())
	c.ctx, c.open, c.draining = c.tracker.Running, c.tracker.Open, c.tracker.Open.Done()
	c.watchdog.start(c)
	c.newListeners(rdb)
	c.newJournal()
	c.newLabelsAndAccess()
	return c, nil
}

// newJournal makes the journal, which sends recent releases again if a failover may have undone them.
func (c *Client) newJournal() {
	c.registry.journal = &replay.Journal{Config: replay.Config{
		Prefix:  c.cfg.prefix,
		Mu:      &c.registry.mu,
		Now:     func() instant { return c.clock.Now() },
		Wake:    func(at instant) { c.watchdog.Set(&c.replayTask, at) },
		Spawn:   c.tracker.Go,
		Busy:    func(n wire.Nonce) bool { return c.registry.acquisitions[n] != nil },
		Servers: c.transport,
		Wire:    c.wire,
		Inbox:   c.listeners.Inbox(),
		Settle:  c.settle,
		Log:     c.cfg.log,
	}}
}

// newListeners makes the listeners, which receive messages from Redis.
func (c *Client) newListeners(rdb redis.UniversalClient) {
	c.listeners = listener.New(listener.Config{
		Prefix: c.cfg.prefix, Client: c.id, Sharded: c.cfg.sharded, Redis: rdb,
		Deliver: c.deliver,
		Linked:  c.linked,
		Refused: c.transport.Refuses,
		Reload:  c.transport.Reload,
		Now:     func() instant { return c.clock.Now() },
		Set:     func(t *renewal.Task, at instant) { c.watchdog.Set(t, at) },
		Log:     c.cfg.log,
	})
}

// newLabelsAndAccess makes the book of labels, and the checker of permissions, which runs before the first acquisition.
func (c *Client) newLabelsAndAccess() {
	c.labels = label.New(label.Config{
		Transport: c.transport, Wire: c.wire, OneKeyEach: &c.oneKeyEach,
		Prefix: c.cfg.prefix, Client: c.id, Text: c.cfg.label,
		Now:   func() instant { return c.clock.Now() },
		Spawn: c.tracker.Go,
		Log:   c.cfg.log,
	})
	c.access = access.New(access.Config{
		Prefix: c.cfg.prefix, Client: c.id, Database: c.transport.Database, Redis: c.transport, Wire: c.wire,
		Open:    c.open,
		Granted: c.labels.Open,
		Hear:    c.listeners.HearEcho,
	})
}

func isNil(rdb redis.UniversalClient) bool {
	v := reflect.ValueOf(rdb)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func (c *Client) unmade() bool { return c == nil || c.transport == nil } // not by New: nil or a zero value

// NewLock returns a handle on the exclusive lock of that name: a plain lock, or with Fair a fair one. Named owners
// (WithOwner) re-enter it. NewLock does no I/O and costs nothing. A name has 1 to 512 bytes of UTF-8 without control
// characters. With a bad name or option every call on the handle returns ErrInvalidName or ErrInvalidOption.
func (c *Client) NewLock(name string, opts ...LockOption) *Lock {
	s := c.newSpec(name, wire.KindPlain, wire.KindFair, opts)
	return c.newLock(name, c.shared(specLock, s))
}

// NewRWLock returns a handle on the read/write lock of that name. The options apply to both sides. It does no I/O. A
// name has 1 to 512 bytes of UTF-8 without control characters. With a bad name or option, such as AtLeast or Weight,
// every call on the handle returns ErrInvalidName or ErrInvalidOption.
func (c *Client) NewRWLock(name string, opts ...LockOption) *RWLock {
	s := c.newSpec(name, wire.KindRW, wire.KindFairRW, opts)
	w := c.newLock(name, c.shared(specWrite, s))
	s.read = true
	return &RWLock{w: w, r: &Lock{spec: c.shared(specRead, s), hash: w.hash}}
}

// NewSemaphore returns a handle on the semaphore of that name. It does no I/O. permits is how many permits all
// processes together can use at a time, from 1 to 2^31-1. With a bad name, permits or option every call on the handle
// returns ErrInvalidName or ErrInvalidOption.
//
// A hold uses one permit, or as many as its Weight. Further holds of a named owner use none. Each grant has its own
// lease and token: the permits of a dead process come back when its lease ends. Permits are always granted in order of
// request: neither a smaller request nor a TryLock overtakes a waiter.
//
// Handles may differ in permits, as while a new number is rolled out. A call is granted its permits if those and the
// permits in use do not exceed its handle's number. While the name is in use, another kind of lock returns ErrKind.
//
// The holds that Lock and TryLock take on one handle must all have one named owner, or all have none. Otherwise the
// call returns ErrOwnerMismatch, because Unlock could not tell them apart. Of holds without an owner, Unlock ends a
// lost one first, else the oldest. Holds that Acquire and Do take may have any owner.
func (c *Client) NewSemaphore(name string, permits int, opts ...LockOption) *Lock {
	s := c.newSpec(name, wire.KindSemaphore, wire.KindSemaphore, opts)
	s.read = true
	if s.err == nil {
		s.terms.Permits, s.err = permitsFor(s.terms.Permits.Weight, permits)
	}
	return c.newLock(name, c.shared(specSemaphore, s))
}

// NewElection returns an election whose leader holds the fair lock of that name. It does no I/O. The options are those
// of NewLock, except Sticky. With a bad name or option Run and Leader return ErrInvalidName or ErrInvalidOption. All
// candidates must use the same name, and nothing else may use it.
func (c *Client) NewElection(name string, opts ...LockOption) *Election {
	// oneToken: each term has a grant of its own, as others tell terms apart by its token. suitsKind refuses Sticky then.
	return &Election{lock: c.NewLock(name, slices.Concat(opts, []LockOption{Fair(), oneToken})...)}
}

// newSpec checks name and opts, and makes a spec from them. With Fair its kind is fairKind, else kind.
func (c *Client) newSpec(name, kind, fairKind string, opts []LockOption) spec {
	s := spec{origin: origin{c, kind}}
	if c.unmade() {
		s.err = errUnmadeClient
		return s
	}
	if err := key.CheckName(name); err != nil {
		s.err = fmt.Errorf("%w: %w", ErrInvalidName, err)
		return s
	}
	t, err := c.cfg.terms.with(opts)
	if t.fair {
		s.kind = fairKind
	}
	s.terms, s.err = t, cmp.Or(err, t.suitsKind(kind), t.suits(c.transport))
	return s
}

// newLock makes a handle. With a bad spec its hash is the name itself, for Lock.Name.
func (c *Client) newLock(name string, s *spec) *Lock {
	if s.err != nil {
		return &Lock{spec: s, hash: name}
	}
	return &Lock{spec: s, hash: key.Hash(c.cfg.prefix, name)}
}

// shared returns a pointer to a spec that equals s. Handles made alike share the latest spec of their constructor (at).
func (c *Client) shared(at int, s spec) *spec {
	if s.err != nil {
		bad := s
		return &bad
	}
	last := c.specs[at].Load()
	if last != nil && *last == s {
		return last
	}
	own := s // copied only here, so that the usual case allocates nothing
	c.specs[at].Store(&own)
	return &own
}

// Once runs fn at most once in each interval of length every, over all processes that call it with that name. ran says
// whether this call ran fn. Let every process call it several times in each interval, and not by a cron schedule: its
// ticks come where an interval begins, and clocks a moment apart run fn twice or not at all. Use AtLeast there. The
// intervals are counted by the server's clock, and begin at multiples of every since 1970 in UTC. every is from 1 ms to
// 366 days, in whole milliseconds. All calls of one name must use the same interval: a run for a shorter one can fall
// within a longer one. A run may directly follow that of the interval before.
//
// Once makes one attempt to take the lock of that name, and runs fn under it as Lock.Do does: fn's context ends if the
// lock is lost. It returns (false, nil) if a run has already begun in this interval, or began in an earlier one and
// goes on. An error with ran false says why fn did not run, such as ErrUnavailable. With ran true the error is fn's,
// joined with that of the release, as Lock.Do returns it.
//
// An interval is spent even if fn returns an error. But if that is ErrUnspent or wraps it, and the lock was not lost,
// the next caller in the interval runs fn again. A call that fails before fn has begun does not spend it either. If
// Redis cannot be told at once that the interval is not spent, the client keeps trying until it is shut down or closed.
//
// A process that dies in fn has spent the interval, and keeps the name until its lease ends. If the TTL is as long as
// the interval or longer, the next interval may be missed too. Once ignores the owner that ctx names, so no call
// re-enters. Owner, AtLeast, Sticky and a nil fn are ErrInvalidOption. If the server's clock steps back, some intervals
// come a second time. fn does not run again in these, unless ForceUnlock ends the rest.
func (c *Client) Once(ctx context.Context, name string, every time.Duration, fn func(ctx context.Context) error, opts ...LockOption) (ran bool, err error) {
	l := c.NewLock(name, opts...)
	if err := forOnce(l, every, fn != nil); err != nil {
		return false, lockError(name, err)
	}
	h, err := l.try(ctx, 0, manner{falseIfTaken: true})
	switch {
	case ending.Is(err, errGone):
		return false, lockError(name, errGone) // granted, but lost before its use: the interval is not spent
	case ending.Is(err, ErrNotAcquired):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, under(ctx, h, func(ctx context.Context) error {
		err := fn(ctx)
		if ending.Is(err, ErrUnspent) { // then the name must not rest
			h.skipRest()
		}
		return err
	})
}

// Resume makes the hold of a ticket a hold of this client. Its token, name, owner, side (reading or writing) and
// options stay the same, except Sticky. A ticket works once: of two calls at the same time one gets the hold, and the
// other gets ErrLost. Resume also returns ErrLost if the time that Detach was given is over, or if somebody removed the
// hold. It returns ErrInvalidOption for a text that is not a ticket, another KeyPrefix, or Replicas that do not suit
// the client. Such a ticket still works in other clients.
//
// Resume does not wait for the lock, but while Redis does not answer it asks again: give ctx a deadline. If ctx ends
// then, the error matches ctx's error and ErrUnavailable. If the answer comes just then, Resume may return the hold.
// After an error the ticket still works, or was used: then the client releases the hold, and another Resume returns
// ErrLost. If too few replicas acknowledge the hold, Resume returns ErrReplicas, and the client releases it.
//
// The hold is renewed again, unless it has NoWatchdog, and its MaxHold begins again. Release or Detach ends it, and no
// Unlock or Downgrade reaches it. Resume ignores ctx's owner. A hold without a named owner keeps its generated name.
func (c *Client) Resume(ctx context.Context, t Ticket) (*Hold, error) {
	if c.unmade() {
		return nil, fmt.Errorf("relock: %w", errUnmadeClient)
	}
	what, err := t.read()
	var l *Lock
	if err == nil {
		l, err = what.lock(c)
	}
	if err = cmp.Or(err, unusable(ctx)); err != nil {
		return nil, fmt.Errorf("relock: resume: %w", err)
	}
	k := c.registry.enter(l)
	defer c.registry.leave(k)
	w := &waiting{ctx: ctx, lock: l, keeper: k, ticket: what.Nonce, began: c.clock.Now()}
	c.labels.Keep(l.terms.TTL, w.began)
	if what.Owner == what.unmarkedOwner() { // hooks get an owner that was given, not a generated name
		w.owner = what.Owner
	}
	h, err := w.resume(what.Owner)
	if err != nil {
		w.gaveUpHook(err)
		return nil, lockError(l.Name(), err)
	}
	return h, nil
}

// Locks iterates over the locks under the client's key prefix that are in use and whose names match. A lock is in use
// if somebody holds it, waits for it or waits on a condition of it, or if its name rests. In match, * stands for any
// text, ? for one character, [a-z] for one of these and [^a-z] for any other. A backslash makes the next character
// literal, and "" matches all names. The locks come in no particular order, each once. A lock that is taken or freed
// during the iteration may be missing. Each Info is of an instant of its own.
//
// Locks is for operators. It looks at every key of every server, some hundreds at a time, and asks for more only when
// the loop does: leaving the loop stops the scan. It keeps about 20 bytes of memory for each lock that it has found.
// The user of Redis needs the permission +scan in addition to what locks need.
//
// An error about one lock or server does not end the iteration. If it comes with an Info that has a Name, it is about
// that lock: the key may hold something that is not a lock, or Redis did not answer. If it comes without a Name, it is
// about a server, whose other locks are missing. A server is asked up to three times, for up to 5 s each. If it does
// not answer, the error is ErrUnavailable.
//
// The iteration ends with an error if the client cannot learn which servers a Cluster has. It ends with the error of
// ctx if ctx ends, and with ErrClosed if the client is closed. It ends with ErrInvalidOption for a bad pattern, or if a
// decorator hides the type of the redis client.
func (c *Client) Locks(ctx context.Context, match string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		s := &scan{c: c, ctx: ctx, yield: yield}
		if err := s.run(match); err != nil && !errors.Is(err, errLeft) {
			yield(Info{}, fmt.Errorf("relock: locks: %w", err))
		}
	}
}

// checkName is the lock that Check asks about. It is never taken.
const checkName = "relock-check"

// Check reports whether locks would work now. It is for the start of a service and for readiness probes. It returns nil
// if Redis answers, takes writes, and is 7.0 or later or Valkey. The user must also be permitted what locks need, and
// the client must hear a message that it publishes to itself. Otherwise the error says what is wrong and what to do. If
// Redis does not answer within 5 seconds, or cannot take a lock yet, it is ErrUnavailable. If ctx ends first, it is
// also ctx's error. A closing client returns ErrClosed.
//
// Check takes no lock and stores nothing. The first success costs two scripts and a subscription, and every later one a
// script. So a probe may call it every second. With ShardedPubSub the subscription ends after 5 s: a later probe costs
// as much as the first. If a try fails, Check tries again, up to three times in all. In a Cluster it asks one of the
// primaries. It does not ask replicas: with Replicas in Defaults it only asks whether the user may run WAIT.
func (c *Client) Check(ctx context.Context) error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeClient)
	}
	err := unusable(ctx)
	if err == nil {
		err = c.check(ctx)
	}
	if err != nil {
		return fmt.Errorf("relock: check: %w", err)
	}
	return nil
}

func (c *Client) check(ctx context.Context) error {
	if c.tracker.Draining() {
		return ErrClosed
	}
	within, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	hash, ttl, began, tries := key.Hash(c.cfg.prefix, checkName), c.cfg.terms.TTL, c.clock.Now(), 0
	listener := c.listeners.Of(hash)
	defer listener.Join()()
	err := transport.Try(within, c.draining, func() (again bool, err error) {
		tries++
		err = c.access.Probe(within, trust.Attempt(ttl), hash, listener)
		if err == nil && c.cfg.terms.Replicas.N > 0 {
			err = c.access.Wait(within, hash, ttl)
		}
		return err != nil && tries < 3, err
	})
	switch {
	case err == nil:
		return nil
	case c.tracker.Draining():
		return ErrClosed
	case transport.Hopeless(err):
		return &requestError{err: err}
	case ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", ending.Of(ctx), failed(ctx, err, c.clock.Now(), began))
	}
	return failed(within, err, c.clock.Now(), began)
}

// Shutdown lets holders finish, and then closes the client. Waiters and new calls for a lock, those of branches too,
// get ErrClosed. Re-entries in this client and calls like Info still succeed. When every hold is released or lost, and
// Redis has confirmed the releases, the client closes, and Shutdown returns nil. Lost holds have a release too, and
// each is given up 10 s after its lease. Called under a hold, Shutdown waits for that hold. If ctx ends first,
// Shutdown returns ctx's error and says how many holds are left, and of which locks. The client then stays open for
// them, and does not close by itself: call Shutdown again, or Close. After Close, Shutdown returns nil.
func (c *Client) Shutdown(ctx context.Context) error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeClient)
	}
	if ctx == nil {
		return fmt.Errorf("relock: %w", errNoContext)
	}
	c.tracker.Drain()
	c.giveBackKept()
	if !c.tracker.Await(ctx, true) {
		return fmt.Errorf("relock: shutdown: %w; %s", ending.Of(ctx), c.leftover())
	}
	return c.Close()
}

// giveBackKept releases the grants that the client keeps (Sticky), because no more calls will use them.
func (c *Client) giveBackKept() {
	for _, a := range c.registry.known() {
		at := a.keeper.begin()
		a.keeper.room.GiveBackKept(&at)
		a.keeper.end(&at)
	}
}

// leftover says how many holds a Shutdown still waits for, and of which locks.
func (c *Client) leftover() string {
	holds, names := 0, make(map[string]bool)
	for _, a := range c.registry.known() {
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

// closeGrace is how long Close waits for waiters to leave their queues, and for releases to be confirmed.
const closeGrace = 250 * time.Millisecond

// logGrace is how long Close waits until the logger's handler has taken the records that are left.
const logGrace = 100 * time.Millisecond

// Close ends the client at once. Its holds are lost: their errors are ErrLost and ErrClosed. Waiters and new calls get
// ErrClosed. The leases in Redis run out by themselves. For at most a quarter of a second Close still tells Redis which
// holds had been unlocked or lost, and which waiters left. In that time it also ends the ticket of a Detach that it
// interrupts.
//
// Close returns when the client's goroutines have ended. A goroutine that waits for a silent server ends by the redis
// client's own timeouts. For a slow handler of the Logger, Close waits for 100 ms at most, and drops what is not logged
// by then. Close must not be called from a hook. A second Close waits for the first and does nothing else. Close
// returns nil for every Client that New has made.
func (c *Client) Close() error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeClient)
	}
	c.tracker.Drain()
	if c.refusing.Swap(true) {
		<-c.ended // a second call waits for the first, and does not cut its grace short
		return nil
	}
	c.endClosing()
	defer close(c.ended)
	c.tellApart(c.loseAll()...)
	grace, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	c.tracker.Await(grace, false) // an entry that stays in a queue delays the waiters behind it for up to a lease
	c.tracker.Close()
	late := c.loseAll() // grants that came during the grace
	c.tracker.Cancel()
	c.watchdog.Close()
	c.listeners.Close()
	c.tracker.Wait()
	c.transport.Wait()
	defer c.logs.Close(logGrace)
	runAll(late) // last, because a hook may block here, panic or end the goroutine
	return nil
}

// loseAll loses all holds of the client. The caller must call the losses: they tell the hook and the log.
func (c *Client) loseAll() (losses []func()) {
	for _, a := range c.registry.known() {
		at := a.keeper.begin()
		if a.Held() || a.Away() {
			a.Session.Close(lostFor(ErrClosed), &at)
		}
		losses = append(losses, a.keeper.endUntold(&at)...)
	}
	return losses
}

// background runs fn for at most the given time, and then done, on a goroutine that Close waits for. Once Close permits
// no new goroutine, background only calls done.
func (c *Client) background(limit time.Duration, done func(), fn func(ctx context.Context)) {
	spawned := c.tracker.Go(func(ctx context.Context) {
		defer done() // deferred, because a hook of the redis client may panic
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		fn(ctx)
	})
	if !spawned {
		done()
	}
}

// tellApart calls functions that tell hooks and the log of events without a caller, such as losses, on a goroutine of
// its own. A hook that blocks or ends its goroutine there stops no call, nor the watchdog or the inbox. Once Close
// permits no new goroutine, tellApart calls them itself: all holds are lost, so a hook that blocks delays only Close.
func (c *Client) tellApart(all ...func()) {
	if !c.tracker.Go(func(context.Context) { runAll(all) }) {
		runAll(all)
	}
}

// doAll is keeper.do for several scripts, which are sent together.
func (c *Client) doAll(ctx context.Context, timeout time.Duration, need room.Replicas, calls []transport.Call) []transport.Result {
	if need.N > 0 {
		return c.transport.DoAcked(ctx, timeout, need.N, need.Timeout, calls...)
	}
	return c.transport.DoAll(ctx, timeout, calls)
}

// deliver handles a message from the inbox. It runs on the inbox's goroutine, so it must not wait.
func (c *Client) deliver(payload string) {
	m, err := wire.ParseMessage(payload)
	if err != nil {
		c.cfg.log.Warn("message not understood", slog.Any("err", err))
		return
	}
	if m.Verb == "echo" {
		if c.listeners.Echoed(m.Sight) { // the first echo that says that scripts do not see the subscription
			c.rouse(func(*acquisition) bool { return true }, false)
		}
		return
	}
	a := c.registry.lookup(m.Nonce)
	if a == nil {
		if m.Verb == "grant" {
			c.disown(m.Nonce, nil, instant{})
		}
		return
	}
	behind := c.behind(a, m.Run)
	at := a.keeper.begin()
	switch {
	case m.Verb == "look" && a.Waits():
		a.Entry.Kick(&at)
	case m.Verb == "lost":
		a.Revoke(errForced, &at)
	case m.Verb == "ended":
		a.Revoke(errAncestor, &at)
	case m.Verb == "grant" && a.Waits():
		a.Entry.Granted(m.Op, m.Low, m.High, m.Wanted, behind, &at)
	case m.Verb == "wanted":
		a.NoteWantedMessage(&at)
	}
	a.keeper.end(&at)
}

// behind returns the acquisitions that a grant to first names as next in the queue, up to one that has ended here.
func (c *Client) behind(first *acquisition, run []string) (all []*room.Acquisition) {
	for _, nonce := range run {
		a := c.registry.lookup(nonce)
		if a == nil || a.keeper != first.keeper {
			break // from here on, Redis chooses the next holder
		}
		all = append(all, &a.Acquisition)
	}
	return all
}

// linked is called when a channel has a new connection. Messages may have been missed, so each waiter of the channel
// asks Redis. Unless it is the channel's first connection, the server may be another one that lacks the latest writes.
// Then recent releases are sent again too.
func (c *Client) linked(channel string, first bool) {
	if !first {
		now := c.clock.Now()
		c.labels.Doubt(now)
		c.registry.journal.Suspect(now)
	}
	c.rouse(func(a *acquisition) bool { return a.keeper.listener.Channel == channel }, !first)
}

// rouse makes waiters ask Redis again, if which returns true for them. With elsewhere, the server may be another one:
// then waits on conditions end, as if signalled.
func (c *Client) rouse(which func(a *acquisition) bool, elsewhere bool) {
	for _, a := range c.registry.known() {
		if !which(a) {
			continue
		}
		at := a.keeper.begin()
		if a.Waits() {
			a.Entry.Kick(&at)
		}
		if a.Away() && elsewhere {
			a.Entry.DoubtSignal(&at)
		}
		a.keeper.end(&at)
	}
}

// disown releases a grant to this client that no call here wants: its call gave up, or a failover brought it back.
// nonce is the grant's. k is the lock's keeper; if it is nil, only the journal may know the lock. asked is when the
// request was sent whose answer names the grant, or zero if a message does. A request that was sent before Redis
// answered the nonce's release shows nothing new. That is common when many calls wait and the lock passes quickly. What
// nobody here knows during Close may be a hold that Close has lost: its lease must run out.
func (c *Client) disown(nonce string, k *keeper, asked instant) {
	id, ours := wire.ParseNonce(nonce)
	now := c.clock.Now()
	r := &c.registry
	r.mu.Lock()
	n := r.journal.Find(id)
	if ours && (r.acquisitions[id] != nil || n == nil && c.refusing.Load()) {
		r.mu.Unlock()
		return
	}
	var call transport.Call
	if k != nil {
		call = c.wire.Release(k.keys(), wire.Session{Nonce: nonce}, replay.OwesSignal, replay.AnyLease, false)
	}
	if ours && n != nil {
		if !asked.IsZero() && !asked.Reached(n.Answered) {
			r.mu.Unlock()
			return
		}
		n.Answered = now // one release is enough for all requests up to now
		call = n.Call(c.wire)
	}
	r.mu.Unlock()
	if call.Script == nil {
		return
	}
	c.background(room.LateAfter, func() {}, func(ctx context.Context) {
		_ = transport.Try(ctx, nil, func() (again bool, err error) {
			_, err = c.transport.Do(ctx, 2*time.Second, call)
			return err != nil, err
		})
	})
}

// settle goes on where a script stopped because the queue was too long for one call. To move the queue on, it releases
// a nonce that nobody has, which changes nothing else. No waiter can be relied on to do that.
func (c *Client) settle(keys key.Keys) {
	c.background(room.LateAfter, func() {}, func(ctx context.Context) {
		call := c.wire.Release(keys, wire.Session{Nonce: wire.NewNonce().String()}, 0, 0, false)
		_ = transport.Try(ctx, nil, func() (again bool, err error) {
			raw, err := c.transport.Do(ctx, 2*time.Second, call)
			if err != nil {
				return true, err
			}
			_, _, more, err := wire.DecodeRelease(raw)
			return more && err == nil, err
		})
	})
}

// unconfirmed returns the error of an Unlock that Redis did not answer in its ReleaseTimeout, or before Close ended.
func (c *Client) unconfirmed(err error) error {
	base := fmt.Errorf("%w within %v; the client goes on trying, and the lease ends it at the latest", ErrUnconfirmed, c.cfg.releaseTimeout)
	if c.ctx.Err() != nil {
		base = fmt.Errorf("%w: %w before redis answered; the lease ends it", ErrUnconfirmed, ErrClosed)
	}
	if err == nil || ending.Is(err, ErrClosed) {
		return base
	}
	return fmt.Errorf("%w: %v", base, err) // not wrapped: err may be the end of a context that is not the caller's
}

func (c *Client) logWasted(ttl time.Duration, k *keeper) {
	c.cfg.log.Warn("grants end before they can be used; a longer TTL is needed, or a quicker way to redis",
		slog.String("lock", k.name()), slog.Duration("ttl", ttl))
}

// labelWaiters puts labels into waiters, whose Label is still the ID of their client.
func (c *Client) labelWaiters(ctx context.Context, all []Waiter) {
	at := make([]*string, len(all))
	for i := range all {
		at[i] = &all[i].Label
	}
	c.labels.Replace(ctx, at)
}
