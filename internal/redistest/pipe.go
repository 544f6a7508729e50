package redistest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipe returns the two ends of an in-memory connection that buffers without bound. A [net.Pipe] does not: a writer
// would wait for its reader, and miniredis publishes while it holds its only lock, so that one subscriber that does
// not read would stop the server and, with it, the bubble's clock.
func pipe() (near, far *end) {
	up, down := newStream(), newStream()
	return &end{in: down, out: up}, &end{in: up, out: down}
}

// end is one end of a pipe. Every wait in it is on a channel or a timer, which a bubble counts as durably blocked.
type end struct {
	in, out *stream
}

// stream carries bytes in one direction.
type stream struct {
	mu      sync.Mutex // protects following fields
	buf     []byte
	ended   bool          // the writer closed: EOF once buf is read
	unread  bool          // the reader closed: nobody will ever read
	readBy  time.Time     // the reader's deadline
	writeBy time.Time     // the writer's deadline
	changed chan struct{} // closed and replaced whenever a field above changes
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

// update changes the stream and wakes its reader.
func (s *stream) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// take moves buffered bytes to p. When there are none yet it returns a channel
// that is closed at the next change, and the deadline to wait until.
func (s *stream) take(p []byte) (n int, changed <-chan struct{}, by time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.unread:
		return 0, nil, by, net.ErrClosed
	case !s.readBy.IsZero() && !time.Now().Before(s.readBy):
		return 0, nil, by, os.ErrDeadlineExceeded
	case len(s.buf) > 0:
		n = copy(p, s.buf)
		s.buf = s.buf[n:]
		return n, nil, by, nil
	case s.ended:
		return 0, nil, by, io.EOF
	}
	return 0, s.changed, s.readBy, nil
}

func (e *end) Read(p []byte) (int, error) {
	for {
		n, changed, by, err := e.in.take(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		if by.IsZero() {
			<-changed
			continue
		}
		expired := time.NewTimer(time.Until(by))
		select {
		case <-changed:
		case <-expired.C:
		}
		expired.Stop()
	}
}

func (e *end) Write(p []byte) (n int, err error) {
	e.out.update(func() {
		switch {
		case e.out.ended:
			err = net.ErrClosed
		case e.out.unread:
			err = &net.OpError{Op: "write", Net: "pipe", Err: syscall.EPIPE}
		case !e.out.writeBy.IsZero() && !time.Now().Before(e.out.writeBy):
			err = os.ErrDeadlineExceeded
		default:
			e.out.buf = append(e.out.buf, p...)
			n = len(p)
		}
	})
	return n, err
}

// CloseWrite lets the other end read what was written, then EOF.
func (e *end) CloseWrite() error {
	e.out.update(func() { e.out.ended = true })
	return nil
}

// Close ends both directions. What was written before can still be read by the other end, as with TCP.
func (e *end) Close() error {
	e.in.update(func() { e.in.unread, e.in.buf = true, nil })
	return e.CloseWrite()
}

func (e *end) SetDeadline(t time.Time) error {
	_ = e.SetReadDeadline(t)
	return e.SetWriteDeadline(t)
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.in.update(func() { e.in.readBy = t })
	return nil
}

func (e *end) SetWriteDeadline(t time.Time) error {
	e.out.update(func() { e.out.writeBy = t })
	return nil
}

func (e *end) LocalAddr() net.Addr  { return pipeAddr{} }
func (e *end) RemoteAddr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// refused is what a dial gets while a network is cut: the error of a host that
// answers with a reset, so that clients take the paths they take in production.
func refused(network string) error {
	return &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}
