package transport

import (
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
)

const (
	minSpinCalls = 2 // if so many calls are under way, but fewer than manyCalls, a read spins

	// A spin that finds nothing costs spinTime of a core. After maxMisses of these in a row the server is too far away, or
	// has no core to itself. Then the next skippedReads reads do not spin.
	maxMisses    = 8
	skippedReads = 32
)

// A spinner reads from a stream's connection. With a few calls under way, a read first lets the callers run that have
// got their replies. Then it polls the socket for a while before it blocks, because waking a blocked thread costs more
// than most of these waits take. It does not spin for a single call, which would pay with CPU each time. Nor does it
// spin for many calls: then replies come all the time, and the callers need the core.
type spinner struct {
	conn net.Conn
	raw  syscall.RawConn // of conn; nil: reads never spin
	load *atomic.Int32   // calls under way

	// Only for the goroutine that reads:

	misses int // spins in a row that found nothing
	skip   int // how many reads must not spin
}

// newSpinner makes a spinner for conn. It spins on plain sockets only: a connection that wraps a socket, as TLS does,
// may change the bytes that it reads from the socket.
func newSpinner(conn net.Conn, load *atomic.Int32) *spinner {
	p := &spinner{conn: conn, load: load}
	switch c := conn.(type) {
	case *net.TCPConn:
		p.raw, _ = c.SyscallConn()
	case *net.UnixConn:
		p.raw, _ = c.SyscallConn()
	}
	return p
}

// Read waits until it can read at least one byte.
func (p *spinner) Read(b []byte) (int, error) {
	if n := p.load.Load(); p.raw == nil || n < minSpinCalls || n >= manyCalls {
		return p.conn.Read(b)
	}
	if p.skip > 0 {
		p.skip--
		return p.conn.Read(b)
	}
	runtime.Gosched()
	if n := spinRead(p.raw, b); n > 0 {
		p.misses = 0
		return n, nil
	}
	if p.misses++; p.misses >= maxMisses {
		p.misses, p.skip = maxMisses-1, skippedReads // after the pause, one more miss is enough
	}
	return p.conn.Read(b)
}
