package relock_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
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
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l, other := c.NewLock("a", relock.LocalReentry()), c.NewLock("a", relock.LocalReentry())
		noErr(t, l.Lock(x.by("me")))
		n := commandsDuring(link.Commands, func() {
			for range 3 {
				noErr(t, l.Lock(x.by("me")))
				noErr(t, other.Lock(x.by("me")))
			}
			for range 3 {
				noErr(t, other.Unlock())
				noErr(t, l.Unlock())
			}
		})
		if n != 0 {
			t.Errorf("%d commands for nested holds, want none", n)
		}
		if l.HoldCount() != 1 || other.HoldCount() != 0 {
			t.Errorf("holds %d and %d, want 1 and 0", l.HoldCount(), other.HoldCount())
		}
		x.holders(l, "me", 1)
		noErr(t, l.Unlock())
		x.frees("a")
	})
}

func TestLocalReentryKeepsTheLockUntilTheLastHoldEndsInAnyOrder(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.LocalReentry())
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}} {
			var holds []*relock.Hold
			for range 3 {
				holds = append(holds, acquire(t, l, x.by("me")))
			}
			for n, i := range order {
				x.holders(l, "me", 1)
				x.refuses(x.lock("a"))
				noErr(t, holds[i].Release())
				if got := l.HoldCount(); got != 2-n {
					t.Errorf("%v: %d holds after %d releases", order, got, n+1)
				}
			}
			x.frees("a")
		}
	})
}

func TestLocalHoldIsRenewedAfterItsOuterHoldEnded(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.LocalReentry(), relock.TTL(time.Second))
		outer, inner := acquire(t, l, x.by("me")), acquire(t, l, x.by("me"))
		noErr(t, outer.Release())
		time.Sleep(time.Minute)
		noErr(t, inner.Err())
		x.refuses(x.lock("a"))
		noErr(t, inner.Release())
		x.frees("a")
	})
}

func TestWithoutLocalReentryTheCountInRedisIsExact(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		local, exact := c.NewLock("a", relock.LocalReentry()), c.NewLock("a")
		noErr(t, exact.Lock(x.by("me")))
		noErr(t, local.Lock(x.by("me")))
		x.holders(exact, "me", 1)
		noErr(t, exact.Lock(x.by("me")))
		x.holders(exact, "me", 2)
		noErr(t, exact.Unlock())
		noErr(t, exact.Unlock())
		x.holders(exact, "me", 1) // the local one stands alone now
		noErr(t, exact.Lock(x.by("me")))
		x.holders(exact, "me", 1) // it stands behind this one again
		noErr(t, exact.Unlock())
		x.refuses(x.lock("a"))
		noErr(t, local.Unlock())
		x.frees("a")
	})
}

func TestLocalReentryAsksRedisForOtherTerms(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{
		"longer TTL":  {relock.TTL(time.Minute)},
		"no watchdog": {relock.NoWatchdog()},
		"max hold":    {relock.MaxHold(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, x *lab) {
				c := x.client()
				outer := c.NewLock("a", relock.LocalReentry())
				inner := c.NewLock("a", append(opts, relock.LocalReentry())...)
				noErr(t, outer.Lock(x.by("me")))
				noErr(t, inner.Lock(x.by("me")))
				x.holders(outer, "me", 2)
				noErr(t, outer.Unlock())
				x.holders(inner, "me", 1)
				noErr(t, inner.Unlock())
				x.frees("a")

				noErr(t, inner.Lock(x.by("me"))) // nor does it join such a hold, unless that is longer
				noErr(t, outer.Lock(x.by("me")))
				want := 2
				if name == "longer TTL" {
					want = 1
				}
				x.holders(outer, "me", want)
				noErr(t, inner.Unlock())
				noErr(t, outer.Unlock())
				x.frees("a")
			})
		})
	}
}

func TestLocalReentryJoinsTheSameModeOnly(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		rw := c.NewRWLock("a", relock.LocalReentry())
		noErr(t, rw.Lock(x.by("me")))
		noErr(t, rw.RLock(x.by("me"))) // so that the server knows the scripts
		noErr(t, rw.RUnlock())
		if n := commandsDuring(link.Commands, func() { noErr(t, rw.RLock(x.by("me"))) }); n != 1 {
			t.Errorf("%d commands to read while writing, want 1", n)
		}
		n := commandsDuring(link.Commands, func() {
			noErr(t, rw.Lock(x.by("me")))
			noErr(t, rw.RLock(x.by("me")))
			noErr(t, rw.RUnlock())
		})
		if n != 0 {
			t.Errorf("%d commands for nested holds of both modes, want none", n)
		}
		noErr(t, rw.Unlock())
		readers := c.NewRWLock("a")
		ok, err := readers.TryRLock(x.by("you"), 0)
		noErr(t, err)
		if ok {
			t.Fatal("another reads beside a writer")
		}
		noErr(t, rw.Unlock()) // the last write hold: others read from now on
		noErr(t, readers.RLock(x.by("you")))
		noErr(t, readers.RUnlock())
		noErr(t, rw.RUnlock())
		noErr(t, rw.Lock(x.by("you")))
		noErr(t, rw.Unlock())
	})
}

func TestLocalHoldsAreLostWithTheirSession(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.LocalReentry(), relock.TTL(time.Second))
		outer, inner := acquire(t, l, x.by("me")), acquire(t, l, x.by("me"))
		heal := x.srv.Partition()
		time.Sleep(800 * time.Millisecond)
		// Renewals fail, and little of the lease is left: no local answer any more.
		ok, err := l.TryLock(x.by("me"), 0)
		if ok || err == nil {
			t.Errorf("nested hold on a lease that runs out: %v, %v", ok, err)
		}
		time.Sleep(time.Second)
		for _, h := range []*relock.Hold{outer, inner} {
			wantIs(t, h.Err(), relock.ErrLost)
			if !isShut(h.Lost()) {
				t.Error("Lost is open")
			}
		}
		heal()
		wantIs(t, inner.Release(), relock.ErrLost)
		wantIs(t, outer.Release(), relock.ErrLost)
		time.Sleep(20 * time.Second)
		noErr(t, l.Lock(x.by("me")))
		noErr(t, l.Unlock())
		x.frees("a")
	})
}

func TestSuspendedHolderDoesNotReenterLocally(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.LocalReentry(), relock.TTL(time.Second))
		outer, inner := acquire(t, l, x.by("me")), acquire(t, l, x.by("me"))
		x.suspend(2 * time.Second)
		if _, err := l.Acquire(x.by("me")); err == nil {
			t.Error("re-entered a hold whose lease has ended")
		}
		wantIs(t, inner.Release(), relock.ErrLost)
		wantIs(t, outer.Release(), relock.ErrLost)
	})
}

func TestLocalReentryCallsTheHooksOfEveryHold(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		var acquired, released int
		c := x.client(relock.Trace(relock.Hooks{
			Acquired: func(_ context.Context, ev relock.Event) { acquired++ },
			Released: func(relock.Event) { released++ },
		}))
		l := c.NewLock("a", relock.LocalReentry())
		for range 3 {
			noErr(t, l.Lock(x.by("me")))
		}
		for range 3 {
			noErr(t, l.Unlock())
		}
		wantIs(t, l.Unlock(), relock.ErrNotHeld)
		if acquired != 3 || released != 3 {
			t.Errorf("%d acquired, %d released, want 3 each", acquired, released)
		}
	})
}
