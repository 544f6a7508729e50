package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/relock-go/relock/internal/ending"
)

// own is the Transport's own way to a server: a stream, on which a caller's command
// costs no hand-off to another goroutine, goes out with those of others, and can be left
// behind. go-redis gives none of that: what is on the wire cannot be interrupted.
//
// Its connection is made with the client's options. The client's hooks see its
// commands, if they were there before the Transport.
type own struct {
	rdb    *redis.Client
	hooked *redis.Conn // has the hooks of rdb, and hands commands to their way
	opt    *redis.Options
	limit  time.Duration // the client's own for one reply, or zero
	// slow says that a call had to leave a silent connection behind. Until a
	// command of others is answered the client's connections are used: a server
	// that is slow would be dialled for every call.
	slow   atomic.Bool
	stream atomic.Pointer[stream]
	hooks  hooks
	rtt    *atomic.Int64 // the Transport's

	makers sync.WaitGroup // goroutines that make connections

	mu      sync.Mutex    // protects following fields
	opening []*opening    // connections that are being made, the latest last
	changed chan struct{} // closed and replaced when one of them has come to its end
	rests   time.Time     // until then none is made
	closed  bool          // none is made any more
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
	o := &own{rdb: c, hooked: c.Conn(), opt: single(*opt), limit: max(opt.ReadTimeout, 0)}
	o.hooked.AddHook(redirect{c.WithTimeout(opt.ReadTimeout), &o.hooks})
	return o
}

// bySentinel is what go-redis calls the address of such a client.
const bySentinel = "FailoverClient"

// single returns options for a client of one connection, and no more than one.
func single(opt redis.Options) *redis.Options {
	opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 1, 0, 0, 0
	opt.PipelinePoolSize = -1
	opt.ClientSideCache, opt.ClientSideCacheConfig, opt.AutoPipelineOptions = nil, nil, nil
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.MaxRetries, opt.DialerRetries = -1, 1 // who cannot dial has the client's connections
	opt.Protocol = 2                          // which has no messages that nobody has asked for
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

// checkAfter is how long a connection is taken for good after a call. To ask is
// a system call.
const checkAfter = 10 * time.Millisecond

// stall is for how long a stream may owe replies, and say nothing, until calls take
// other ways: it may be the connection that is silent. Where an answer takes long anyhow it
// is twice as long as that.
const stall = 100 * time.Millisecond

// farAway is from when on it is of interest how far away the server is.
const farAway = stall / 10

// rest is for how long no connection is made after one could not be.
const rest = time.Second

// take returns the way of a call, or nil where the client's connections are to be used.
// A connection that is not there is made first, and waited for. The error says that this
// took too long: the next call finds it, or another one.
func (o *own) take(ctx context.Context, timeout time.Duration) (f *flight, waited time.Duration, err error) {
	if o == nil || o.slow.Load() {
		return nil, 0, nil
	}
	if f := o.fly(timeout); f != nil {
		return f, 0, nil
	}
	// A client without connections is used for the first time, or is closed, and says so itself.
	if o.stream.Load() != nil || o.rdb.PoolStats().TotalConns == 0 && !o.connecting() {
		return nil, 0, nil
	}
	began := time.Now()
	o.connect(timeout)
	err = o.await(ctx, timeout)
	if waited = time.Since(began); err != nil {
		return nil, waited, err
	}
	if timeout > 0 {
		timeout = max(timeout-waited, timeout*2/3)
	}
	return o.fly(timeout), waited, nil
}

// lacks says that there is no stream, though there may be one.
func (o *own) lacks() bool { return o != nil && o.stream.Load() == nil && !o.slow.Load() }

// fly returns the way over the connection that there is, or nil.
func (o *own) fly(timeout time.Duration) *flight {
	s, now := o.stream.Load(), time.Now()
	if s == nil {
		return nil
	}
	age, alone, reads := now.Sub(s.made), s.load.Load() == 0, s.reads.Load()
	idle := age - time.Duration(s.used.Load())
	if most := o.opt.ConnMaxLifetime; most > 0 && age >= most {
		s.giveUp()
		return nil
	}
	switch {
	case !alone && reads == s.heard.Load():
		if idle > max(stall, 2*time.Duration(o.rtt.Load())) {
			return nil
		}
	case alone && o.rdb.PoolStats().TotalConns == 0:
		return nil
	case alone && idle >= checkAfter && !s.good(idle):
		return nil
	default:
		s.heard.Store(reads)
		s.used.Store(int64(age))
	}
	if s.begin() {
		return s.flight(now, timeout)
	}
	return nil
}

// flight returns one for a call.
func (s *stream) flight(now time.Time, timeout time.Duration) *flight {
	f, ok := s.free.Get().(*flight)
	if !ok {
		f = &flight{s: s, wake: make(chan struct{}, 1)}
	}
	f.until, f.within = time.Time{}, 0
	if limit := s.own.limit; limit > 0 && (timeout <= 0 || limit < timeout) {
		timeout = limit
	}
	if timeout > 0 {
		f.until, f.within = now.Add(timeout), timeout
	}
	return f
}

// extend is for a call whose script the server has yet to learn: it gets the time for another
// round trip.
func (f *flight) extend() {
	if f.within > 0 {
		f.until = time.Now().Add(f.within)
	}
}

// good says that a stream that has been idle can be used, and ends it otherwise.
func (s *stream) good(idle time.Duration) bool {
	if !s.begin() {
		return false
	}
	defer s.end()
	most := s.own.opt.ConnMaxIdleTime
	s.mu.Lock()
	defer s.mu.Unlock()
	old := most > 0 && idle >= most
	if s.reader == nil && (old || len(s.flying.all()) == 0 && !quiet(s.conn)) {
		s.retire()
	}
	return !s.over.Load()
}

// answered notes that the server answers.
func (o *own) answered() {
	if o != nil && o.slow.Load() {
		o.slow.Store(false)
	}
}

// close ends the stream when its calls have ended, and lets no new one be made.
func (o *own) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.closed = true
	for _, p := range o.opening {
		p.end()
	}
	o.mu.Unlock()
	if s := o.stream.Load(); s != nil {
		s.giveUp()
	}
	o.makers.Wait()
}

// alone runs a call on its caller's goroutine until ctx ends or timeout has passed. One that
// was not sent because others have lost the connection goes by the client's.
func (t *Transport) alone(ctx context.Context, timeout time.Duration, f *flight, c *Call) Result {
	r := t.shared(ctx, f, c)
	if !errors.Is(r.Err, errLost) || Classify(r.Err) != NotExecuted || ctx.Err() != nil {
		return r
	}
	if !f.until.IsZero() {
		timeout = max(time.Until(f.until), 1)
	}
	return t.pooled(ctx, timeout, c)
}

// shared runs a call on a stream.
func (t *Transport) shared(ctx context.Context, f *flight, c *Call) Result {
	defer f.s.end()
	var began time.Time
	if rtt := t.rtt.Load(); rtt == 0 || rtt > int64(farAway) { // to look at the clock takes longer than some answers
		began = time.Now()
	}
	r := t.run(ctx, f, c)
	if r.Err == nil && !began.IsZero() {
		t.measured(time.Since(began))
	}
	switch {
	case r.Err == nil && f.gone != nil: // a hook has a reply of its own, and the flight may be under way
	case r.Err == nil:
		f.cmd = bare{}
		f.s.free.Put(f)
	case f.gone != nil: // whatever a hook makes of it
		r.Err = named(c, f.why(ctx))
	case ctx.Err() != nil && Classify(r.Err) == Unknown: // a hook has given up
		r.Err = named(c, ending.Of(ctx))
	}
	return r
}

// why is what the caller, whose context is ctx, is told of a call that has had no reply. A
// hook may have sent it with another context, whose end is not the caller's.
func (f *flight) why(ctx context.Context) error {
	switch {
	case ctx.Err() == nil || errors.Is(f.gone, ErrNoReply):
		return ours(f.gone)
	case mayHaveRun(f.gone):
		return ending.Of(ctx)
	}
	return notSent(ctx)
}
