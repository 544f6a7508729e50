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

// A streamSource makes the stream to the client's server, and a new one when the stream ends. On a stream a call needs
// no other goroutine, shares its writes with other calls, and can end before its reply. With go-redis alone a command
// on the wire cannot be interrupted.
//
// Connections are made with the client's options. The client's hooks see the commands if they were added before the
// Transport was made.
type streamSource struct {
	rdb    *redis.Client
	hooked *redis.Conn // runs the hooks of rdb, and then redirect
	opt    *redis.Options
	limit  time.Duration // the client's ReadTimeout; 0: none
	// slow is set when a call leaves a stream that is silent, or a read or write times out. Calls use the client's pool
	// until one of them is answered. Otherwise every call to a slow server would dial it.
	slow   atomic.Bool
	stream atomic.Pointer[stream]
	hooks  hooks
	rtt    *atomic.Int64 // the field of the Transport

	dialers sync.WaitGroup // goroutines of openings

	mu           sync.Mutex    // guards the following fields
	opening      []*opening    // dials in progress, the newest last
	changed      chan struct{} // closed and replaced when an opening ends
	noDialBefore time.Time
	closed       bool // no dial begins any more
}

// newStreamSource returns nil for a client that cannot be rebuilt from its options: one of several servers, one by
// Sentinel (whose connections end at a failover), a wrapped one, and one with a limiter or streaming credentials.
func newStreamSource(rdb redis.UniversalClient) *streamSource {
	c, ok := rdb.(*redis.Client)
	if !ok {
		return nil
	}
	opt := c.Options()
	if opt.Addr == bySentinel || opt.Limiter != nil || opt.StreamingCredentialsProvider != nil {
		return nil
	}
	o := &streamSource{rdb: c, hooked: c.Conn(), opt: single(*opt), limit: max(opt.ReadTimeout, 0)}
	o.hooked.AddHook(redirect{c.WithTimeout(opt.ReadTimeout), &o.hooks})
	return o
}

// bySentinel is the address in the options of a client by Sentinel.
const bySentinel = "FailoverClient"

// single returns options for a client with exactly one connection.
func single(opt redis.Options) *redis.Options {
	opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 1, 0, 0, 0
	opt.PipelinePoolSize = -1
	opt.ClientSideCache, opt.ClientSideCacheConfig, opt.AutoPipelineOptions = nil, nil, nil
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.MaxRetries, opt.DialerRetries = -1, 1 // after a failed dial, calls use the client's pool
	opt.Protocol = 2                          // RESP2 has no push messages
	opt.ReadTimeout, opt.WriteTimeout = optionFor(opt.ReadTimeout), optionFor(opt.WriteTimeout)
	return &opt
}

// optionFor returns the option that go-redis will turn into this timeout. opt went through that conversion already: an
// option of 0 means the default and -1 means none, while a timeout of 0 means none.
func optionFor(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return timeout - 1
	}
	return timeout
}

// checkAfter is how long an idle connection is used without a check, which is a system call.
const checkAfter = 10 * time.Millisecond

// stall is how long a stream may owe replies without receiving anything before new calls use the client's pool: the
// connection may be dead. If twice the round trip is longer, that counts.
const stall = 100 * time.Millisecond

// farAway is the round trip time from which on every call is measured.
const farAway = stall / 10

// dialPause is how long no dial begins after one has failed.
const dialPause = time.Second

// join returns a flight on the stream for a call, or nil if the call must use the client's pool. If there is no stream,
// it starts a dial and waits for that. An error says that the dial took too long. It goes on for the next call.
func (o *streamSource) join(ctx context.Context, timeout time.Duration) (f *flight, waited time.Duration, err error) {
	if o == nil || o.slow.Load() {
		return nil, 0, nil
	}
	if f := o.tryJoin(timeout); f != nil {
		return f, 0, nil
	}
	// A client without connections is closed, and must say so itself, or is used for the first time.
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
	return o.tryJoin(timeout), waited, nil
}

// missing reports whether there is no stream, though the client can have one.
func (o *streamSource) missing() bool { return o != nil && o.stream.Load() == nil && !o.slow.Load() }

// tryJoin returns a flight on the present stream, or nil if there is none that may be used.
func (o *streamSource) tryJoin(timeout time.Duration) *flight {
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
	case !alone && reads == s.readsSeen.Load():
		if idle > max(stall, 2*time.Duration(o.rtt.Load())) {
			return nil
		}
	case alone && o.rdb.PoolStats().TotalConns == 0:
		return nil
	case alone && idle >= checkAfter && !s.checkIdle(idle):
		return nil
	default:
		s.readsSeen.Store(reads)
		s.used.Store(int64(age))
	}
	if s.begin() {
		return s.newFlight(now, timeout)
	}
	return nil
}

// newFlight returns a flight for one call, new or used before.
func (s *stream) newFlight(now time.Time, timeout time.Duration) *flight {
	f, ok := s.free.Get().(*flight)
	if !ok {
		f = &flight{s: s, wake: make(chan struct{}, 1)}
	}
	f.until, f.timeout = time.Time{}, 0
	if limit := s.source.limit; limit > 0 && (timeout <= 0 || limit < timeout) {
		timeout = limit
	}
	if timeout > 0 {
		f.until, f.timeout = now.Add(timeout), timeout
	}
	return f
}

// extend gives a call its full timeout again, because the server does not know its script: the script's text takes
// another round trip.
func (f *flight) extend() {
	if f.timeout > 0 {
		f.until = time.Now().Add(f.timeout)
	}
}

// checkIdle reports whether a stream that was idle can be used, and retires the stream if not.
func (s *stream) checkIdle(idle time.Duration) bool {
	if !s.begin() {
		return false
	}
	defer s.end()
	most := s.source.opt.ConnMaxIdleTime
	s.mu.Lock()
	defer s.mu.Unlock()
	old := most > 0 && idle >= most
	if s.reader == nil && (old || len(s.flying) == 0 && !quiet(s.conn)) {
		s.retire()
	}
	return !s.over.Load()
}

// close lets no new stream be made, ends dials, and waits for their goroutines. The stream ends after its last call.
func (o *streamSource) close() {
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
	o.dialers.Wait()
}

// doShared runs a call on a stream. If the stream broke before the call was sent, the client's pool is used.
func (t *Transport) doShared(ctx context.Context, timeout time.Duration, f *flight, c *Call) Result {
	r := t.runShared(ctx, f, c)
	if !errors.Is(r.Err, errLost) || Classify(r.Err) != NotExecuted || ctx.Err() != nil {
		return r
	}
	if !f.until.IsZero() {
		timeout = max(time.Until(f.until), 1)
	}
	return t.pooled(ctx, timeout, c)
}

// runShared runs a call on a stream, and keeps the flight for later calls if nothing else can still use it.
func (t *Transport) runShared(ctx context.Context, f *flight, c *Call) Result {
	defer f.s.end()
	var began time.Time
	if rtt := t.rtt.Load(); rtt == 0 || rtt > int64(farAway) { // for a near server, reading the clock would cost too much
		began = time.Now()
	}
	r := t.run(ctx, f, c)
	if r.Err == nil && !began.IsZero() {
		t.noteRTT(time.Since(began))
	}
	switch {
	case r.Err == nil && f.failure != nil: // a hook made a reply itself, and the command may still be in flight
	case r.Err == nil:
		f.cmd = rawCmd{}
		f.s.free.Put(f)
	case f.failure != nil: // the hooks may have changed the error
		r.Err = inScript(c, f.why(ctx))
	case ctx.Err() != nil && Classify(r.Err) == Unknown: // a hook gave up because ctx has ended
		r.Err = inScript(c, ending.Of(ctx))
	}
	return r
}

// why returns the error for the caller of a call without a reply. ctx is the caller's context. A hook may have sent the
// command with another context, whose end must not look like the end of ctx.
func (f *flight) why(ctx context.Context) error {
	switch {
	case ctx.Err() == nil || errors.Is(f.failure, ErrNoReply):
		return forCaller(f.failure)
	case mayHaveRun(f.failure):
		return ending.Of(ctx)
	}
	return notSent(ctx)
}
