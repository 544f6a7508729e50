package transport

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// An opening is the first call of a stream. Its command is sent by a go-redis client
// of one connection, which knows how to greet a server; from then on the connection is
// the stream's. If the call is to end before that, the connection is closed.
type opening struct {
	own    *own
	rdb    *redis.Client
	unsent bool // of its caller, afterwards: it has made no connection, and sent no command

	greeted atomic.Bool // the server has let a connection in, on which a command may leave

	mu   sync.Mutex // protects following fields
	conn net.Conn   // the latest
	cut  bool       // the call is to end
	past bool       // it has ended
	gone error      // why its command has had no reply; stays where it may have run
}

// open returns an opening, unless there is one.
func (o *own) open() way {
	if o.rdb.PoolStats().TotalConns == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.opening || o.stream.Load() != nil || time.Now().Before(o.rests) {
		return nil
	}
	o.opening = true
	return newOpening(o)
}

func newOpening(o *own) *opening {
	p := &opening{own: o}
	opt := *o.opt
	dial := opt.Dialer
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		p.dialled(c)
		return c, nil
	}
	greet := opt.OnConnect
	opt.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		if greet != nil {
			if err := greet(ctx, c); err != nil {
				return err
			}
		}
		p.greeted.Store(true)
		return nil
	}
	p.rdb = redis.NewClient(&opt)
	return p
}

// process sends nothing for a hook that sends again what may have run.
func (p *opening) process(ctx context.Context, cmd once) error {
	if err := p.lost(); err != nil {
		return err
	}
	err := p.rdb.Process(ctx, cmd)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut && !p.greeted.Load() && mayHaveRun(err) {
		err = fmt.Errorf("%w: %w", errNotSent, err)
	}
	p.gone = err
	return err
}

// lost is the error of a command that may have run.
func (p *opening) lost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mayHaveRun(p.gone) {
		return p.gone
	}
	return nil
}

// dialled does not fail where the call has ended: the client would dial again.
func (p *opening) dialled(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn = c
	if p.cut {
		_ = c.Close()
	}
}

// cutOff ends what is under way.
func (p *opening) cutOff(cancel context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.past {
		return
	}
	p.cut = true
	cancel()
	if p.conn != nil {
		_ = p.conn.Close()
	}
}

// first runs a call, and makes a stream of its connection. Where none can be made the call
// goes by the client's connections, which may well work.
func (t *Transport) first(ctx context.Context, timeout time.Duration, p *opening, c *Call) Result {
	begin := time.Now()
	r := t.opens(ctx, timeout, p, c)
	if r.Err == nil || !p.unsent {
		return r
	}
	if timeout > 0 {
		timeout = max(timeout-time.Since(begin), 1)
	}
	return t.pooled(ctx, timeout, c)
}

// opens runs a call on a connection that is made for it.
func (t *Transport) opens(ctx context.Context, timeout time.Duration, p *opening, c *Call) Result {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	cutOff := func() { p.cutOff(cancel) }
	stop := context.AfterFunc(ctx, cutOff)
	if timeout > 0 {
		alarm := time.AfterFunc(timeout, cutOff)
		defer alarm.Stop()
	}
	whole := false // unless a hook panics
	defer func() { t.own.opened(p, whole) }()
	r := t.run(run, p, c)
	stop()
	p.mu.Lock()
	cut := p.cut
	p.past = true
	p.mu.Unlock()
	whole = !cut
	if err := p.lost(); err != nil && r.Err != nil {
		r.Err = named(c, ours(err)) // whatever a hook makes of it
	}
	if r.Err == nil || !cut {
		return r
	}
	t.own.slow.Store(true)
	if Classify(r.Err) == Unknown { // the connection was closed
		r.Err = named(c, leaving(ctx, true))
	}
	return r
}

// opened ends an opening. Where its connection is as the client left it, a stream goes on. Where
// none could be made none is for a while: each call would wait for it in vain. Where nothing can
// interrupt it, as through an SSH tunnel, none is ever: a call there could not be ended.
func (o *own) opened(p *opening, whole bool) {
	good := p.rdb.PoolStats().IdleConns == 1
	deaf := whole && good && p.conn.SetDeadline(time.Time{}) != nil // go-redis has set some
	p.mu.Lock()
	failed := p.cut || !good && p.gone != nil
	p.unsent = failed && !p.cut && Classify(p.gone) == NotExecuted
	p.mu.Unlock()
	o.mu.Lock()
	o.opening = false
	o.closed = o.closed || deaf
	whole = whole && good && !o.closed
	if whole {
		o.stream.Store(newStream(o, p.rdb, p.conn))
	}
	if failed {
		o.rests = time.Now().Add(rest)
	}
	o.mu.Unlock()
	if !whole {
		_ = p.rdb.Close()
	}
}
