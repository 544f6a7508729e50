package redisson

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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
	"github.com/relock-go/relock/internal/transport"
)

// A Client makes locks that Redisson's clients of the same Redis share. Its methods may be called
// from any goroutine.
type Client struct {
	id        string // the first part of every owner
	cfg       config
	rdb       redis.UniversalClient
	transport *transport.Transport
	channels  atomic.Pointer[inbox.Shards] // nil until it is known how clients hear
	watchdog  *renewal.Schedule
	clock     *clock.Clock
	skew      atomic.Int64 // the server's clock less ours, in ms
	numbers   atomic.Int64 // the second part of the latest owner
	leaving   leaving.Book // what calls that have ended leave in Redis, until it is removed

	ctx    context.Context // ends with Close; for what goes on without a caller
	cancel context.CancelFunc
	open   context.Context // ends with Shutdown or Close; for waiters
	shut   context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // guards the following fields, and all sessions, holds and handles
	publish  string     // the command by which clients hear; empty: not known yet
	asking   *question  // how they do, of a Cluster; nil: nobody asks
	sessions map[*session]struct{}
	owners   map[ownerKey]*owner
	rooms    map[string]*room
	tasks    int
	idle     chan struct{} // closed and replaced when something ends that Shutdown waits for
	draining bool
	closed   bool
}

// New returns a Client that makes locks in the Redis behind rdb: standalone, Sentinel or Cluster,
// but not Ring. It does no I/O. rdb stays the caller's, who closes it after the Client.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	if v := reflect.ValueOf(rdb); rdb == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("redisson: %w: the redis client is nil", relock.ErrInvalidOption)
	}
	if !transport.CanListen(rdb) {
		return nil, fmt.Errorf("redisson: %w: a Ring moves keys between servers when one fails, and holds with them; use Cluster or Sentinel", relock.ErrInvalidOption)
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
		clock:     clock.System(),
		sessions:  make(map[*session]struct{}),
		owners:    make(map[ownerKey]*owner),
		rooms:     make(map[string]*room),
		idle:      make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.open, c.shut = context.WithCancel(context.Background())
	c.watchdog = renewal.New(c.clock, c.runDue)
	return c, nil
}

// primaries is what a Cluster client has.
type primaries interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
}

// hear finds out how clients hear of an unlock, once. In a Cluster that takes a question.
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
	if c.closed {
		return relock.ErrClosed
	}
	if c.channels.Load() == nil {
		c.publish = map[bool]string{true: "SPUBLISH", false: "PUBLISH"}[sharded]
		c.channels.Store(c.newChannels(sharded, cluster))
	}
	return nil
}

// A question is one that calls wait for together.
type question struct {
	done chan struct{} // closed when it is answered, or has failed
	err  error         // set before
}

// askSharded asks the cluster whether it has sharded pub/sub. A command of go-redis does not end with its
// context, so it runs on a goroutine of the client: the caller leaves when ctx ends, and later calls wait
// for the same answer.
func (c *Client) askSharded(ctx context.Context) error {
	c.mu.Lock()
	q := c.asking
	if q == nil && !c.closed {
		q = &question{done: make(chan struct{})}
		c.asking = q
		c.wg.Go(func() {
			q.err = c.rdb.Do(c.ctx, "PUBSUB", "SHARDNUMSUB").Err()
			c.mu.Lock()
			c.asking = nil // where it has failed, the next call asks again
			c.mu.Unlock()
			close(q.done)
		})
	}
	c.mu.Unlock()
	if q == nil {
		return relock.ErrClosed
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

// linger is how long a channel stays subscribed that nobody waits for.
const linger = 5 * time.Second

func (c *Client) newChannels(sharded, cluster bool) *inbox.Shards {
	var serves func(context.Context, inbox.Node, string) error
	if sharded { // what is published plainly reaches every server
		serves = inbox.Serves
	}
	return inbox.NewShards(inbox.ShardsConfig{
		Plain: !sharded,
		Node: func(ctx context.Context, channel string) (string, inbox.Node, error) {
			if !sharded || !cluster {
				return "", c.rdb, nil
			}
			node, err := c.rdb.(primaries).MasterForKey(ctx, channel)
			if err != nil {
				return "", nil, err
			}
			return node.Options().Addr, node, nil
		},
		Serves:  serves,
		Moved:   c.transport.Reload,
		Deliver: c.deliver,
		Linked:  func(channel string, _ bool) { c.deliver(channel, messageAll) },
		Refused: c.transport.Refuses,
		Linger:  linger,
		Spread:  transport.Spread,
	})
}

// Shutdown ends the client in order. Waiters and new calls get ErrClosed. When the last hold is
// released, the client closes. If ctx ends before that, Shutdown returns ctx's error: call Close
// then.
func (c *Client) Shutdown(ctx context.Context) error {
	if c == nil || c.transport == nil {
		return fmt.Errorf("redisson: %w", errBadLock)
	}
	if ctx == nil {
		return fmt.Errorf("redisson: %w: the context is nil; pass context.Background()", relock.ErrInvalidOption)
	}
	c.drain()
	for {
		c.mu.Lock()
		idle, quiet := c.idle, c.tasks == 0
		for s := range c.sessions {
			quiet = quiet && !s.busy()
		}
		quiet = quiet || c.closed
		c.mu.Unlock()
		if quiet {
			return c.Close()
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("redisson: shutdown: %w", ending.Of(ctx))
		}
	}
}

func (c *Client) drain() {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	c.shut()
}

// closeGrace is how long Close goes on leaving queues and releasing what has been unlocked.
const closeGrace = 250 * time.Millisecond

// settle waits until no call waits and nothing is being released, for the grace at most: an
// entry of nobody's in a fair lock's queue holds up all others.
func (c *Client) settle() {
	limit := time.NewTimer(closeGrace)
	defer limit.Stop()
	for {
		c.mu.Lock()
		idle, busy := c.idle, c.tasks > 0
		for s := range c.sessions {
			busy = busy || s.calls > 0
		}
		c.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-idle:
		case <-limit.C:
			return
		}
	}
}

// Close ends the client now. Holds are lost, and their leases in Redis run out by themselves.
// Waiters get ErrClosed. For at most a quarter of a second Close still tells Redis which locks were
// unlocked and which waiters left. It returns when the client's goroutines have ended.
func (c *Client) Close() error {
	if c == nil || c.transport == nil {
		return fmt.Errorf("redisson: %w", errBadLock)
	}
	c.drain()
	c.settle()
	c.mu.Lock()
	c.closed = true
	var todo []func()
	for s := range c.sessions {
		todo = append(todo, s.lose(fmt.Errorf("%w: %w", relock.ErrLost, relock.ErrClosed))...)
	}
	channels := c.channels.Load()
	c.notify()
	c.mu.Unlock()
	run(todo)
	c.cancel()
	c.watchdog.Close()
	if channels != nil {
		channels.Close()
	}
	c.wg.Wait()
	c.transport.Wait()
	return nil
}

// spawn runs fn on a goroutine that Close waits for, for at most the given time; after
// Close it does nothing.
func (c *Client) spawn(limit time.Duration, fn func(ctx context.Context)) (spawned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tasks++
	c.wg.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, limit)
		defer cancel()
		fn(ctx)
		c.finished()
	})
	return true
}

// finished takes note that a task has ended.
func (c *Client) finished() {
	c.mu.Lock()
	c.tasks--
	c.notify()
	c.mu.Unlock()
}

// notify wakes a Shutdown. It needs c.mu.
func (c *Client) notify() {
	if c.draining {
		close(c.idle)
		c.idle = make(chan struct{})
	}
}

// serverAt is what the server's clock says at about now, in ms.
func (c *Client) serverAt() int64 { return time.Now().UnixMilli() + c.skew.Load() }

func run(todo []func()) {
	for _, f := range todo {
		f()
	}
}
