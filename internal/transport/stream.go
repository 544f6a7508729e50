package transport

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A stream is a connection that calls share. Commands are written in the order of the queue, many at once, and replies
// come in that order. A stream has no goroutine. One caller is the writer for all, and one is the reader for all. A
// caller passes its role on, at the latest when its own call ends. So a single caller writes and reads itself, and wakes
// nobody.
//
// If a call ends before its reply, the reader later reads and drops that reply. If the stream has received nothing since
// the call was sent, no new call begins on the stream.
type stream struct {
	source *streamSource
	conn   net.Conn
	made   time.Time
	in     *decoder // only for the reader
	got    []reply  // only for the reader
	out    []byte   // only for the writer: bytes not sent yet
	group  grouping
	tuner  yieldTuner
	free   sync.Pool    // of *flight
	load   atomic.Int32 // calls on the stream, including time in hooks; the last call closes a retired stream
	over   atomic.Bool  // retired: no call begins any more; written under mu
	reads  atomic.Int64 // how often replies have been received

	// How long the server has been silent: set by each call that finds the stream idle, or finds new replies.
	used      atomic.Int64 // when that call began, in nanoseconds since made
	readsSeen atomic.Int64 // the value of reads then

	mu               sync.Mutex // guards the following fields
	queue            []*flight  // not written yet
	batch            []*flight  // being written; the writer reads it without mu
	flying           []*flight  // written or being written, and not answered
	reader           *flight    // its caller has the reader's role
	writer           *flight    // its caller has the writer's role
	writerActive     bool       // the writer has taken up its role
	yielding         bool       // the writer lets other callers run, and one of them may take over the role
	batchTaken       bool       // batch is the writer's to send
	dead             bool       // the connection cannot be used
	writeDead        bool       // nothing can be written any more, but replies may still come
	readInterrupted  bool       // the read deadline is in the past, to wake the reader
	writeInterrupted bool       // the write deadline is in the past, to wake the writer

	// One timer serves all calls, because setting a timer for each call would wake a thread each time.
	alarm   *time.Timer
	alarmAt time.Time // zero: not set
}

// A flight is one command on a stream, from the queue to its reply.
type flight struct {
	s       *stream
	cmd     rawCmd
	until   time.Time     // when the call ends; zero: never
	timeout time.Duration // how long the call waits for an answer; 0: without limit
	wake    chan struct{} // cap 1: tells the caller to look at done and at its roles
	done    atomic.Bool   // the flight has its reply
	reply   reply         // set before done
	endsAt  int           // only for the writer: where the command ends in stream.out
	resend  bool          // set before done: the group did nothing for this call, which must be sent alone
	failure error         // why the call has no reply; kept if the command may have run

	// Guarded by stream.mu:

	group     int   // number of flights in the group that begins here; 0: none begins here
	uses      int   // how often the flight has been queued
	queued    bool  // not taken for writing yet
	abandoned bool  // the caller has left
	cancelled bool  // the caller must leave
	writeCut  bool  // the write broke off: the server may or may not have received the command
	reads     int64 // stream.reads when the flight was taken for writing
}

// A reply is what Redis answered to one command.
type reply struct {
	val any
	err error
}

// newStream makes a stream of a connection whose handshake is done.
func newStream(o *streamSource, conn net.Conn) *stream {
	s := &stream{source: o, conn: conn, made: time.Now()}
	s.in = newDecoder(newSpinner(conn, &s.load))
	return s
}

// send sends a command, and waits for its reply until ctx or the call's time ends.
func (f *flight) send(ctx context.Context, cmd rawCmd) (any, error) {
	if mayHaveRun(f.failure) {
		return nil, f.failure // a hook sends it again, but it may have run
	}
	if !f.abandoned {
		f.failure = nil
	}
	if ctx.Err() != nil {
		f.failure = notSent(ctx)
		return nil, f.failure
	}
	if !encodable(cmd.args) {
		return nil, fmt.Errorf("%w: an argument of a type that redis has not", errNotSent)
	}
	for ; ; cmd.usual = nil {
		todo, err := f.s.enter(f, &cmd)
		if err == nil {
			err = f.s.roundTrip(ctx, f, todo)
			f.failure = err
		}
		if err != nil {
			return nil, err
		}
		r, again := f.reply, f.resend
		f.reply, f.resend = reply{}, false
		f.done.Store(false)
		if mayHaveRun(r.err) {
			f.failure = r.err
		}
		if !again {
			return r.val, r.err
		}
	}
}

// mayHaveRun reports whether the script may have run, or may still run, though its call returned err.
func mayHaveRun(err error) bool { return err != nil && Classify(err) == Unknown }

// A todo is what a caller does next.
type todo int

const (
	waits    todo = iota // for a reply or a role
	collects             // lets other callers queue their commands, then takes the queue
	writes
	reads
	leaves // without a reply
	returns
)

// enter queues a flight with a command. The caller becomes the writer if there is none. It also takes over from a
// yielding writer once half of the expected calls are queued: the server works on these while the others come.
func (s *stream) enter(f *flight, cmd *rawCmd) (todo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dead || s.writeDead:
		return 0, fmt.Errorf("%w: %w", errNotSent, errLost)
	case f.abandoned: // a hook sends it again, but the first command may still be in the writer's hands
		return 0, fmt.Errorf("%w: the call has ended", errNotSent)
	}
	f.uses++
	f.cmd, f.queued, f.cancelled, f.writeCut = *cmd, true, false, false
	s.queue = append(s.queue, f)
	switch {
	case s.writer == nil && s.shouldYield():
		s.writer = f
	case s.writer == nil, s.yielding && len(s.queue) >= max(s.tuner.halfPeak, fewCalls):
		s.writer = f
		s.takeBatch()
	}
	s.armAlarm(f.until)
	return s.next(f), nil
}

// next returns what the caller of f must do, and has it take up its role. It needs s.mu.
func (s *stream) next(f *flight) todo {
	switch {
	case f.done.Load():
		return returns
	case f.cancelled:
		return leaves
	case s.writer == f:
		s.writerActive, s.yielding = true, !s.batchTaken && s.shouldYield()
		if s.batchTaken {
			return writes
		}
		return collects
	case s.reader == f:
		return reads
	}
	return waits
}

// roundTrip fulfils the caller's roles until f has its reply. It returns an error if f will get none.
func (s *stream) roundTrip(ctx context.Context, f *flight, do todo) error {
	var stop func() bool // ends the watch of ctx: a caller with a role cannot select on ctx.Done
	for {
		if stop == nil && (do == collects || do == writes || do == reads) && ctx.Done() != nil {
			call := f.uses
			stop = context.AfterFunc(ctx, func() { s.interrupt(f, call) })
		}
		switch do {
		case collects:
			do = s.collect(f)
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

// wait waits until the caller of f has something to do.
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

// signal wakes the caller of f, so that it looks at done and at its roles.
func (f *flight) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// finish gives f its reply. It needs s.mu. The caller of finish must then wake the caller of f.
func (s *stream) finish(f *flight, r reply) {
	f.reply = r
	f.done.Store(true)
	if !s.writerActive {
		s.passWriter(f) // f's caller returns now and will not take up the role
	}
}

// passWriter gives the writer's role to another caller, if f has it and there is something to write. It needs s.mu.
func (s *stream) passWriter(f *flight) {
	if s.writer != f {
		return
	}
	s.writer, s.writerActive, s.yielding = nil, false, false
	if len(s.queue) > 0 {
		s.writer = s.queue[0]
	} else if len(s.out) > 0 {
		s.writer = s.otherWaiter(f, s.reader)
	}
	switch s.writer {
	case nil:
	case s.reader: // no other caller is left
		s.wakeReader()
	default:
		s.writer.signal()
	}
}

// otherWaiter returns a flight whose caller waits for a reply, other than f. It returns busy, which has the other role,
// only if there is no other. It needs s.mu.
func (s *stream) otherWaiter(f, busy *flight) (g *flight) {
	for _, h := range s.flying {
		if h.abandoned || h.cancelled || h == f {
			continue
		}
		if g = h; g != busy {
			break
		}
	}
	return g
}

// passReader gives the reader's role to another caller, if f has it. It needs s.mu.
func (s *stream) passReader(f *flight) {
	if s.reader != f {
		return
	}
	g := s.otherWaiter(f, s.writer)
	if g == nil && s.writer == f && !f.done.Load() {
		return // f is alone: it keeps the role, writes, and then reads on
	}
	if s.reader = g; g != nil {
		g.signal()
	}
}
