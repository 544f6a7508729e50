package contract_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// commandsDuring is how many scripts a link carries while f runs.
func commandsDuring(x func() map[string]int, f func()) (n int) {
	before := total(x())
	f()
	return total(x()) - before
}

func total(commands map[string]int) (n int) {
	for name, count := range commands {
		if name == "EVALSHA" || name == "EVAL" || name == "evalsha" || name == "eval" {
			n += count
		}
	}
	return n
}

func TestLocalReentryNeedsNoCommand(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l, other := c.NewLock("a", relock.LocalReentry()), c.NewLock("a", relock.LocalReentry())
		rig.Must(t, l.Lock(x.By("me")))
		n := commandsDuring(link.Commands, func() {
			for range 3 {
				rig.Must(t, l.Lock(x.By("me")))
				rig.Must(t, other.Lock(x.By("me")))
			}
			for range 3 {
				rig.Must(t, other.Unlock())
				rig.Must(t, l.Unlock())
			}
		})
		if n != 0 {
			t.Errorf("%d commands for nested holds, want none", n)
		}
		if l.HoldCount() != 1 || other.HoldCount() != 0 {
			t.Errorf("holds %d and %d, want 1 and 0", l.HoldCount(), other.HoldCount())
		}
		x.Holders(l, "me", 1)
		rig.Must(t, l.Unlock())
		x.Frees("a")
	})
}

func TestLocalReentryKeepsTheLockUntilTheLastHoldEndsInAnyOrder(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.LocalReentry())
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}} {
			var holds []*relock.Hold
			for range 3 {
				holds = append(holds, acquire(t, l, x.By("me")))
			}
			for n, i := range order {
				x.Holders(l, "me", 1)
				x.Refuses(x.Lock("a"))
				rig.Must(t, holds[i].Release())
				if got := l.HoldCount(); got != 2-n {
					t.Errorf("%v: %d holds after %d releases", order, got, n+1)
				}
			}
			x.Frees("a")
		}
	})
}

func TestLocalHoldIsRenewedAfterItsOuterHoldEnded(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.LocalReentry(), relock.TTL(time.Second))
		outer, inner := acquire(t, l, x.By("me")), acquire(t, l, x.By("me"))
		rig.Must(t, outer.Release())
		virtual.Sleep(time.Minute)
		rig.Must(t, inner.Err())
		x.Refuses(x.Lock("a"))
		rig.Must(t, inner.Release())
		x.Frees("a")
	})
}

func TestWithoutLocalReentryTheCountInRedisIsExact(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		local, exact := c.NewLock("a", relock.LocalReentry()), c.NewLock("a")
		rig.Must(t, exact.Lock(x.By("me")))
		rig.Must(t, local.Lock(x.By("me")))
		x.Holders(exact, "me", 1)
		rig.Must(t, exact.Lock(x.By("me")))
		x.Holders(exact, "me", 2)
		rig.Must(t, exact.Unlock())
		rig.Must(t, exact.Unlock())
		x.Holders(exact, "me", 1) // the local one stands alone now
		rig.Must(t, exact.Lock(x.By("me")))
		x.Holders(exact, "me", 1) // it stands behind this one again
		rig.Must(t, exact.Unlock())
		x.Refuses(x.Lock("a"))
		rig.Must(t, local.Unlock())
		x.Frees("a")
	})
}

func TestLocalReentryAsksRedisForOtherTerms(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{
		"longer TTL":  {relock.TTL(time.Minute)},
		"no watchdog": {relock.NoWatchdog()},
		"max hold":    {relock.MaxHold(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := x.Client()
				outer := c.NewLock("a", relock.LocalReentry())
				inner := c.NewLock("a", append(opts, relock.LocalReentry())...)
				rig.Must(t, outer.Lock(x.By("me")))
				rig.Must(t, inner.Lock(x.By("me")))
				x.Holders(outer, "me", 2)
				rig.Must(t, outer.Unlock())
				x.Holders(inner, "me", 1)
				rig.Must(t, inner.Unlock())
				x.Frees("a")

				rig.Must(t, inner.Lock(x.By("me"))) // nor does it join such a hold, unless that is longer
				rig.Must(t, outer.Lock(x.By("me")))
				want := 2
				if name == "longer TTL" {
					want = 1
				}
				x.Holders(outer, "me", want)
				rig.Must(t, inner.Unlock())
				rig.Must(t, outer.Unlock())
				x.Frees("a")
			})
		})
	}
}

func TestLocalReentryJoinsTheSameModeOnly(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		rw := c.NewRWLock("a", relock.LocalReentry())
		rig.Must(t, rw.Lock(x.By("me")))
		rig.Must(t, rw.RLock(x.By("me"))) // so that the server knows the scripts
		rig.Must(t, rw.RUnlock())
		if n := commandsDuring(link.Commands, func() { rig.Must(t, rw.RLock(x.By("me"))) }); n != 1 {
			t.Errorf("%d commands to read while writing, want 1", n)
		}
		n := commandsDuring(link.Commands, func() {
			rig.Must(t, rw.Lock(x.By("me")))
			rig.Must(t, rw.RLock(x.By("me")))
			rig.Must(t, rw.RUnlock())
		})
		if n != 0 {
			t.Errorf("%d commands for nested holds of both modes, want none", n)
		}
		rig.Must(t, rw.Unlock())
		readers := c.NewRWLock("a")
		ok, err := readers.TryRLock(x.By("you"), 0)
		rig.Must(t, err)
		if ok {
			t.Fatal("another reads beside a writer")
		}
		rig.Must(t, rw.Unlock()) // the last write hold: others read from now on
		rig.Must(t, readers.RLock(x.By("you")))
		rig.Must(t, readers.RUnlock())
		rig.Must(t, rw.RUnlock())
		rig.Must(t, rw.Lock(x.By("you")))
		rig.Must(t, rw.Unlock())
	})
}

func TestLocalHoldsAreLostWithTheirSession(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.LocalReentry(), relock.TTL(time.Second))
		outer, inner := acquire(t, l, x.By("me")), acquire(t, l, x.By("me"))
		heal := x.Server.Partition()
		virtual.Sleep(700 * time.Millisecond)
		// Renewals fail, and less than a third of the lease is left: no local answer any more.
		ok, err := l.TryLock(x.By("me"), 0)
		if ok || err == nil {
			t.Errorf("nested hold on a lease that runs out: %v, %v", ok, err)
		}
		virtual.Sleep(time.Second)
		for _, h := range []*relock.Hold{outer, inner} {
			rig.WantIs(t, h.Err(), relock.ErrLost)
			if !rig.IsShut(h.Lost()) {
				t.Error("Lost is open")
			}
		}
		heal()
		rig.WantIs(t, inner.Release(), relock.ErrLost)
		rig.WantIs(t, outer.Release(), relock.ErrLost)
		virtual.Sleep(20 * time.Second)
		rig.Must(t, l.Lock(x.By("me")))
		rig.Must(t, l.Unlock())
		x.Frees("a")
	})
}

func TestSuspendedHolderDoesNotReenterLocally(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.LocalReentry(), relock.TTL(time.Second))
		outer, inner := acquire(t, l, x.By("me")), acquire(t, l, x.By("me"))
		x.Suspend(2 * time.Second)
		if _, err := l.Acquire(x.By("me")); err == nil {
			t.Error("re-entered a hold whose lease has ended")
		}
		rig.WantIs(t, inner.Release(), relock.ErrLost)
		rig.WantIs(t, outer.Release(), relock.ErrLost)
	})
}

func TestLocalReentryCallsTheHooksOfEveryHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var acquired, released int
		c := x.Client(relock.Trace(relock.Hooks{
			Acquired: func(_ context.Context, ev relock.Event) { acquired++ },
			Released: func(relock.Event) { released++ },
		}))
		l := c.NewLock("a", relock.LocalReentry())
		for range 3 {
			rig.Must(t, l.Lock(x.By("me")))
		}
		for range 3 {
			rig.Must(t, l.Unlock())
		}
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		if acquired != 3 || released != 3 {
			t.Errorf("%d acquired, %d released, want 3 each", acquired, released)
		}
	})
}
