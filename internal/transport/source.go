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
// their writes, and each can end before its reply. With go-redis alone a command on the wire cannot be interrupted.
//
// Connections are made with the client's options. The client's hooks see the commands if they were added before the
// Transport was made.
type streamSource struct {
	rdb    *redis.Client
	hooked *redis.Conn // runs the hooks of rdb, and then redirect
	opt    *redis.Options
	limit  time.Duration // the client's ReadTimeout; 0: none
	// slow is set when a call leaves a stream that is silent, or a read or write times out. Calls use the client's pool
	// until one of them has succeeded. Otherwise every call to a slow server would dial it. If the pool is full, they use
	// a stream, which is dialled once in dialPause.
	slow     atomic.Bool
	stream   atomic.Pointer[stream]
	hooks    hooks
	rtt      *atomic.Int64  // the field of the Transport
	sentinel bool           // the client finds its server by Sentinel
	running  sync.WaitGroup // goroutines of openings, and of streams that are being closed

	opening atomic.Pointer[opening] // the dial in progress; set under mu

	mu           sync.Mutex // guards the following fields
	noDialBefore time.Time
	closed       bool // no dial begins any more
	awaited      bool // running is waited for, so nothing is added to it
}

// newStreamSource returns nil for a client that cannot be rebuilt from its options: one with a limiter or streaming
// credentials. rtt is the round trip time, if it is known.
func newStreamSource(c *redis.Client, rtt *atomic.Int64) *streamSource {
	opt := c.Options()
	if opt.Limiter != nil || opt.StreamingCredentialsProvider != nil {
		return nil
	}
	o := &streamSource{rdb: c, hooked: c.Conn(), opt: dialOptions(*opt), limit: max(opt.ReadTimeout, 0), rtt: rtt}
	o.sentinel = opt.Addr == bySentinel
	o.hooked.AddHook(redirect{c.WithTimeout(opt.ReadTimeout), &o.hooks})
	return o
}

// bySentinel is the address in the options of a client by Sentinel.
const bySentinel = "FailoverClient"

// dialOptions returns the options of the client that dials the one connection of an opening.
func dialOptions(opt redis.Options) *redis.Options {
	opt.PoolSize = 2 // after so many failed dials go-redis would go on in the background
	opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, 0, 0
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

// dialPause is how long no dial begins after one has failed, or has made a stream that had to end.
const dialPause = time.Second

// join returns a sharing of the stream for a call, or an empty one if the call must use the client's pool. If there is
// no stream, it starts a dial and waits for that. An error says that the dial took too long. It goes on for the next
// call.
func (o *streamSource) join(ctx context.Context, timeout time.Duration) (w sharing, waited time.Duration, err error) {
	if o == nil || o.slow.Load() && !o.poolFull() {
		return w, 0, nil
	}
	if w = o.tryJoin(timeout); w.s != nil {
		return w, 0, nil
	}
	// A client without connections is closed, and must say so itself, or is used for the first time.
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
// The old primary may go on answering for a while, if it was cut off. So the stream ends when a connection of the pool
// has gone since the stream's dial began, whatever the reason. One in use at that moment goes when it is given back.

// switched ends the stream if the client may have another primary by now: also if the pool has no idle connection that
// would have gone. A stream that was young is not replaced at once, because connections may go all the time.
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

// poolBusy reports whether the client's pool has no idle connection while there is a stream, or can have none. The
// client's owner may use all connections for a long time, and dialling a new one may take longer than a lease lasts.
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

// poolFull reports whether all connections of the client's pool are in use, and it makes no more.
func (o *streamSource) poolFull() bool {
	stats, opt := o.rdb.PoolStats(), o.rdb.Options()
	most := opt.PoolSize
	if opt.MaxActiveConns > 0 {
		most = min(most, opt.MaxActiveConns)
	}
	return stats.IdleConns == 0 && int(stats.TotalConns) >= most
}

// tryJoin returns a sharing of the present stream, or an empty one if there is none that may be used.
func (o *streamSource) tryJoin(timeout time.Duration) (none sharing) {
	s, now := o.stream.Load(), time.Now()
	if s == nil || o.sentinel && o.switched(s) {
		return none
	}
	age, alone, owes := now.Sub(s.made), s.load.Load() == 0, s.owed.Load() > 0
	idle := age - time.Duration(s.used.Load())
	old := func(most, age time.Duration) bool { return most > 0 && age >= most }
	if old(o.opt.ConnMaxLifetime, age) || alone && !owes && (old(o.opt.ConnMaxIdleTime, idle) || idle >= checkAfter && s.lost()) {
		s.giveUp()
		return none
	}
	switch {
	case s.silent(now):
		if alone { // those who waited have left
			s.giveUp()
		}
		return none
	case alone && o.rdb.PoolStats().TotalConns == 0:
		return none
	case !owes:
		s.used.Store(int64(age))
	}
	if !s.begin() {
		return none
	}
	if o.limit > 0 {
		timeout = min(timeout, o.limit)
	}
	return sharing{s: s, until: now.Add(timeout), timeout: timeout}
}

// close lets no new stream be made, ends a dial, and waits for its goroutine and for those of streams that have ended.
// It does not wait for a stream that a call still uses, because that may be in a hook: the last call closes it.
func (o *streamSource) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.closed = true
	if p := o.opening.Load(); p != nil {
		p.end()
	}
	o.mu.Unlock()
	if s := o.stream.Load(); s != nil {
		s.giveUp()
	}
	o.mu.Lock()
	o.awaited = true
	o.mu.Unlock()
	o.running.Wait()
}

// spawn runs fn on a goroutine that close waits for, unless it waits already.
func (o *streamSource) spawn(fn func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.awaited {
		go fn()
		return
	}
	o.running.Go(fn)
}
