package contract_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// diskFull is what a server says that cannot write its snapshot, until it can again.
const diskFull = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."

// TestAFullDiskIsWaitedOut: a waiter keeps its place, and an Unlock is confirmed,
// though the server refuses writes for a while.
// Fails when MISCONF is taken for an error that asking again does not end.
func TestAFullDiskIsWaitedOut(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		full := func(n int) {
			x.Server.FailNext(n, diskFull, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
		}
		l, other := x.Lock("a"), x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		waiter := rig.Beside(func() error { return other.Lock(t.Context()) })
		rig.StillWaits(t, waiter)
		full(4)
		time.Sleep(25 * time.Second) // renewals and heartbeats are due every 10 s
		rig.StillWaits(t, waiter)
		full(4)
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, waiter))
		rig.Must(t, other.Unlock())
		x.Frees("a")
	})
}

// Fails when the pauses of a request that has never been answered grow beyond a third of
// the lease: one that is under way when Redis answers again is waited out.
func TestARequestThatFailsIsRepeatedAsOftenAsAWaiterAsks(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		var full atomic.Bool
		full.Store(true)
		x.Server.FailNext(1_000_000, diskFull, func(args []string) bool { return full.Load() && rig.ScriptSent(args) == "acquire" })
		waiter := x.Begin(a.NewLock("l", relock.TTL(600*time.Millisecond)))
		x.Until(10 * time.Second)
		if n := a.Sent("acquire"); n < 50 || n > 130 {
			t.Errorf("it has asked %d times in 10 s, want every 100 to 200 ms", n)
		}
		full.Store(false)
		waiter.Returns()
		if waiter.At > 10*time.Second+200*time.Millisecond {
			t.Errorf("it holds at %v, want within 200 ms of when Redis can write", waiter.At)
		}
	})
}
