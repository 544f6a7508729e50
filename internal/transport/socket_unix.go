//go:build unix

package transport

import (
	"net"
	"syscall"
	"time"
)

// quiet reports whether an idle connection has neither been closed by the server nor received data. It does not block.
// It returns true for a connection without a socket to check.
func quiet(c net.Conn) bool {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = over.NetConn()
	}
	asked, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := asked.SyscallConn()
	if err != nil {
		return false
	}
	var said error
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, said = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	return err == nil && (said == syscall.EAGAIN || said == syscall.EWOULDBLOCK || said == syscall.EINTR)
}

const (
	// spinTime is how long a read polls for a reply before it blocks. A server on the same machine answers in less
	// time, and waking a thread costs both sides more.
	spinTime = 50 * time.Microsecond
	// maxLooks bounds the polling in tests with virtual time, where the clock stands still.
	maxLooks = 1000
)

// spinRead polls for spinTime, and reads what comes. It returns 0 if nothing came, and also if the connection has ended
// or its deadline has passed: the blocking read that follows reports that.
func spinRead(raw syscall.RawConn, b []byte) (n int) {
	_ = raw.Read(func(fd uintptr) bool {
		began := time.Now()
		for range maxLooks {
			if n, _ = syscall.Read(int(fd), b); n >= 0 || time.Since(began) > spinTime {
				break
			}
		}
		return true
	})
	return max(n, 0)
}
