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

// interrupt ends a call whose context has ended, if it is still under way.
func (s *stream) interrupt(f *flight, call int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.calls == call && !f.left && !f.done.Load() {
		s.cutOff(f)
	}
}

// leave ends a call that has no reply; nil: it has one.
func (s *stream) leave(ctx context.Context, f *flight) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.done.Load() {
		return nil
	}
	sent := !f.queued
	f.left = true
	switch {
	case !sent:
		s.unqueue(f)
	case f.lost: // which says nothing of the server
	case s.reads.Load() == f.reads:
		s.retire()
		s.own.slow.Store(true)
	}
	s.passWriter(f)
	s.passReader(f)
	if f.lost {
		return errLost
	}
	return leaving(ctx, sent)
}

// unqueue takes back what has not been sent. It needs s.mu.
func (s *stream) unqueue(f *flight) {
	if i := slices.Index(s.queue, f); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// cutOff has the caller of f leave. It needs s.mu.
func (s *stream) cutOff(f *flight) {
	f.cut = true
	if s.writer == f && s.sending {
		s.late = true
		_ = s.conn.SetWriteDeadline(past)
	}
	if s.reader == f {
		s.wakeReader()
	}
	f.signal()
}

// wakeReader has who reads look what there is to do. It needs s.mu.
func (s *stream) wakeReader() {
	s.dated = true
	_ = s.conn.SetReadDeadline(past)
	s.reader.signal()
}

// watch sees to it that a call ends at its time. It needs s.mu.
func (s *stream) watch(until time.Time) {
	if until.IsZero() || !s.rings.IsZero() && !until.Before(s.rings) {
		return
	}
	s.rings = until
	if s.alarm == nil {
		s.alarm = time.AfterFunc(time.Until(until), s.rang)
	} else {
		s.alarm.Reset(time.Until(until))
	}
}

// rang ends the calls whose time is over.
func (s *stream) rang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rings = time.Time{}
	now, next := time.Now(), time.Time{}
	look := func(f *flight) {
		switch {
		case f.left || f.until.IsZero():
		case !now.Before(f.until):
			s.cutOff(f)
		case next.IsZero() || f.until.Before(next):
			next = f.until
		}
	}
	for _, f := range s.flying.all() {
		look(f)
	}
	for _, f := range s.queue {
		look(f)
	}
	s.watch(next)
}

// begin takes part in a stream, unless it is over.
func (s *stream) begin() bool {
	s.load.Add(1)
	if s.over.Load() {
		s.end()
		return false
	}
	return true
}

// end is called once for each begin. The last one closes a stream that is over.
func (s *stream) end() {
	if s.load.Add(-1) == 0 && s.over.Load() {
		s.close()
	}
}

// close ends what nobody uses any more. Once more does nothing.
func (s *stream) close() {
	s.mu.Lock()
	broken := s.dead || s.mute
	s.dead = true
	if s.alarm != nil {
		s.alarm.Stop()
	}
	s.mu.Unlock()
	if over, ok := s.conn.(interface{ NetConn() net.Conn }); ok && broken {
		_ = over.NetConn().Close() // TLS would first take leave of a server that may not read, for up to 5 s
	}
	_ = s.conn.Close()
}

// giveUp lets no call begin any more, and those under way end.
func (s *stream) giveUp() {
	if !s.begin() {
		return
	}
	s.mu.Lock()
	s.retire()
	s.mu.Unlock()
	s.end()
}

// retire lets no call begin any more. It needs s.mu.
func (s *stream) retire() {
	s.over.Store(true)
	s.own.stream.CompareAndSwap(s, nil)
}

// interruptAll ends what is under way at the connection, which cannot be used any more: who
// is in a system call there returns. It needs s.mu.
func (s *stream) interruptAll() {
	if !s.dead {
		s.dead, s.dated, s.late = true, true, true
		_ = s.conn.SetDeadline(past)
	}
}

// fail ends all calls: nobody knows of those that were sent. It needs s.mu.
func (s *stream) fail(err error) {
	s.retire()
	s.interruptAll()
	if timedOut(err) {
		s.own.slow.Store(true)
	}
	for _, f := range s.flying.all() {
		if !f.left {
			s.finish(f, reply{err: err})
			f.signal()
		}
	}
	s.flying = fifo{}
	s.refuse()
	s.reader, s.writer = nil, nil
}

// refuse ends the calls that are queued, for which there is no connection. It needs s.mu.
func (s *stream) refuse() {
	for _, f := range s.queue {
		s.finish(f, reply{err: fmt.Errorf("%w: %w", errNotSent, errLost)})
		f.signal()
	}
	s.queue = nil
}

// hush is for a connection to which a write was cut short that cannot be gone on with. Nothing
// more is written, and nobody knows of what is left of the batch. The replies to what was written
// in full still come. It needs s.mu, and is for who writes.
func (s *stream) hush() {
	s.retire()
	s.mute = true
	s.out = s.out[:0]
	s.refuse()
	for _, f := range s.batch {
		if !f.left && !f.cut && !f.done.Load() {
			f.lost = true
			s.cutOff(f)
		}
	}
}
