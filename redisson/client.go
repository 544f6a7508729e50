package redisson

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/leaving"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/shutdown"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
)

// A Client makes locks that Redisson's clients of the same Redis share. One Client for each Redis is enough for a
// process: New makes it, and Shutdown or Close ends it. Its methods may be called from any goroutine. A nil or zero
// Client makes handles whose calls return ErrInvalidOption.
type Client struct {
	id        string // the first part of every owner
	cfg       config
	rdb       redis.UniversalClient
	transport *transport.Transport
	channels  atomic.Pointer[inbox.Shards] // nil until it is known how unlocks are announced
	watchdog  *renewal.Schedule
	clock     *clock.Clock
	numbers   atomic.Int64 // the number in the latest owner's field
	leaving   leaving.Book // what ended calls have left in Redis, until it is removed

	tracker   *shutdown.Tracker
	ctx, open context.Context // the tracker's Running and Open: for work without a caller, and for waiters

	mu       sync.Mutex // guards the following fields, and all sessions, holds and handles
	publish  string     // the command that announces unlocks; empty: not known yet
	asking   *question  // asks a Cluster for that command; nil: no call asks
	sessions map[*session]struct{}
	owners   map[ownerKey]*owner
	waiters  map[string]*channelWaiters
	skews    map[string]int64 // by server: its clock minus ours, in ms
	ends     int              // ends of holds and of calls that are in progress
	closing  bool             // Close has begun
}

// New returns a Client that makes locks in the Redis behind rdb: standalone, Sentinel or Cluster, but not Ring. It does
// no I/O. With nil, a Ring or a bad option it returns relock.ErrInvalidOption. rdb stays the caller's, who closes it
// after the Client.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	if v := reflect.ValueOf(rdb); rdb == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("redisson: %w: the redis client is nil", relock.ErrInvalidOption)
	}
	if !transport.CanListen(rdb) {
		return nil, fmt.Errorf("redisson: %w: the redis client is a Ring, or a decorator around one or around nil; use a client of a server, Sentinel or Cluster", relock.ErrInvalidOption)
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("redisson: %w", err)
	}
	c := &Client{
		id:        uuid.NewString(),
		cfg:       cfg,
		rdb:       rdb,
		transport: transport.New(rdb),
		clock:     new(clock.Clock),
		sessions:  make(map[*session]struct{}),
		owners:    make(map[ownerKey]*owner),
		waiters:   make(map[string]*channelWaiters),
		skews:     make(map[string]int64),
	}
	c.tracker = shutdown.New(&c.mu, c.left)
	c.ctx, c.open = c.tracker.Running, c.tracker.Open
	c.watchdog = renewal.New(c.clock, c.runDue)
	return c, nil
}

// hear finds out, once, how clients announce unlocks. Unless ShardedPubSub is given, it must ask a Cluster for that.
func (c *Client) hear(ctx context.Context) error {
	if c.channels.Load() != nil {
		return nil
	}
	_, cluster := c.rdb.(primaries)
	sharded := cluster
	switch {
	case c.cfg.sharded != nil:
		sharded = *c.cfg.sharded
	case cluster:
		err := c.askSharded(ctx)
		var answer redis.Error
		refused := errors.As(err, &answer) && strings.HasPrefix(answer.Error(), "ERR")
		if err != nil && !refused {
			return fmt.Errorf("asking whether the cluster has sharded pub/sub: %w", err)
		}
		sharded = err == nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return relock.ErrClosed
	}
	if c.channels.Load() == nil {
		c.publish = map[bool]string{true: "SPUBLISH", false: "PUBLISH"}[sharded]
		c.channels.Store(c.newChannels(sharded))
	}
	return nil
}

// hearInTime repeats hear until Redis has answered or ctx ends.
func (c *Client) hearInTime(ctx context.Context) error {
	err := transport.Try(ctx, c.open.Done(), func() (bool, error) {
		err := c.hear(ctx)
		return err != nil, err
	})
	if err != nil {
		return unheard(ctx, c.open, err)
	}
	return nil
}

// askSharded asks the cluster whether it has sharded pub/sub. A command of go-redis does not end with its context, so
// it runs on a goroutine of the client: the caller leaves when ctx ends, and later calls wait for the same answer.
func (c *Client) askSharded(ctx context.Context) error {
	c.mu.Lock()
	q, first := c.asking, c.asking == nil
	if first {
		q = &question{done: make(chan struct{})}
		c.asking = q
	}
	c.mu.Unlock()
	if first {
		c.tracker.Go(func(ctx context.Context) { // after Close this does not run, but then open has ended too
			q.err = c.rdb.Do(ctx, "PUBSUB", "SHARDNUMSUB").Err()
			c.mu.Lock()
			c.asking = nil // if it has failed, the next call asks again
			c.mu.Unlock()
			close(q.done)
		})
	}
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ending.Of(ctx)
	case <-c.open.Done():
		return relock.ErrClosed
	}
}

func (c *Client) newChannels(sharded bool) *inbox.Shards {
	var serves func(context.Context, inbox.Node, string) error
	if sharded { // an ordinary message reaches all servers of a Cluster, so any server will do
		serves = inbox.Serves
	}
	return inbox.NewShards(inbox.ShardsConfig{
		Plain: !sharded,
		Node: func(ctx context.Context, channel string) (string, inbox.Node, error) {
			if !sharded {
				return "", c.rdb, nil
			}
			return inbox.NodeOf(ctx, c.rdb, channel)
		},
		Serves:  serves,
		Moved:   c.transport.Reload,
		Deliver: c.deliver,
		Linked:  func(channel string, _ bool) { c.deliver(channel, messageAll) },
		Refused: c.transport.Refuses,
		Linger:  linger,
	})
}

// Shutdown ends the client in order. Waiters and new calls for a lock get ErrClosed, and re-entries still succeed. When
// the last hold is released and Redis has been told, the client closes, and Shutdown returns nil. It does not wait for
// holds that are lost, but their releases are told to Redis too. Each is given up 10 s after its lease. While Redis is
// silent, Shutdown waits until Redis can have nothing left: a FairWait for a call that has left a fair queue. If ctx
// ends first, Shutdown returns ctx's error, and the client stays open for its holds: call Shutdown again, or Close.
// After Close, and if Close interrupts it, Shutdown returns nil.
func (c *Client) Shutdown(ctx context.Context) error {
	if c == nil || c.transport == nil {
		return fmt.Errorf("redisson: %w", errBadLock)
	}
	if ctx == nil {
		return fmt.Errorf("redisson: %w: the context is nil; pass context.Background()", relock.ErrInvalidOption)
	}
	c.tracker.Drain()
	if !c.tracker.Await(ctx, true) {
		return fmt.Errorf("redisson: shutdown: %w", ending.Of(ctx))
	}
	return c.Close()
}

// left counts what Shutdown waits for, and Close for a short time: sessions with calls, and ends of holds that are in
// progress. Before Close it also counts sessions with holds that are not lost. It needs c.mu.
func (c *Client) left() int {
	n := c.ends
	for s := range c.sessions {
		if s.calls > 0 || !c.closing && s.held() {
			n++
		}
	}
	return n
}

// Close ends the client now, and returns nil. Its holds are lost, with an error that matches ErrLost and ErrClosed, and
// their leases in Redis run out. Waiters and new calls get ErrClosed. For at most a quarter of a second Close still
// tells Redis which locks were unlocked and which waiters left. It returns when the client's goroutines have ended.
// With a silent server they may need the redis client's timeouts. The redis client stays open. Close may be called
// again.
func (c *Client) Close() error {
	if c == nil || c.transport == nil {
		return fmt.Errorf("redisson: %w", errBadLock)
	}
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.tracker.Drain()
	grace, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	c.tracker.Await(grace, true) // an entry that stays in a fair lock's queue would hold up all others
	c.tracker.Close()
	c.mu.Lock()
	var todo []func()
	for s := range c.sessions {
		todo = append(todo, s.lose(fmt.Errorf("%w: %w", relock.ErrLost, relock.ErrClosed))...)
	}
	channels := c.channels.Load()
	c.mu.Unlock()
	run(todo)
	c.tracker.Cancel()
	c.watchdog.Close()
	if channels != nil {
		channels.Close()
	}
	c.tracker.Wait()
	c.transport.Wait()
	return nil
}

// spawn runs fn on a goroutine that Close waits for, for at most the given time. After Close it returns false.
func (c *Client) spawn(limit time.Duration, fn func(ctx context.Context)) (spawned bool) {
	return c.tracker.Go(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		fn(ctx)
	})
}

// notAfter returns the time by the server's clock, in ms, after which the server must refuse a request that is sent
// now. While the server's clock is unknown, it returns a time that is long over. Then the request takes nothing, the
// answer tells the clock, and the next request counts. It needs the client's mu.
func (c *Client) notAfter(server string, timeout time.Duration) int64 {
	skew, known := c.skews[server]
	if !known {
		return 1
	}
	return time.Now().UnixMilli() + skew + (timeout + slack).Milliseconds()
}

// NewLock returns a handle on the lock of that name: Redisson's getLock, with Fair its getFairLock, with Fenced its
// getFencedLock. It does no I/O. A name has 1 to 512 bytes of UTF-8, and may have a brace only if it has a hash tag.
// With a bad name or option every call on the handle returns ErrInvalidName or ErrInvalidOption. Use a name for one
// kind of lock only. A read/write lock and the other kinds refuse each other with ErrKind while the name is held.
// Plain, fair and fenced locks of one name exclude each other without an error, but a plain or fenced one overtakes the
// fair queue. They exclude one owner's calls too: an owner that holds by one kind would wait for itself by another. The
// call gets ErrKind at once only if its context descends from that hold.
func (c *Client) NewLock(name string, opts ...LockOption) *Lock {
	return c.newLock(name, plain, opts)
}

func (c *Client) newLock(name string, k kind, opts []LockOption) *Lock {
	l := &Lock{c: c, name: name, names: namesOf(name), kind: k}
	if c == nil || c.transport == nil {
		l.c = nil
		return l
	}
	if l.err = checkName(name); l.err != nil {
		return l
	}
	l.terms, l.err = c.cfg.terms.with(opts)
	switch {
	case k.rw() && (l.terms.fair || l.terms.fenced):
		l.err = fmt.Errorf("%w: Fair or Fenced of a read/write lock: Redisson has neither", relock.ErrInvalidOption)
	case l.terms.fair:
		l.kind = fair
	case l.terms.fenced:
		l.kind = fenced
	case k == reading && l.err == nil:
		l.terms, l.err = l.terms.toRead(c.cfg.readLease)
	}
	return l
}

// join makes a call a waiter for messages of a channel, and subscribes the channel.
func (c *Client) join(channel string) *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.waiters[channel]
	if all == nil {
		box := c.channels.Load().Channel(channel)
		all = &channelWaiters{channel: box, leave: box.Join()}
		c.waiters[channel] = all
	}
	w := &waiter{all: all, name: channel, news: make(chan struct{}, 1)}
	all.waiters = append(all.waiters, w)
	return w
}

// part takes a waiter off its channel. If the call was told to try and has no answer yet, the next waiter is told.
func (c *Client) part(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := w.all
	all.waiters = slices.DeleteFunc(all.waiters, func(other *waiter) bool { return other == w })
	if w.told || len(w.news) > 0 {
		all.wake(false)
	}
	if len(all.waiters) == 0 {
		delete(c.waiters, w.name)
		all.leave()
	}
}

// deliver handles a message. It ignores messages that are not Redisson's.
func (c *Client) deliver(channel, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.waiters[channel]; all != nil && (message == messageOne || message == messageAll) {
		all.wake(message == messageAll)
	}
}

// NewRWLock returns a handle on the read/write lock of that name, Redisson's getReadWriteLock. It does no I/O. With a
// bad name or option, or with Fair or Fenced even in Defaults, its calls return ErrInvalidName or ErrInvalidOption.
func (c *Client) NewRWLock(name string, opts ...LockOption) *RWLock {
	return &RWLock{c.newLock(name, writing, opts), c.newLock(name, reading, opts)}
}

// session returns the session of a call's owner. The call must call leave in the end.
func (c *Client) session(w *waiting) (*session, error) {
	l, name := w.lock, w.owner
	c.mu.Lock()
	defer c.mu.Unlock()
	key, o := ownerKey{l.names.key, name, l.kind.ofLock()}, w.downgraded
	if o == nil && name != "" {
		o = c.owners[key]
	}
	if o == nil {
		o = &owner{field: c.id + ":" + strconv.FormatInt(c.numbers.Add(1), 10), key: key}
	}
	succession := o.succession(l.kind)
	if s := succession.now; s != nil { // of an anonymous owner too: two downgrades of its hold use one field
		if c.closing || c.tracker.Draining() && len(s.holds) == 0 {
			return nil, relock.ErrClosed
		}
		s.calls++
		return s, nil
	}
	if c.closing || c.tracker.Draining() && !o.holds() { // an owner with a hold may still read or Downgrade
		return nil, relock.ErrClosed
	}
	s := &session{c: c, kind: l.kind, names: l.names, named: name != "", calls: 1, owner: o, succession: succession}
	s.task.Of = s
	o.sessionCount++
	succession.now = s
	if s.named && c.owners[key] == nil { // a Downgrade may have an owner that has ended, and the name a later one
		c.owners[key] = o
	}
	c.sessions[s] = struct{}{}
	return s, nil
}

// leave ends a call's part in a session. A session without holds and calls ends. If Redis may still have
// something of it, that is undone.
func (c *Client) leave(s *session) {
	c.mu.Lock()
	s.calls--
	c.ends++ // until undo has begun: a Shutdown must not close before it
	undo := s.calls == 0 && len(s.holds) == 0 && !s.gone && (s.doubt || s.queued)
	if s.calls == 0 && len(s.holds) == 0 {
		s.end()
	}
	c.mu.Unlock()
	defer c.ended()
	if undo {
		s.undo()
	}
}

// ended records that the end of a hold or of a call has been dealt with.
func (c *Client) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends--
	c.tracker.Ended()
}

// runDue runs on the watchdog's goroutine. It finds losses, and sends the renewals that are due.
func (c *Client) runDue(due []*renewal.Task) {
	now := c.clock.Now()
	var rounds []round
	var untold []*session
	var todo []func()
	timeout := 2 * time.Second
	c.mu.Lock()
	for _, t := range due {
		s := t.Of.(*session)
		for _, h := range s.holds {
			_, lost := h.judge(now)
			todo = append(todo, lost...)
		}
		if lease := s.lease(now); lease > 0 {
			r := round{s: s, call: s.renewCall(lease), shortest: lease}
			for _, h := range s.holds {
				if h.renewable(now) {
					r.holds = append(r.holds, h)
					r.shortest = min(r.shortest, h.terms.ttl)
					timeout = min(timeout, trust.Attempt(h.terms.ttl))
				}
			}
			rounds, untold = append(rounds, r), append(untold, s.owner.untold()...)
			s.renewing = true
		}
		s.arm(now)
	}
	c.mu.Unlock()
	if len(todo) > 0 || len(rounds) > 0 {
		c.spawn(timeout+slack, func(ctx context.Context) {
			run(todo)
			c.renew(ctx, rounds, timeout)
			for _, s := range untold {
				s.clear(ctx, s.releaseCall(0, max(s.top, 1)))
			}
		})
	}
}

func (c *Client) renew(ctx context.Context, rounds []round, timeout time.Duration) {
	if len(rounds) == 0 {
		return
	}
	calls := make([]transport.Call, len(rounds))
	for i, r := range rounds {
		calls[i] = r.call
	}
	sent := c.clock.Now()
	results := c.transport.DoAll(ctx, timeout, calls)
	var todo []func()
	c.mu.Lock()
	for i, r := range rounds {
		todo = append(todo, r.renewed(results[i], sent, c.clock.Now())...)
	}
	c.mu.Unlock()
	run(todo)
}

// primaries is a redis client that finds the primary of a key: a Cluster client.
type primaries interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
}

// A question is a request whose answer several calls wait for.
type question struct {
	done chan struct{} // closed when it was answered or has failed
	err  error         // set before done is closed
}

// linger is how long a channel stays subscribed after its last waiter has left.
const linger = 5 * time.Second

// closeGrace is how long Close still leaves queues and releases what was unlocked.
const closeGrace = 250 * time.Millisecond

// run calls the functions that judge, lose and cancel have returned. The client's mu must be free: these functions
// cancel contexts, whose methods take it.
func run(todo []func()) {
	for _, f := range todo {
		f()
	}
}
