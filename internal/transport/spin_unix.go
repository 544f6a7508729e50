//go:build unix

package transport

import (
	"net"
	"syscall"
	"time"
)

const (
	// spinTime is how long who reads looks for a reply before it sleeps. A server beside us
	// answers in less, and to wake a thread costs both sides more.
	spinTime = 50 * time.Microsecond
	// maxLooks bounds that as well, where the clock stands still: in a test with virtual time.
	maxLooks = 1000
)

// look reads what comes within spinTime. It returns 0 where nothing has, and where the
// connection is to say what is wrong, or cannot be looked at: it is one of TLS.
func look(c net.Conn, b []byte) (n int) {
	asked, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := asked.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Read(func(fd uintptr) bool {
		began := time.Now()
		for range maxLooks {
			n, err = syscall.Read(int(fd), b)
			if err != syscall.EAGAIN && err != syscall.EINTR || time.Since(began) > spinTime {
				break
			}
		}
		return true
	})
	return max(n, 0)
}
