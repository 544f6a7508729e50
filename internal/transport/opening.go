package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Connecting is not part of a call. A connection to a distant server costs many round trips (TCP, TLS, the handshake),
// or waits for a provider of credentials. If a dial ended with the call that started it, calls with a short timeout
// would never get a connection. So a goroutine of its own dials, and a later call finds the connection. While a dial
// hangs there is no other one: calls use the client's pool.

// openingLimit ends a dial that has no timeouts of its own.
const openingLimit = 30 * time.Second

// errTaken stops go-redis before it sends the first command.
var errTaken = errors.New("the connection is used by relock itself")

// An opening is a dial in progress, for a stream. A go-redis client with one connection dials the server and does the
// handshake. Then OnConnect takes the connection away from that client.
type opening struct {
	source   *streamSource
	began    time.Time
	end      context.CancelFunc
	over     chan struct{} // closed when the dial has ended
	poolLost uint32        // how many connections the client's pool had lost when the dial began
	gaveUpOn atomic.Bool   // a call has waited for this dial and given up

	mu        sync.Mutex // guards the following fields
	conn      *holdable  // the latest
	cancelled bool       // the dial must end
	taken     bool       // conn belongs to the opening, and no longer to go-redis
}

// A holdable is a connection that go-redis cannot close once the opening has taken it.
type holdable struct {
	net.Conn
	p *opening
}

func (h *holdable) Close() error {
	h.p.mu.Lock()
	taken := h.p.taken && h.p.conn == h
	h.p.mu.Unlock()
	if taken {
		return nil
	}
	return h.Conn.Close()
}

// connect starts a dial, unless there is a stream or a dial, or none may be made now.
func (o *streamSource) connect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, pool := time.Now(), o.rdb.PoolStats()
	switch {
	case o.sentinel && pool.IdleConns == 0: // see switched
		return
	case o.closed || o.stream.Load() != nil || o.opening.Load() != nil || now.Before(o.noDialBefore):
		return
	}
	ctx, end := context.WithTimeout(context.Background(), openingLimit)
	p := &opening{source: o, began: now, end: end, over: make(chan struct{}), poolLost: pool.StaleConns}
	o.opening.Store(p)
	o.running.Go(func() { p.run(ctx) })
}

// run dials, and ends the opening.
func (p *opening) run(ctx context.Context) {
	defer p.end()
	defer p.source.opened(p) // deferred, because a user's Dialer or OnConnect may call runtime.Goexit
	stop := context.AfterFunc(ctx, p.cancel)
	defer stop()
	opt := *p.source.opt
	dial, greet := opt.Dialer, opt.OnConnect
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return p.dialled(c), nil
	}
	opt.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		if greet != nil {
			if err := greet(ctx, c); err != nil {
				return err
			}
		}
		p.take()
		return errTaken
	}
	rdb := redis.NewClient(&opt)
	defer func() { _ = rdb.Close() }()
	// OnConnect returns an error, so this command is never sent. If it were sent, it would change nothing.
	_ = rdb.Process(ctx, once{redis.NewCmd(ctx, evalsha, noScript, 0)})
}

// dialled wraps a new connection. It returns a closed connection, not an error, if the opening was cancelled: go-redis
// would dial again after an error.
func (p *opening) dialled(c net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn = &holdable{Conn: c, p: p}
	if p.cancelled {
		_ = c.Close()
	}
	return p.conn
}

// take takes the connection from go-redis, unless the opening was cancelled.
func (p *opening) take() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = !p.cancelled
}

// cancel ends the dial, unless the connection has been taken.
func (p *opening) cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancelled = !p.taken; p.cancelled && p.conn != nil {
		_ = p.conn.Conn.Close()
	}
}

// opened ends an opening. Its connection becomes the stream. After a failure there is no dial for dialPause, because
// each call would wait for it. If reads cannot be interrupted, as through an SSH tunnel, there is no stream at all:
// closing it might not end its goroutines.
func (o *streamSource) opened(p *opening) {
	p.mu.Lock()
	taken, failed := p.taken, !p.taken && !p.cancelled
	p.mu.Unlock()
	noDeadlines := taken && p.conn.SetDeadline(time.Time{}) != nil // also clears the deadlines that go-redis has set
	o.mu.Lock()
	o.closed = o.closed || noDeadlines
	use := taken && !o.closed
	if use {
		newStream(o, p.conn.Conn, p.poolLost)
	}
	if failed || o.slow.Load() {
		o.noDialBefore = time.Now().Add(dialPause)
	}
	o.opening.Store(nil)
	o.mu.Unlock()
	close(p.over)
	if taken && !use {
		_ = p.conn.Conn.Close()
	}
}

// errConnecting is the error of a call that was not sent, because its whole timeout passed while it waited for a
// connection. The dial goes on, so the next try may begin at once.
var errConnecting = errors.New("a connection is being made")

// await waits for a dial. It returns nil when there is a stream, and when the call should use the client's pool instead.
func (o *streamSource) await(ctx context.Context, timeout time.Duration) error {
	p := o.opening.Load()
	if p == nil {
		return nil
	}
	wait := time.Until(p.began.Add(o.dialWait(p, timeout)))
	timer := time.NewTimer(min(wait, timeout))
	defer timer.Stop()
	select {
	case <-p.over:
		return nil
	case <-ctx.Done():
		return notSent(ctx)
	case <-timer.C:
	}
	p.gaveUpOn.Store(true)
	if wait >= timeout {
		return fmt.Errorf("%w: %w", errConnecting, ErrNoReply)
	}
	return nil
}

// dialWait is how long calls wait for a dial before they use the client's pool, which may work while this dial hangs.
func (o *streamSource) dialWait(p *opening, timeout time.Duration) time.Duration {
	rtt := time.Duration(o.rtt.Load())
	switch {
	case p.gaveUpOn.Load() && o.rdb.PoolStats().IdleConns > 0:
		return 0
	case rtt > 0:
		return maxDialRTTs*rtt + stall
	}
	return maxDialRTTs * timeout / 2
}

// maxDialRTTs is how many round trips a dial takes at most, unless the server hangs.
const maxDialRTTs = 8
