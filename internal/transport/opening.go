package transport

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// An opening is the first call of a stream. Its command is sent by a go-redis client
// of one connection, which knows how to greet a server; from then on the connection is
// the stream's. If the call is to end before that, the connection is closed.
type opening struct {
	own *own
	rdb *redis.Client

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
	if o.closed || o.opening || o.stream.Load() != nil {
		return nil
	}
	o.opening = true
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

// first runs a call, and makes a stream of its connection.
func (t *Transport) first(ctx context.Context, timeout time.Duration, p *opening, c *Call) Result {
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

// opened ends an opening. Where its connection is as the client left it, a stream goes on.
func (o *own) opened(p *opening, whole bool) {
	o.mu.Lock()
	o.opening = false
	whole = whole && !o.closed && p.rdb.PoolStats().IdleConns == 1
	if whole {
		o.stream.Store(newStream(o, p.rdb, p.conn))
	}
	o.mu.Unlock()
	if !whole {
		_ = p.rdb.Close()
	}
}
