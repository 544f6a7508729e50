package transport

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// A line is a client of one connection, which can be interrupted. It is used by
// one call at a time.
type line struct {
	rdb   *redis.Client
	limit time.Duration // the client's own for one command, or zero

	// What each command asks several times. Written with mu.
	quiet atomic.Bool // deadlines change nothing: there is none, and the alarm is set
	fresh atomic.Bool // the call before the one under way was just before

	mu    sync.Mutex // protects following fields
	conn  *lineConn  // the latest
	calls int        // the call under way, if it is busy, or the last
	busy  bool
	cut   bool          // the call is to end
	timed bool          // the alarm ends it before the client would
	ends  chan struct{} // closed when it is cut; kept for the next if it was not

	// One timer serves all calls: to set it for each of them would wake a
	// thread each time.
	alarm *time.Timer
	rings time.Time // when, or zero
	last  time.Time // when the latest call began
	until time.Time // for how long the call under way may take, or zero
}

func newLine(opt redis.Options) *line {
	l := &line{ends: make(chan struct{}), limit: max(opt.ReadTimeout, 0)}
	if opt.WriteTimeout > 0 && (l.limit == 0 || opt.WriteTimeout < l.limit) {
		l.limit = opt.WriteTimeout
	}
	dial := opt.Dialer
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return l.connected(c), nil
	}
	l.rdb = redis.NewClient(&opt)
	return l
}

// begin returns what a call runs under: it has ctx's values, and ends when the
// call is cut off, so that what still waits for a connection is never sent.
func (l *line) begin(ctx context.Context, timeout time.Duration) *lineContext {
	l.mu.Lock()
	l.calls++
	l.busy = true
	now := time.Now()
	l.fresh.Store(now.Sub(l.last) < checkAfter)
	l.last = now
	run := &lineContext{ends: l.ends, values: ctx}
	n := l.calls
	l.watch(timeout)
	l.timed = timeout > 0 && (l.limit == 0 || timeout <= l.limit)
	l.quiet.Store(l.timed && l.conn != nil && !l.conn.dated)
	l.mu.Unlock()
	if ctx.Done() != nil { // not under the mutex, which it may take at once
		run.values = context.WithoutCancel(ctx)
		run.stop = context.AfterFunc(ctx, func() { l.cutOff(n) })
	}
	return run
}

// end says whether the call was cut off.
func (l *line) end(run *lineContext) (cut bool) {
	if run.stop != nil {
		run.stop()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	cut = l.cut
	l.busy, l.cut, l.until = false, false, time.Time{}
	l.quiet.Store(false)
	if cut {
		l.ends = make(chan struct{})
	}
	return cut
}

// watch sees to it that the call ends after timeout. It needs l.mu.
func (l *line) watch(timeout time.Duration) {
	if timeout <= 0 {
		return
	}
	l.until = l.last.Add(timeout)
	if l.rings.IsZero() || l.until.Before(l.rings) {
		l.ring(timeout)
	}
}

// ring needs l.mu.
func (l *line) ring(in time.Duration) {
	l.rings = l.until
	if l.alarm == nil {
		l.alarm = time.AfterFunc(in, l.rang)
	} else {
		l.alarm.Reset(in)
	}
}

func (l *line) rang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rings = time.Time{}
	if l.until.IsZero() { // nothing is under way
		return
	}
	if left := time.Until(l.until); left > 0 {
		l.ring(left)
		return
	}
	l.interrupt()
}

// cutOff ends a call whose context has ended, if it is still under way.
func (l *line) cutOff(call int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy && l.calls == call {
		l.interrupt()
	}
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// interrupt needs l.mu, and l to be busy.
func (l *line) interrupt() {
	if l.cut {
		return
	}
	l.cut = true
	l.quiet.Store(false)
	close(l.ends)
	if l.conn != nil {
		l.conn.dated = true
		_ = l.conn.Conn.SetDeadline(past)
	}
}

func (l *line) close() {
	l.mu.Lock()
	if l.alarm != nil {
		l.alarm.Stop()
	}
	l.mu.Unlock()
	_ = l.rdb.Close()
}

// connected notes the line's connection.
func (l *line) connected(c net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = &lineConn{Conn: c, line: l}
	if raw, ok := c.(syscall.Conn); ok {
		return rawConn{l.conn, raw}
	}
	return l.conn
}

// A lineConn lets nobody set a deadline while its call is cut off, and needs none
// while the alarm is set: go-redis sets three for each command.
type lineConn struct {
	net.Conn
	line  *line
	dated bool // it has a deadline; guarded by line.mu
}

func (c *lineConn) SetDeadline(t time.Time) error      { return c.set(c.Conn.SetDeadline, t) }
func (c *lineConn) SetReadDeadline(t time.Time) error  { return c.set(c.Conn.SetReadDeadline, t) }
func (c *lineConn) SetWriteDeadline(t time.Time) error { return c.set(c.Conn.SetWriteDeadline, t) }

func (c *lineConn) set(deadline func(time.Time) error, t time.Time) error {
	if c.line.quiet.Load() {
		return nil
	}
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	switch {
	case c.line.cut:
		t = past
	case !c.line.busy || !c.line.timed:
	case c.dated:
		c.dated = false
		return c.Conn.SetDeadline(time.Time{})
	default:
		return nil
	}
	c.dated = true
	return deadline(t)
}

// checkAfter is how long a connection is taken for good after a call. To ask is
// a system call.
const checkAfter = 10 * time.Millisecond

// A rawConn can be asked whether the server has closed it, which go-redis does
// before each command.
type rawConn struct {
	*lineConn
	raw syscall.Conn
}

func (c rawConn) SyscallConn() (syscall.RawConn, error) {
	if c.line.fresh.Load() {
		return unasked{}, nil
	}
	return c.raw.SyscallConn()
}

// unasked is a connection that is not looked at.
type unasked struct{}

func (unasked) Control(func(uintptr)) error    { return nil }
func (unasked) Read(func(uintptr) bool) error  { return nil }
func (unasked) Write(func(uintptr) bool) error { return nil }

// A lineContext is what a call on a line runs under.
type lineContext struct {
	ends   <-chan struct{}
	values context.Context
	stop   func() bool
}

func (c *lineContext) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c *lineContext) Done() <-chan struct{} { return c.ends }

func (c *lineContext) Value(key any) any { return c.values.Value(key) }

func (c *lineContext) Err() error {
	select {
	case <-c.ends:
		return context.Canceled
	default:
		return nil
	}
}
