package transport

import (
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
)

const (
	fewest = 2 // callers for which a spinner looks; below crowd

	// A look that finds nothing costs spinTime of a core. After so many in a row the server
	// is too far away, or has no core, and only one read in so many looks again.
	maxMisses = 8
	unlooked  = 32
)

// A spinner reads from a stream's connection for all its callers. With a few of them under way
// it first lets those run who have their replies, and then looks for the next ones for a while
// before it sleeps, because waking its thread would cost more than most of these waits take.
// It does not look for a single caller, who would pay with CPU for every call, nor for a crowd,
// in which replies come all the time and the core is of more use to the callers.
type spinner struct {
	conn net.Conn
	raw  syscall.RawConn // of conn; nil: it cannot be looked at
	load *atomic.Int32   // calls under way

	// Of who reads:

	misses int // looks in a row that found nothing
	skip   int // so many reads do not look
}

// newSpinner looks at sockets alone. What has a socket inside may change what comes from it,
// as TLS does.
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

// Read returns what has come, and waits for it.
func (p *spinner) Read(b []byte) (int, error) {
	if n := p.load.Load(); p.raw == nil || n < fewest || n >= crowd {
		return p.conn.Read(b)
	}
	if p.skip > 0 {
		p.skip--
		return p.conn.Read(b)
	}
	runtime.Gosched()
	if n := look(p.raw, b); n > 0 {
		p.misses = 0
		return n, nil
	}
	if p.misses++; p.misses >= maxMisses {
		p.misses, p.skip = maxMisses-1, unlooked
	}
	return p.conn.Read(b)
}
