package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

var errLost = errors.New("the connection was lost")

// interrupt cancels a call whose context has ended. It does nothing if the flight now serves another call.
func (s *stream) interrupt(f *flight, call int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.uses == call && !f.abandoned && !f.done.Load() {
		s.cancelCall(f)
	}
}

// leave ends a call without a reply, and returns its error. It returns nil if the reply has come in the meantime.
func (s *stream) leave(ctx context.Context, f *flight) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.done.Load() {
		return nil
	}
	sent := !f.queued
	f.abandoned = true
	switch {
	case !sent:
		s.unqueue(f)
	case f.writeCut: // the connection was cut on this side: the server may well be fast
	case s.reads.Load() == f.reads:
		s.retire()
		s.source.slow.Store(true)
	}
	s.passWriter(f)
	s.passReader(f)
	if f.writeCut {
		return errLost
	}
	return leaveError(ctx, sent)
}

// unqueue removes a flight from the queue. It needs s.mu.
func (s *stream) unqueue(f *flight) {
	if i := slices.Index(s.queue, f); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
}

// past is a deadline that ends reads and writes at once.
var past = time.Unix(1, 0)

// cancelCall makes the caller of f leave. It interrupts the caller if it reads or writes. It needs s.mu.
func (s *stream) cancelCall(f *flight) {
	f.cancelled = true
	if s.writer == f && s.batchTaken {
		s.writeInterrupted = true
		_ = s.conn.SetWriteDeadline(past)
	}
	if s.reader == f {
		s.wakeReader()
	}
	f.signal()
}

// wakeReader interrupts the reader, so that it looks what it must do. It needs s.mu.
func (s *stream) wakeReader() {
	s.readInterrupted = true
	_ = s.conn.SetReadDeadline(past)
	s.reader.signal()
}

// armAlarm sets the alarm to until, unless it goes off earlier. It needs s.mu.
func (s *stream) armAlarm(until time.Time) {
	if until.IsZero() || !s.alarmAt.IsZero() && !until.Before(s.alarmAt) {
		return
	}
	s.alarmAt = until
	if s.alarm == nil {
		s.alarm = time.AfterFunc(time.Until(until), s.alarmFired)
	} else {
		s.alarm.Reset(time.Until(until))
	}
}

// alarmFired runs on a timer. It cancels the calls whose time is over, and sets the alarm for the next one.
func (s *stream) alarmFired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarmAt = time.Time{}
	now, next := time.Now(), time.Time{}
	look := func(f *flight) {
		switch {
		case f.abandoned || f.until.IsZero():
		case !now.Before(f.until):
			s.cancelCall(f)
		case next.IsZero() || f.until.Before(next):
			next = f.until
		}
	}
	for _, f := range s.flying {
		look(f)
	}
	for _, f := range s.queue {
		look(f)
	}
	s.armAlarm(next)
}

// begin counts a call on the stream, so that nobody closes it. It returns false if the stream is retired. It counts
// first: between a look at over and the count, the last call could end and close the stream.
func (s *stream) begin() bool {
	s.load.Add(1)
	if s.over.Load() {
		s.end()
		return false
	}
	return true
}

// end must be called once for each begin. The last end closes a retired stream.
func (s *stream) end() {
	if s.load.Add(-1) == 0 && s.over.Load() {
		s.close()
	}
}

// close closes the connection after the last call. It may be called twice.
func (s *stream) close() {
	s.mu.Lock()
	broken := s.dead || s.writeDead
	s.dead = true
	if s.alarm != nil {
		s.alarm.Stop()
	}
	s.mu.Unlock()
	if over, ok := s.conn.(interface{ NetConn() net.Conn }); ok && broken {
		_ = over.NetConn().Close() // else TLS would send an alert first, and wait up to 5 s for a server that does not read
	}
	_ = s.conn.Close()
}

// giveUp retires the stream, and closes it if no call uses it. Calls under way go on.
func (s *stream) giveUp() {
	if !s.begin() {
		return
	}
	s.mu.Lock()
	s.retire()
	s.mu.Unlock()
	s.end()
}

// retire makes sure that no new call begins on the stream. It needs s.mu.
func (s *stream) retire() {
	s.over.Store(true)
	s.source.stream.CompareAndSwap(s, nil)
}

// interruptAll marks the connection dead and interrupts the callers that read and write. It needs s.mu.
func (s *stream) interruptAll() {
	if !s.dead {
		s.dead, s.readInterrupted, s.writeInterrupted = true, true, true
		_ = s.conn.SetDeadline(past)
	}
}

// fail ends all calls with err, because the connection broke. Whether the commands that were sent have run is unknown. It
// needs s.mu.
func (s *stream) fail(err error) {
	s.retire()
	s.interruptAll()
	if timedOut(err) {
		s.source.slow.Store(true)
	}
	for _, f := range s.flying {
		if !f.abandoned {
			s.finish(f, reply{err: err})
			f.signal()
		}
	}
	s.flying = nil
	s.failQueued()
	s.reader, s.writer = nil, nil
}

// failQueued ends the calls in the queue, which were not sent. It needs s.mu.
func (s *stream) failQueued() {
	for _, f := range s.queue {
		s.finish(f, reply{err: fmt.Errorf("%w: %w", errNotSent, errLost)})
		f.signal()
	}
	s.queue = nil
}

// stopWriting ends all writing after a write that broke off and cannot be resumed. The server may or may not have received
// the rest of the batch, so these calls end. Replies to the commands that were written in full still come. The writer
// calls it. It needs s.mu.
func (s *stream) stopWriting() {
	s.retire()
	s.writeDead = true
	s.out = s.out[:0]
	s.failQueued()
	for _, f := range s.batch {
		if !f.abandoned && !f.cancelled && !f.done.Load() {
			f.writeCut = true
			s.cancelCall(f)
		}
	}
}
