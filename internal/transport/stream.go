package transport

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A stream is a connection that calls share: commands leave in the order in which
// they came, many at once, and their replies come in that order. It has no goroutine.
// One of the callers writes what has come to be written, and one reads for all; either
// passes that on, at the latest when its own call is over. So who is alone writes and reads by
// itself, and wakes nobody.
//
// A call that ends before its reply has come leaves it to be read and dropped. If
// nothing at all has come since it was sent, no other call follows it on the stream.
type stream struct {
	own   *own
	conn  net.Conn
	made  time.Time
	in    *decoder // of who reads
	got   []reply  // of who reads
	out   []byte   // of who writes: what is left to be sent
	group grouping
	pace  pace
	free  sync.Pool    // of *flight
	load  atomic.Int32 // calls under way, at whose hooks as well: the last one closes what is over
	over  atomic.Bool  // no call begins any more; written with mu
	reads atomic.Int64 // how often something has come

	// As the latest call found it: whether the server is silent.
	used  atomic.Int64 // when that was, in nanoseconds since made
	heard atomic.Int64 // reads by then

	mu      sync.Mutex // protects following fields
	queue   []*flight  // to be written
	batch   []*flight  // being written; read by who writes
	flying  fifo       // written, and not answered
	reader  *flight    // whose caller reads
	writer  *flight    // whose caller writes
	writing bool       // it has begun to
	lets    bool       // it lets others come first, one of whom may take its place
	sending bool       // it has a batch
	dead    bool       // the connection cannot be used
	mute    bool       // nothing can be written to it any more
	dated   bool       // who reads is interrupted: the connection has a deadline that is over
	late    bool       // the same for who writes

	// One timer serves all calls: to set it for each of them would wake a
	// thread each time.
	alarm *time.Timer
	rings time.Time // when, or zero
}

// A flight is one command under way.
type flight struct {
	s      *stream
	cmd    bare
	until  time.Time     // when its call ends, or zero
	within time.Duration // how long it waits for an answer, or zero
	wake   chan struct{} // cap 1: it may have its reply, or something to do
	done   atomic.Bool   // it has its reply
	reply  reply         // before done
	ends   int           // of who writes: where it ends in stream.out
	again  bool          // before done: it failed when it was made with others, and must be made by itself
	gone   error         // why it has had no reply; stays where it may have run

	// Guarded by stream.mu:

	group  int   // so many are made together, of which it is the first; 0: it is not
	calls  int   // how many it has served
	queued bool  // it has not been sent
	left   bool  // its caller has gone
	cut    bool  // its call is to end
	lost   bool  // because what was written of it may have been received, or not
	reads  int64 // those of the stream when it was sent
}

// A reply is what Redis said to one command.
type reply struct {
	val any
	err error
}

// newStream goes on with a connection on which the server has been greeted.
func newStream(o *own, conn net.Conn) *stream {
	s := &stream{own: o, conn: conn, made: time.Now()}
	s.in = newDecoder(newSpinner(conn, &s.load))
	return s
}

// send sends a command, and waits for its reply until ctx or the call's time ends.
func (f *flight) send(ctx context.Context, cmd bare) (any, error) {
	if mayHaveRun(f.gone) {
		return nil, f.gone // a hook sends it again
	}
	if !f.left {
		f.gone = nil
	}
	if ctx.Err() != nil {
		f.gone = notSent(ctx)
		return nil, f.gone
	}
	if !encodable(cmd.args) {
		return nil, fmt.Errorf("%w: an argument of a type that redis has not", errNotSent)
	}
	for ; ; cmd.usual = nil {
		todo, err := f.s.enter(f, &cmd)
		if err == nil {
			err = f.s.fly(ctx, f, todo)
			f.gone = err
		}
		if err != nil {
			return nil, err
		}
		r, again := f.reply, f.again
		f.reply, f.again = reply{}, false
		f.done.Store(false)
		if mayHaveRun(r.err) {
			f.gone = r.err
		}
		if !again {
			return r.val, r.err
		}
	}
}

// What a caller has to do next.
type todo int

const (
	waits todo = iota
	gathers
	writes
	reads
	leaves // without a reply
	returns
)

// enter queues a flight with its command, whose caller writes if nobody does. It also takes the place of one
// who lets others come, once half of them have: the server works on these meanwhile.
func (s *stream) enter(f *flight, cmd *bare) (todo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dead || s.mute:
		return 0, fmt.Errorf("%w: %w", errNotSent, errLost)
	case f.left: // a hook sends it again; what it sent before may be being written
		return 0, fmt.Errorf("%w: the call has ended", errNotSent)
	}
	f.calls++
	f.cmd, f.queued, f.cut, f.lost = *cmd, true, false, false
	s.queue = append(s.queue, f)
	switch {
	case s.writer == nil && s.yields():
		s.writer = f
	case s.writer == nil, s.lets && len(s.queue) >= max(s.pace.half, few):
		s.writer = f
		s.take()
	}
	s.watch(f.until)
	return s.next(f), nil
}

// next says what the caller of f has to do. It needs s.mu.
func (s *stream) next(f *flight) todo {
	switch {
	case f.done.Load():
		return returns
	case f.cut:
		return leaves
	case s.writer == f:
		s.writing, s.lets = true, !s.sending && s.yields()
		if s.sending {
			return writes
		}
		return gathers
	case s.reader == f:
		return reads
	}
	return waits
}

// fly does what there is to do for f and for others until f has its reply. Its error is
// why it will have none.
func (s *stream) fly(ctx context.Context, f *flight, do todo) error {
	var stop func() bool // ends the watch of ctx, which who is at the connection needs
	for {
		if stop == nil && (do == gathers || do == writes || do == reads) && ctx.Done() != nil {
			call := f.calls
			stop = context.AfterFunc(ctx, func() { s.interrupt(f, call) })
		}
		switch do {
		case gathers:
			do = s.gather(f)
		case writes:
			do = s.write(f)
		case reads:
			do = s.read(f)
		case waits:
			do = s.wait(ctx, f)
		default:
			if stop != nil {
				stop()
			}
			if do == leaves {
				return s.leave(ctx, f)
			}
			return nil
		}
	}
}

// wait returns when there is something to do.
func (s *stream) wait(ctx context.Context, f *flight) todo {
	select {
	case <-f.wake:
	case <-ctx.Done():
		return leaves
	}
	if f.done.Load() {
		return returns
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next(f)
}

// signal wakes the caller of f, or has it look again.
func (f *flight) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// finish gives f its reply. It needs s.mu; f's caller is to be woken after that.
func (s *stream) finish(f *flight, r reply) {
	f.reply = r
	f.done.Store(true)
	if !s.writing {
		s.passWriter(f) // it was to send what another had left
	}
}

// passWriter has another write, if it was for f's caller. It needs s.mu.
func (s *stream) passWriter(f *flight) {
	if s.writer != f {
		return
	}
	s.writer, s.writing, s.lets = nil, false, false
	if len(s.queue) > 0 {
		s.writer = s.queue[0]
	} else if len(s.out) > 0 {
		s.writer = s.another(f, s.reader)
	}
	switch s.writer {
	case nil:
	case s.reader: // there is nobody else
		s.wakeReader()
	default:
		s.writer.signal()
	}
}

// another returns one whose caller waits for a reply: better not one that has something
// else to do. It needs s.mu.
func (s *stream) another(f, busy *flight) (g *flight) {
	for _, h := range s.flying.all() {
		if h.left || h.cut || h == f {
			continue
		}
		if g = h; g != busy {
			break
		}
	}
	return g
}

// passReader has another read, if it was for f's caller. It needs s.mu.
func (s *stream) passReader(f *flight) {
	if s.reader != f {
		return
	}
	g := s.another(f, s.writer)
	if g == nil && s.writer == f && !f.done.Load() {
		return // it reads on when it has written
	}
	if s.reader = g; g != nil {
		g.signal()
	}
}
