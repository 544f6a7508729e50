//go:build unix

package transport

import (
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
// connection has ended or its deadline is over, which a read tells that waits.
func look(raw syscall.RawConn, b []byte) (n int) {
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
