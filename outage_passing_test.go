package relock_test

import (
	"testing"
	"time"
)

// diskFull is what a server says that cannot write its snapshot, until it can again.
const diskFull = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."

// TestAFullDiskIsWaitedOut: a waiter keeps its place, and an Unlock is confirmed,
// though the server refuses writes for a while.
// Fails when MISCONF is taken for an error that asking again does not end.
func TestAFullDiskIsWaitedOut(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		full := func(n int) {
			x.srv.FailNext(n, diskFull, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
		}
		l, other := x.lock("a"), x.lock("a")
		noErr(t, l.Lock(t.Context()))
		waiter := beside(func() error { return other.Lock(t.Context()) })
		stillWaits(t, waiter)
		full(4)
		time.Sleep(25 * time.Second) // renewals and heartbeats are due every 10 s
		stillWaits(t, waiter)
		full(4)
		noErr(t, l.Unlock())
		noErr(t, hasReturned(t, waiter))
		noErr(t, other.Unlock())
		x.frees("a")
	})
}
