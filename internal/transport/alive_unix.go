//go:build unix

package transport

import (
	"net"
	"syscall"
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
