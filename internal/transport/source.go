package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A streamSource makes the stream to the client's server, and a new one when the stream ends. On a stream calls share
// writes, and a call can end before its reply. go-redis alone cannot interrupt a command on the wire.
//
// Connections are made with the client's options. The client's hooks see the commands if they were added before the
// Transport was made.
type streamSource struct {
	t      *Transport
	rdb    *redis.Client
	hooked *redis.Conn    // runs the hooks of rdb, and then redirect
	opt    *redis.Options // of the client that dials. A ReadTimeout of 0 or less: none
	// slow is set when a call leaves a stream that is silent, or a read or write times out. Calls use the client's pool
	// until one of them succeeds. Otherwise every call to a slow server would dial it. If the pool is full, calls use a
	// stream nonetheless, which is dialled no more often than once in dialPause.
	slow     atomic.Bool
	stream   atomic.Pointer[stream]
	hooks    hooks
	sentinel bool // the client finds its server by Sentinel

	opening atomic.Pointer[opening] // the dial in progress; set under mu

	mu           sync.Mutex // guards the following fields
	noDialBefore time.Time
	closed       bool // no dial begins any more
}

// newStreamSource returns nil for a client that its options cannot rebuild: with a limiter or streaming credentials.
func newStreamSource(t *Transport, c *redis.Client) *streamSource {
	opt := c.Options()
	if opt.Limiter != nil || opt.StreamingCredentialsProvider != nil {
		return nil
	}
	o := &streamSource{t: t, rdb: c, hooked: c.Conn(), opt: dialOptions(*opt)}
	o.sentinel = opt.Addr == bySentinel
	o.hooked.AddHook(redirect{c.WithTimeout(opt.ReadTimeout), &o.hooks})
	return o
}

// bySentinel is the address that go-redis puts into the options of a Sentinel client.
const bySentinel = "FailoverClient"

// dialOptions returns the options of the client that dials the one connection of an opening.
func dialOptions(opt redis.Options) *redis.Options {
	opt.PoolSize = 2 // after one failed dial a pool of 1 would dial on in the background
	opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, 0, 0
	opt.PipelinePoolSize = -1
	opt.ClientSideCache, opt.ClientSideCacheConfig, opt.AutoPipelineOptions = nil, nil, nil
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.MaxRetries, opt.DialerRetries = -1, 1 // after a failed dial, calls use the client's pool
	opt.Protocol = 2                          // RESP2 has no push messages
	opt.ReadTimeout, opt.WriteTimeout = optionFor(opt.ReadTimeout), optionFor(opt.WriteTimeout)
	return &opt
}

// optionFor returns the option that go-redis turns into this timeout. It takes 0 for its default, turns -1 into 0 (no
// timeout), and -2 into -1 (it sets no deadlines).
func optionFor(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return timeout - 1
	}
	return timeout
}

// checkAfter is how long a stream may be idle before the next call checks its connection by a system call.
const checkAfter = 10 * time.Millisecond

// stall is how long a stream may owe replies and receive nothing before new calls use the client's pool, because the
// connection may be dead. If two round trips take longer, they are the limit.
const stall = 100 * time.Millisecond

// dialPause is the least time from a dial that failed, or whose stream soon had to end, to the next dial.
const dialPause = time.Second

// join returns a sharedCall on the stream for a call, or an empty one if the call must use the client's pool. If there
// is no stream, join dials one and waits. If ctx or timeout ends first, join returns an error, and the dial goes on.
func (o *streamSource) join(ctx context.Context, timeout time.Duration) (w sharedCall, waited time.Duration, err error) {
	if o == nil || o.slow.Load() && !o.poolFull() {
		return w, 0, nil
	}
	if w = o.tryJoin(timeout); w.stream != nil {
		return w, 0, nil
	}
	// A client without connections is closed, and must say so itself, or has not been used yet.
	if o.stream.Load() != nil || o.rdb.PoolStats().TotalConns == 0 && o.opening.Load() == nil {
		return w, 0, nil
	}
	began := time.Now()
	o.connect()
	err = o.await(ctx, timeout)
	if waited = time.Since(began); err != nil {
		return w, waited, err
	}
	return o.tryJoin(max(timeout-waited, timeout*2/3)), waited, nil
}

// A client of Sentinel closes the connections of its pool when the Sentinels name another primary, and does not tell.
// The old primary may go on answering for a while, if it was cut off. So the stream ends once the pool has lost a
// connection since the stream's dial began, for whatever reason. A connection in use is lost when it is given back.

// switched ends the stream and returns true if the Sentinels may have named another primary. Without an idle connection
// in the pool that could go unnoticed. A young stream is not replaced at once: a pool may lose connections often.
func (o *streamSource) switched(s *stream) bool {
	pool := o.rdb.PoolStats()
	if pool.StaleConns == s.poolLost && pool.IdleConns > 0 {
		return false
	}
	s.giveUp()
	o.mu.Lock()
	defer o.mu.Unlock()
	if again := s.made.Add(dialPause); again.After(o.noDialBefore) {
		o.noDialBefore = again
	}
	return true
}

// poolBusy reports whether a call must not wait for the client's pool: no connection is idle while there is a stream,
// or the pool is full. The application may use all of them for long, and a dial may take longer than a lease lasts.
func (o *streamSource) poolBusy() bool {
	if o == nil {
		return false
	}
	if o.slow.Load() || o.stream.Load() == nil {
		return o.poolFull()
	}
	stats := o.rdb.PoolStats()
	return stats.IdleConns == 0 && (stats.PipelineStats == nil || stats.PipelineStats.IdleConns == 0)
}

// poolFull reports whether all connections of the client's pool are in use, and the client makes no more.
func (o *streamSource) poolFull() bool {
	stats, opt := o.rdb.PoolStats(), o.rdb.Options()
	most := opt.PoolSize
	if opt.MaxActiveConns > 0 {
		most = min(most, opt.MaxActiveConns)
	}
	return stats.IdleConns == 0 && int(stats.TotalConns) >= most
}

// tryJoin returns a sharedCall on the current stream, or an empty one if there is none or it must not be used.
func (o *streamSource) tryJoin(timeout time.Duration) (none sharedCall) {
	s, now := o.stream.Load(), time.Now()
	if s == nil || o.sentinel && o.switched(s) {
		return none
	}
	age, alone, owes := now.Sub(s.made), s.load.Load() == 0, s.owed.Load() > 0
	idle := age - time.Duration(s.owesSince.Load()) // since the latest call, if nothing is owed
	old := func(most, age time.Duration) bool { return most > 0 && age >= most }
	if old(o.opt.ConnMaxLifetime, age) || alone && !owes && (old(o.opt.ConnMaxIdleTime, idle) || idle >= checkAfter && s.lost()) {
		s.giveUp()
		return none
	}
	switch {
	case s.silent(now):
		if alone { // the callers that waited have left
			s.giveUp()
		}
		return none
	case alone && o.rdb.PoolStats().TotalConns == 0: // the client may be closed: see join
		return none
	case !owes:
		s.owesSince.Store(int64(age))
	}
	// Count the call before looking at retired: otherwise the last call could end in between, and close the stream.
	if s.load.Add(1); s.retired.Load() {
		s.end()
		return none
	}
	if o.opt.ReadTimeout > 0 {
		timeout = min(timeout, o.opt.ReadTimeout)
	}
	return sharedCall{stream: s, deadline: now.Add(timeout), timeout: timeout}
}

// close prevents new streams, cancels a dial, and closes the stream. While calls use that, the last one closes it.
func (o *streamSource) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.closed = true
	if p := o.opening.Load(); p != nil {
		p.cancelDial()
	}
	o.mu.Unlock()
	if s := o.stream.Load(); s != nil {
		s.giveUp()
	}
}
