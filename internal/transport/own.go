package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// own is the way of those who are alone: a caller that finds a place to lead runs
// its command on its own goroutine, on a connection of the Transport's own. What
// is read there can be interrupted, which go-redis does for nobody, so that the
// call ends with its context. On the client's connections that needs a second
// goroutine for each command, and two threads that wake up for it.
//
// Its connections are made with the client's options. The client's hooks see
// its commands, if they were there before the Transport.
type own struct {
	rdb    *redis.Client
	hooked *redis.Conn // has the hooks of rdb, and hands commands to their line
	opt    *redis.Options
	// slow says that a call had to be cut off. Until a command of others is
	// answered the client's connections are used: a cut costs the connection,
	// and a server that is slow would be dialled for every call.
	slow atomic.Bool

	mu     sync.Mutex // protects following fields
	idle   []*line    // the latest last
	closed bool
}

// newOwn returns nil for a client that is more than its options: one of several
// servers, one by Sentinel, whose connections end at a failover, and one that
// somebody has wrapped, or gave a limiter or credentials that change.
func newOwn(rdb redis.UniversalClient) *own {
	c, ok := rdb.(*redis.Client)
	if !ok {
		return nil
	}
	opt := c.Options()
	if opt.Addr == bySentinel || opt.Limiter != nil || opt.StreamingCredentialsProvider != nil {
		return nil
	}
	o := &own{rdb: c, hooked: c.Conn(), opt: single(*opt)}
	o.hooked.AddHook(redirect{c.WithTimeout(opt.ReadTimeout)})
	return o
}

// bySentinel is what go-redis calls the address of such a client.
const bySentinel = "FailoverClient"

// single returns options for a client of one connection.
func single(opt redis.Options) *redis.Options {
	opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 1, 0, 0, 0
	opt.PipelinePoolSize = -1
	opt.ClientSideCache, opt.ClientSideCacheConfig, opt.AutoPipelineOptions = nil, nil, nil
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.MaxRetries = -1
	opt.ReadTimeout, opt.WriteTimeout = again(opt.ReadTimeout), again(opt.WriteTimeout)
	return &opt
}

// again returns what go-redis makes a timeout of that it has made before.
func again(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return timeout - 1
	}
	return timeout
}

// redirect is a hook behind all others. What they send by themselves goes to a
// client without hooks: that of a hook is not for its own connection.
type redirect struct{ others *redis.Client }

func (redirect) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r redirect) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if l, ok := cmd.(lined); ok {
			return l.line.rdb.Process(ctx, l.once)
		}
		return r.others.Process(ctx, cmd)
	}
}

func (redirect) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// take returns a line that nobody uses, or nil where the client's connections are
// to be used. A client that is closed has none, and says so itself.
func (o *own) take() *line {
	if o == nil || o.slow.Load() || o.rdb.PoolStats().TotalConns == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	if n := len(o.idle); n > 0 {
		l := o.idle[n-1]
		o.idle = o.idle[:n-1]
		return l
	}
	return newLine(*o.opt)
}

// put gives a line back. If a call had to be cut off others may be as silent.
func (o *own) put(l *line, cut bool) {
	o.mu.Lock()
	drop := []*line{l}
	switch {
	case cut:
		drop = append(drop, o.idle...)
		o.idle = nil
	case !o.closed:
		o.idle = append(o.idle, l)
		drop = nil
	}
	o.mu.Unlock()
	for _, l := range drop {
		l.close()
	}
}

// answered notes that the server answers.
func (o *own) answered() {
	if o != nil && o.slow.Load() {
		o.slow.Store(false)
	}
}

// close ends the lines, and lets no new ones be made.
func (o *own) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	drop := o.idle
	o.idle, o.closed = nil, true
	o.mu.Unlock()
	for _, l := range drop {
		l.close()
	}
}

// alone runs a call on its caller's goroutine until ctx ends or timeout has passed.
func (t *Transport) alone(ctx context.Context, timeout time.Duration, l *line, c Call) Result {
	cut := true // unless a hook panics, of which nothing is known
	defer func() { t.own.put(l, cut) }()
	run := l.begin(ctx, timeout)
	r := t.run(run, l, c)
	cut = l.end(run)
	if r.Err == nil || !cut {
		cut = false
		return r
	}
	t.own.slow.Store(true)
	if ctx.Err() != nil && Classify(r.Err) == Unknown {
		r.Err = named(c, ended(ctx))
	}
	return r
}
