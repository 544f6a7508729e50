package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Connecting is not part of a call. A connection to a server that is far away costs many
// round trips (TCP, TLS, the greeting), or the time that a provider takes for credentials.
// If it ended with the call that needs it first, calls with a short timeout would never
// have one. So a connection is made on a goroutine of its own, and is there for the next
// call when the first has given up.

const (
	// openings is how many connections are made at a time: the first may hang.
	openings = 3
	// openingLimit ends the making of a connection whose timeouts do not.
	openingLimit = 30 * time.Second
)

// errTaken stops go-redis where it would send the first command.
var errTaken = errors.New("the connection is used by relock itself")

// An opening makes a connection for a stream. A go-redis client of one connection dials and
// greets the server; OnConnect takes the connection from it then.
type opening struct {
	own   *own
	began time.Time
	end   context.CancelFunc
	vain  atomic.Bool // a call has waited for it, and gave up

	mu    sync.Mutex // protects following fields
	conn  *holdable  // the latest
	cut   bool       // it is to end
	taken bool       // its connection is a stream's
}

// A holdable is a connection that go-redis no longer closes once it is taken.
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

// connect begins to make a connection, unless there is one, or the making of another began
// less than that long ago.
func (o *own) connect(again time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	switch {
	case o.closed || o.stream.Load() != nil || now.Before(o.rests):
		return
	case len(o.opening) >= openings, len(o.opening) > 0 && now.Sub(o.opening[len(o.opening)-1].began) < again:
		return
	}
	ctx, end := context.WithTimeout(context.Background(), openingLimit)
	p := &opening{own: o, began: now, end: end}
	o.opening = append(o.opening, p)
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	o.makers.Go(func() { p.run(ctx) })
}

// run makes the connection.
func (p *opening) run(ctx context.Context) {
	defer p.end()
	defer p.own.opened(p) // also if a callback of the client's user ends the goroutine
	stop := context.AfterFunc(ctx, p.cutOff)
	defer stop()
	opt := *p.own.opt
	opt.PoolSize = 2 // a pool of one would dial again by itself after a failure
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
	// What is asked is never sent. It would change nothing.
	_ = rdb.Process(ctx, once{redis.NewCmd(ctx, evalsha, noScript, 0)})
}

// dialled does not fail where the opening has ended: the client would dial again.
func (p *opening) dialled(c net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn = &holdable{Conn: c, p: p}
	if p.cut {
		_ = c.Close()
	}
	return p.conn
}

// take keeps the connection, unless the opening is to end.
func (p *opening) take() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = !p.cut
}

// cutOff ends what is under way.
func (p *opening) cutOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken || p.cut {
		return
	}
	p.cut = true
	if p.conn != nil {
		_ = p.conn.Conn.Close()
	}
}

// opened ends an opening. A stream goes on with its connection, unless there is one by now.
// After a failure none is made for a while, because each call would wait for it. If nothing can
// interrupt it, as through an SSH tunnel, none is made at all: a call could not be ended.
func (o *own) opened(p *opening) {
	p.mu.Lock()
	taken, failed := p.taken, !p.taken && !p.cut
	p.mu.Unlock()
	deaf := taken && p.conn.SetDeadline(time.Time{}) != nil // go-redis has set some
	o.mu.Lock()
	o.closed = o.closed || deaf
	use := taken && !o.closed && o.stream.Load() == nil
	if use {
		o.stream.Store(newStream(o, p.conn.Conn))
	}
	if failed {
		o.rests = time.Now().Add(rest)
	}
	o.opening = slices.DeleteFunc(slices.Clone(o.opening), func(q *opening) bool { return q == p })
	close(o.changed)
	o.changed = make(chan struct{})
	others := o.opening
	o.mu.Unlock()
	switch {
	case use:
		for _, q := range others {
			q.end()
		}
	case taken:
		_ = p.conn.Conn.Close()
	}
}

// connecting says that a connection is being made.
func (o *own) connecting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.opening) > 0
}

// errConnecting is why a call was not sent that has waited for a connection for as long as it
// waits for an answer. The connection is still being made: the next try may begin at once.
var errConnecting = errors.New("a connection is being made")

// await waits for a connection that is being made. It returns nil when there is one, and when the
// call should use the client's connections instead.
func (o *own) await(ctx context.Context, timeout time.Duration) error {
	by := time.Now().Add(timeout)
	for {
		o.mu.Lock()
		changed, first := o.changed, (*opening)(nil)
		if len(o.opening) > 0 {
			first = o.opening[0]
		}
		o.mu.Unlock()
		if first == nil || o.stream.Load() != nil {
			return nil
		}
		until := first.began.Add(o.patience(first, timeout))
		late := timeout > 0 && !until.Before(by)
		if late {
			until = by
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return leaving(ctx, false)
		case <-timer.C:
			first.vain.Store(true)
			if late {
				return fmt.Errorf("%w: %w", errConnecting, ErrNoReply)
			}
			return nil
		}
	}
}

// patience is for how long calls wait for a connection before they use those of the client,
// which may work where this one hangs.
func (o *own) patience(p *opening, timeout time.Duration) time.Duration {
	rtt := time.Duration(o.rtt.Load())
	switch {
	case p.vain.Load() && o.rdb.PoolStats().IdleConns > 0:
		return 0
	case rtt > 0:
		return greeting*rtt + stall
	case timeout > 0:
		return greeting * timeout / 2
	}
	return openingLimit
}

// greeting is how many round trips a connection costs at most, unless its server hangs.
const greeting = 8
