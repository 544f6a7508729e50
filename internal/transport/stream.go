package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A stream is a connection that calls share. One goroutine writes the commands of all callers, as many at once as are
// queued. Another reads the replies, which come in the same order. Closing the connection ends both. A caller that is
// alone writes and reads itself, because waking the goroutines would take half as long as its round trip.
//
// If a call ends before its reply, that reply is dropped when it comes. If the stream has received nothing since the
// command was taken for writing, or is silent, no new call begins on it.
type stream struct {
	source   *streamSource
	conn     net.Conn
	made     time.Time
	poolLost uint32        // the pool's StaleConns when the dial began: see switched
	free     sync.Pool     // of *flight, for later calls
	toWrite  chan struct{} // cap 1: tells the writer that the queue is not empty
	toRead   chan struct{} // cap 1: tells the reader that reading is its task
	closed   chan struct{} // ends the goroutines; closed just before conn
	closing  sync.Once
	running  sync.WaitGroup // the goroutines that write and read
	load     atomic.Int32   // calls on the stream, including time in hooks; the last call closes a retired stream
	retired  atomic.Bool    // no call begins any more
	reads    atomic.Int64   // how many replies have been received

	// The server has been silent since the later of these two instants, in nanoseconds since made.
	owesSince atomic.Int64 // when the latest call began while no reply was owed
	heardAt   atomic.Int64 // when the latest reply came that left others owed
	owed      atomic.Int32 // len(flying), for readers without mu

	in  *decoder // only for the caller or goroutine that reads
	out []byte   // only for the caller that is alone

	mu          sync.Mutex // guards the following fields
	queue       []*flight  // not written yet
	flying      []*flight  // written or being written, and not answered
	alone       *flight    // the flight of the caller that is alone; nil: none is
	writing     bool       // that caller writes, or its write failed: nobody else may write
	reading     bool       // that caller or the reader reads, or is about to
	interrupted bool       // conn has deadlines in the past, which stop that caller
	group       grouping
	dead        bool // nothing is written any more; replies may still come

	// One timer serves all calls, because setting a timer for each call would wake a thread each time.
	alarm   *time.Timer
	alarmAt time.Time // zero: not set
}

// A flight is one command on a stream, from the queue to its reply.
type flight struct {
	cmd      rawCmd
	deadline time.Time     // when the call ends; zero: never
	done     chan struct{} // cap 1: tells the caller that the flight has ended or expired
	reply    reply         // set before ended
	again    bool          // set before done: the group did nothing for this call, which must be sent alone

	// Guarded by stream.mu:

	group   int   // number of flights in the group that begins here; 0: none begins here
	taken   bool  // taken for writing
	ended   bool  // the flight has its reply, or its caller has left
	expired bool  // deadline has passed; its caller may read this without mu after done
	reads   int64 // stream.reads when the flight was taken
}

// A reply is what Redis answered to one command.
type reply struct {
	val any
	err error
}

var errLost = errors.New("the connection was lost")

// newStream turns a connection whose handshake is done into the source's stream.
func newStream(o *streamSource, conn net.Conn, poolLost uint32) *stream {
	s := &stream{source: o, conn: conn, made: time.Now(), poolLost: poolLost}
	s.toWrite, s.toRead, s.closed = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	s.in = &decoder{bufio.NewReaderSize(newSpinner(conn, &s.load), readSize)}
	s.alarm = time.AfterFunc(stall, s.alarmFired) // armAlarm sets the time
	s.mu.Lock()                                   // so that fail waits until retire can find the stream
	defer s.mu.Unlock()
	s.running.Go(s.write)
	s.running.Go(s.read)
	o.stream.Store(s) // not before, because a call may close the stream at once, and close waits for running
	return s
}

// send sends a command and returns its reply, or an error once ctx ends or the deadline is reached. again is true
// if a group did nothing for the command, which must then be sent alone.
func (s *stream) send(ctx context.Context, deadline time.Time, cmd rawCmd) (r reply, again bool) {
	f, ok := s.free.Get().(*flight)
	if !ok {
		f = &flight{done: make(chan struct{}, 1)}
	}
	f.cmd, f.deadline = cmd, deadline
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		return reply{err: fmt.Errorf("%w: %w", errNotSent, errLost)}, false
	}
	s.armAlarm(deadline)
	if s.load.Load() == 1 && len(s.queue)+len(s.flying) == 0 && !s.reading {
		s.flying = append(s.flying, f)
		s.owed.Store(1)
		f.taken, f.reads = true, s.reads.Load()
		s.alone, s.writing, s.reading = f, true, true
		s.mu.Unlock()
		s.roundTrip(ctx, f)
	} else {
		s.queue = append(s.queue, f)
		s.mu.Unlock()
		wake(s.toWrite)
	}
	leaves := true
	select {
	case <-f.done:
		leaves = f.expired
	case <-ctx.Done():
	}
	if leaves {
		if sent, left := s.leave(f); left {
			return reply{err: leaveError(ctx, sent)}, false
		}
	}
	r, again = f.reply, f.again
	if !leaves && ctx.Err() == nil { // otherwise f may still get a late signal or interruption
		*f = flight{done: f.done}
		s.free.Put(f)
	}
	return r, again
}

// wake fills a channel of capacity 1, unless it is full.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// past is a deadline that ends reads and writes at once.
var past = time.Unix(1, 0)

// roundTrip writes the command of a caller that is alone, and reads its reply. The end of ctx or of the call's time
// interrupts that. After an interrupted write the stream is retired. After an interrupted wait the stream's reader
// takes the reply when it comes, or the connection ends if a part of the reply has come already.
func (s *stream) roundTrip(ctx context.Context, f *flight) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.interrupt(f)
		})
		defer stop()
	}
	s.out = appendCommand(s.out[:0], f.cmd)
	_, err := s.conn.Write(s.out)
	s.mu.Lock()
	if s.interrupted { // writing stays set, so nobody writes any more, and leave retires the stream
		s.alone = nil
		s.mu.Unlock()
		return
	}
	if s.writing = err != nil; !s.writing && len(s.queue) > 0 {
		wake(s.toWrite)
	}
	s.mu.Unlock()
	if err == nil {
		_, err = s.in.in.Peek(1) // loses nothing if it is interrupted
		if err != nil && timedOut(err) && s.leaveReply() {
			return
		}
	}
	var r reply
	if err == nil {
		r, err = s.in.readReply(maxDepth)
	}
	if err == nil {
		_, err = s.take(r)
	}
	if err != nil {
		s.fail(err)
	}
}

// leaveReply leaves the reply to the reader, and returns true, if the caller that is alone was interrupted.
func (s *stream) leaveReply() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupted {
		s.endAlone()
		return true
	}
	return false
}

// interrupt ends the read or write of the caller that is alone, if f is its flight. It needs s.mu.
func (s *stream) interrupt(f *flight) {
	if s.alone != f {
		return
	}
	s.interrupted = true
	_ = s.conn.SetReadDeadline(past)
	if s.writing {
		_ = s.conn.SetWriteDeadline(past)
	}
}

// endAlone lets others use the connection again. If reading is set, the reader goes on. It needs s.mu.
func (s *stream) endAlone() {
	s.alone = nil
	if s.interrupted {
		s.interrupted = s.conn.SetReadDeadline(time.Time{}) != nil
	}
	if s.reading {
		wake(s.toRead)
	}
}

// leave ends a call. If the flight has a reply, left is false. Otherwise the caller leaves without one, and sent tells
// whether the command may have been written. leave retires a stream that may be dead.
func (s *stream) leave(f *flight) (sent, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.ended { // the reply came at the same time
		return true, false
	}
	if !f.taken {
		s.queue = slices.DeleteFunc(s.queue, func(g *flight) bool { return g == f })
		return false, true
	}
	f.ended = true
	if s.reads.Load() == f.reads || s.silent(time.Now()) {
		s.retire()
		s.source.slow.Store(true)
		s.dead = true // the writer may be stuck
		s.failQueue()
	}
	return true, true
}

// failQueue ends the calls in the queue, which were not sent. They go on with the client's pool. It needs s.mu.
func (s *stream) failQueue() {
	for _, f := range s.queue {
		f.finish(reply{err: fmt.Errorf("%w: %w", errNotSent, errLost)})
	}
	s.queue = nil
}

// manyCalls is how many calls must be under way for the writer to yield before it writes. Callers that have just got
// their replies can then put their next commands into the same write. Fewer callers would leave the server idle.
const manyCalls = 64

// write writes what is queued, until the connection is closed.
func (s *stream) write() {
	var out []byte
	for {
		select {
		case <-s.toWrite:
		case <-s.closed:
			return
		}
		if s.load.Load() >= manyCalls {
			runtime.Gosched()
		}
		out = s.takeQueue(out[:0])
		if len(out) == 0 {
			continue // an earlier write took all, the callers have left, or one that is alone is writing
		}
		if _, err := s.conn.Write(out); err != nil {
			s.fail(err)
			return
		}
	}
}

// takeQueue takes all flights off the queue, and appends their encoded commands to out. It takes none while a caller
// that is alone writes.
func (s *stream) takeQueue(out []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing {
		return out // roundTrip wakes the writer afterwards
	}
	at := len(s.flying)
	s.flying = s.group.arrange(s.flying, s.queue)
	clear(s.queue)
	s.queue = s.queue[:0]
	s.owed.Store(int32(len(s.flying)))
	reads := s.reads.Load()
	for _, f := range s.flying[at:] {
		f.taken, f.reads = true, reads
	}
	for at < len(s.flying) {
		next := at + max(s.flying[at].group, 1)
		if next > at+1 {
			out = s.group.appendTo(out, s.flying[at:next])
		} else {
			out = appendCommand(out, s.flying[at].cmd)
		}
		at = next
	}
	if len(s.flying) > 0 && !s.reading {
		s.reading = true
		wake(s.toRead)
	}
	return out
}

// read reads replies until the connection is closed. It pauses when no reply is owed and no more than one call is under
// way, so that the next caller can read itself.
func (s *stream) read() {
	for {
		select {
		case <-s.toRead:
		case <-s.closed:
			return
		}
		for more := true; more; {
			r, err := s.in.readReply(maxDepth)
			if err == nil {
				more, err = s.take(r)
			}
			if err != nil {
				s.fail(err)
				return
			}
		}
	}
}

// take gives a reply to the call or group that it is for. more tells whether the reader must go on.
func (s *stream) take(r reply) (more bool, err error) {
	// After NOREPLICAS a young connection is kept: a new one would lead to the same server.
	if r.err != nil && takesNoWrites(r.err) && (ReadOnly(r.err) || time.Since(s.made) >= retireInterval) {
		s.giveUp() // before its caller tries again: after a failover the address may lead to another server
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads.Add(1)
	if len(s.flying) == 0 {
		return false, fmt.Errorf("%w: one that nobody waits for", errOrder)
	}
	n := max(s.flying[0].group, 1)
	flights := s.flying[:n]
	if n > 1 {
		err = s.group.distribute(flights, r)
	} else {
		flights[0].finish(r)
	}
	s.flying = slices.Delete(s.flying, 0, n)
	s.owed.Store(int32(len(s.flying)))
	if len(s.flying) > 0 {
		s.heardAt.Store(int64(time.Since(s.made)))
	}
	s.reading = len(s.flying) > 0 || s.alone == nil && s.load.Load() > 1 // for several callers a pause costs much
	if s.alone != nil {
		s.endAlone()
	}
	return s.reading, err
}

// errOrder is the error of a connection whose replies do not match the commands.
var errOrder = errors.New("replies out of order")

// finish gives a flight its reply, unless its caller has left. It needs stream.mu.
func (f *flight) finish(r reply) {
	if f.ended {
		return
	}
	f.reply, f.ended = r, true
	wake(f.done) // full if the flight has expired, and its caller has not seen that yet
}

// armAlarm sets the alarm for until, unless it goes off earlier anyway. Zero sets nothing. It needs s.mu.
func (s *stream) armAlarm(until time.Time) {
	if until.IsZero() || !s.alarmAt.IsZero() && !until.Before(s.alarmAt) {
		return
	}
	s.alarmAt = until
	s.alarm.Reset(time.Until(until))
}

// alarmFired runs on a timer. It wakes the callers whose time is over, and sets the alarm for the next one.
func (s *stream) alarmFired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarmAt = time.Time{}
	now, next := time.Now(), time.Time{}
	for _, flights := range [][]*flight{s.flying, s.queue} {
		for _, f := range flights {
			switch {
			case f.ended || f.expired || f.deadline.IsZero():
			case !now.Before(f.deadline):
				f.expired = true
				wake(f.done)
				s.interrupt(f)
			case next.IsZero() || f.deadline.Before(next):
				next = f.deadline
			}
		}
	}
	s.armAlarm(next)
}

// end must be called once for each call that tryJoin has counted. The last end closes a retired stream.
func (s *stream) end() {
	if s.load.Add(-1) == 0 && s.retired.Load() {
		s.close()
	}
}

// silent reports whether the server has owed replies for so long without sending any that the connection may be dead.
func (s *stream) silent(now time.Time) bool {
	since := time.Duration(max(s.owesSince.Load(), s.heardAt.Load()))
	return s.owed.Load() > 0 && now.Sub(s.made)-since > max(stall, 2*time.Duration(s.source.t.rtt.Load()))
}

// lost reports whether the connection was closed, or received data that nobody asked for. While somebody reads it
// returns false, because a read will notice.
func (s *stream) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.reading && !quiet(s.conn)
}

// giveUp retires the stream, and closes it if no call uses it. Calls under way go on.
func (s *stream) giveUp() {
	s.retire()
	if s.load.Load() == 0 { // a call that ends after this finds the stream retired, and closes it
		s.close()
	}
}

// retire makes sure that no new call begins on the stream.
func (s *stream) retire() {
	s.retired.Store(true)
	s.source.stream.CompareAndSwap(s, nil)
}

// fail ends all calls, because the connection broke. Those that were taken get err, and may have run.
func (s *stream) fail(err error) {
	if timedOut(err) {
		s.source.slow.Store(true)
	}
	s.mu.Lock()
	s.retire()
	s.dead = true
	for _, f := range s.flying {
		f.finish(reply{err: err})
	}
	s.flying = nil
	s.failQueue()
	s.mu.Unlock()
	s.close()
}

// close closes the connection, and ends the goroutines. It may be called more than once.
func (s *stream) close() {
	s.mu.Lock()
	s.dead = true
	s.alarm.Stop()
	s.mu.Unlock()
	s.closing.Do(func() {
		close(s.closed)
		s.source.t.mu.Lock()
		defer s.source.t.mu.Unlock()
		s.source.t.spawn(func() {
			_ = s.conn.Close() // TLS may wait for 5 s until the server takes its goodbye
			s.running.Wait()
		})
	})
}
