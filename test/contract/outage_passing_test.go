package contract_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
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
		virtual.Sleep(25 * time.Second) // renewals and heartbeats are due every 10 s
		rig.StillWaits(t, waiter)
		full(4)
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, waiter))
		rig.Must(t, other.Unlock())
		x.Frees("a")
	})
}

// Fails when the pauses of a waiter that is not answered grow beyond a third of the lease: one
// that is under way when Redis answers again is waited out.
func TestAWaiterThatIsNotAnsweredAsksAsOftenAsOneThatIs(t *testing.T) {
	for what, from := range map[string]time.Duration{"its first request": 0, "its heartbeats": time.Second} {
		t.Run(what, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				a, held := x.Actor(), x.Take(x.Lock("l"))
				var full atomic.Bool
				x.Server.FailNext(1_000_000, diskFull, func(args []string) bool { return full.Load() && rig.ScriptSent(args) == "acquire" })
				full.Store(from == 0)
				waiter := x.Begin(a.NewLock("l", relock.TTL(600*time.Millisecond)))
				x.Until(from)
				full.Store(true)
				before := a.Sent("acquire")
				x.Until(from + 10*time.Second)
				if n := a.Sent("acquire") - before; n < 50 || n > 130 {
					t.Errorf("it has asked %d times in 10 s, want every 100 to 200 ms", n)
				}
				rig.End(t, held)
				full.Store(false)
				waiter.Returns()
				if waiter.At > from+10*time.Second+200*time.Millisecond {
					t.Errorf("it holds at %v, want within 200 ms of when Redis can write", waiter.At)
				}
			})
		})
	}
}

// The inbox is heard again while a heartbeat is under way, which fails: nothing that was sent
// meanwhile has been heard. Fails when the waiter pauses first, as after so many failures.
func TestAWaiterThatHearsAgainAsksAtOnceThoughAHeartbeatFails(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		const fails = 9
		a, held := x.Actor(), x.Take(x.Lock("l"))
		waiter := x.Begin(a.NewLock("l"))
		x.Until(time.Second)
		var asked atomic.Int32
		last, gate := make(chan struct{}), make(chan struct{})
		x.Server.FailNext(fails, diskFull, func(args []string) bool { return rig.ScriptSent(args) == "acquire" })
		a.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.ScriptSent(cmd.Args) == "acquire" && asked.Add(1) == fails {
				close(last)
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		<-last
		x.Server.KillSubscribers()
		x.Until(x.Now() + time.Second)
		close(gate)
		synctest.Wait()
		if n := asked.Load(); n != fails+1 {
			t.Errorf("it has asked %d times, want %d and another at once", n, fails)
		}
		rig.End(t, held)
		rig.End(t, waiter.Holds())
	})
}
