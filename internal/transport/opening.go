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

// A call does not dial its stream itself. Making a connection may take many round trips (TCP, TLS, the handshake), or a
// wait for a provider of credentials. If the dial ended with the call, calls with a short timeout would never get a
// connection. So each dial has its own goroutine, and later calls use the connection. While one hangs, calls use the
// client's pool.

// openingLimit bounds a dial, because the client may have no timeouts of its own.
const openingLimit = 30 * time.Second

// errTaken is what OnConnect returns, so that go-redis sends nothing more on a connection that was taken from it.
var errTaken = errors.New("the connection is used by relock itself")

// An opening is a dial in progress, for a stream. A go-redis client that is made for it dials the server and does the
// handshake. Then OnConnect takes the connection away from that client.
type opening struct {
	source     *streamSource
	began      time.Time
	cancelDial context.CancelFunc
	over       chan struct{} // closed when the dial has ended
	poolLost   uint32        // the pool's StaleConns when the dial began: see switched
	gaveUpOn   atomic.Bool   // a call has waited for this dial and given up

	mu        sync.Mutex // guards the following fields
	conn      *holdable  // the connection that was dialled last
	cancelled bool       // the dial was cancelled before conn was taken
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

// connect starts a dial, unless there is a stream or a dial already, or none may begin now.
func (o *streamSource) connect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, pool := time.Now(), o.rdb.PoolStats()
	switch {
	case o.sentinel && pool.IdleConns == 0: // switched would end the stream at once
		return
	case o.closed || o.stream.Load() != nil || o.opening.Load() != nil || now.Before(o.noDialBefore):
		return
	}
	ctx, end := context.WithTimeout(context.Background(), openingLimit)
	p := &opening{source: o, began: now, cancelDial: end, over: make(chan struct{}), poolLost: pool.StaleConns}
	o.opening.Store(p)
	o.t.mu.Lock()
	o.t.spawn(func() { p.run(ctx) })
	o.t.mu.Unlock()
}

// run dials, and ends the opening.
func (p *opening) run(ctx context.Context) {
	defer p.cancelDial()
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
	// This makes the client dial. The command is never sent, because OnConnect fails. If it were, it would change nothing.
	_ = rdb.Process(ctx, once{redis.NewCmd(ctx, evalsha, noScript, 0)})
}

// dialled wraps a new connection. If the opening was cancelled, it closes the connection, and the handshake fails.
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

// opened ends an opening, whose connection becomes the stream. After a failure there is no dial for dialPause, because
// each call would wait for it. A connection without deadlines, as through an SSH tunnel, is not used, and no other is
// dialled: its reads cannot be interrupted, and closing it might not end its goroutines.
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

// errConnecting is the error of a call that was not sent, because it waited for a dial during its whole timeout. The
// dial goes on, so the next try may begin at once.
var errConnecting = errors.New("a connection is being made")

// await waits for the dial in progress. It returns nil once the dial has ended, or if the call should use the client's
// pool instead. It returns an error if ctx or the call's timeout ends first.
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

// dialWait returns for how long after the start of a dial calls wait for it. Then they use the pool, which may work
// already. It is 0 once a call has given up on the dial and the pool has an idle connection.
func (o *streamSource) dialWait(p *opening, timeout time.Duration) time.Duration {
	rtt := time.Duration(o.t.rtt.Load())
	switch {
	case p.gaveUpOn.Load() && o.rdb.PoolStats().IdleConns > 0:
		return 0
	case rtt > 0:
		return maxDialRTTs*rtt + stall
	}
	return maxDialRTTs * timeout / 2 // as if a round trip took half the timeout
}

// maxDialRTTs is how many round trips a dial takes at most, unless the server hangs.
const maxDialRTTs = 8
