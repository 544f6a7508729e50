package contract_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A downgrade and the unlock of its read hold come before the Lock has returned that
// took it: what Unlock is for was written under the writing side's mutex, and read
// under the reading side's.
// Fails under the race detector without the fix: a hold is what it is from the start.
func TestHoldMovedWhileItsLockReturnsIsNoRace(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		acquired, moved := make(chan bool), make(chan bool)
		c := x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) {
			acquired <- true
			<-moved
		}}))
		rw := c.NewRWLock("a", relock.Owner("me"), relock.LocalReentry())
		for range 20 {
			locked := rig.Beside(func() error { return rw.Lock(t.Context()) })
			<-acquired
			rig.Must(t, rw.Downgrade(t.Context()))
			moved <- true
			rig.Must(t, rw.RUnlock())
			rig.Must(t, <-locked)
		}
	})
}

// Nobody can tell whose hold an Unlock of a shared handle ends, where the holds have no
// names: a loss is told to whoever is first. Holds and handles of their own know better.
func TestLossOfAnAnonymousReaderIsToldToTheFirstRUnlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		shared := c.NewRWLock("a", relock.NoWatchdog())
		rig.Must(t, shared.RLock(t.Context()))
		own := c.NewRWLock("a", relock.NoWatchdog())
		rig.Must(t, own.RLock(t.Context()))
		h := acquire(t, own.RLocker(), t.Context())
		virtual.Sleep(20 * time.Second)
		rig.Must(t, shared.RLock(t.Context())) // by another goroutine
		virtual.Sleep(20 * time.Second)
		wantHolds(t, shared.RLocker(), 1)
		rig.WantIs(t, shared.RUnlock(), relock.ErrLost)
		rig.Must(t, shared.RUnlock())
		rig.WantIs(t, shared.RUnlock(), relock.ErrNotHeld)
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.WantIs(t, own.RUnlock(), relock.ErrLost)
	})
}

// A nested unlock that the server refuses is not tried again, and said that it was.
// Fails without the fix: the words are those of a release that is refused.
func TestNestedUnlockThatIsRefusedSaysSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		rw := c.NewRWLock("a", relock.Owner("me"))
		rig.Must(t, rw.RLock(t.Context()))
		rig.Must(t, rw.RLock(t.Context()))
		x.Server.FailNext(1, "NOPERM this user has no permissions to run the 'evalsha' command", func(args []string) bool { return args[0] == "evalsha" })
		n := commandsDuring(link.Commands, func() {
			err := rw.RUnlock()
			rig.WantIs(t, err, relock.ErrUnconfirmed)
			if text := err.Error(); strings.Contains(text, "within") || !strings.Contains(text, "and will not be") || !strings.Contains(text, "NOPERM") {
				t.Errorf("%v, want it to say that nobody tries again, and why", err)
			}
			synctest.Wait()
		})
		if n != 1 {
			t.Errorf("%d scripts, want 1", n)
		}
		virtual.Sleep(15 * time.Second) // the next renewal states what is left
		x.Holders(rw.RLocker(), "me", 1)
		rig.Must(t, rw.RUnlock())
		x.Frees("a")
	})
}

// Fails when the caller of a Downgrade that Redis refuses cannot tell that the hold has changed.
func TestDowngradeThatIsRefusedSaysSo(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		rw := x.Client().NewRWLock("a", relock.Owner("me"))
		rig.Must(t, rw.Lock(t.Context()))
		refuseNext(x, "downgrade")
		err := rw.Downgrade(t.Context())
		rig.WantIs(t, err, relock.ErrUnconfirmed)
		wantSays(t, "Downgrade", err, "and will not be", "NOPERM")
		virtual.Sleep(15 * time.Second) // the next renewal states what is left
		rig.End(t, x.Take(x.Client().NewRWLock("a").RLocker()))
		rig.Must(t, rw.RUnlock())
	})
}

// refuseNext has Redis refuse the next call of a script.
func refuseNext(x *rig.Lab, script string) {
	x.Server.FailNext(1, "NOPERM this user has no permissions to run the 'evalsha' command", func(args []string) bool {
		return rig.ScriptSent(args) == script
	})
}

// Fails without the fix: an unlock that a Close cuts short does not promise to go on.
func TestUnlockThatCloseCutsShortSaysSo(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, rw *relock.RWLock){
		"last":   func(*testing.T, *relock.RWLock) {},
		"nested": func(t *testing.T, rw *relock.RWLock) { rig.Must(t, rw.RLock(t.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				rw := c.NewRWLock("a", relock.Owner("me"))
				rig.Must(t, rw.RLock(t.Context()))
				prepare(t, rw)
				link.Hole()
				unlock := rig.Beside(rw.RUnlock)
				virtual.Sleep(3 * time.Second)
				rig.Must(t, c.Close())
				err := <-unlock
				rig.WantIs(t, err, relock.ErrClosed)
				if err != nil && strings.Contains(err.Error(), "goes on") {
					t.Errorf("%v of a client that is closed", err)
				}
			})
		})
	}
}

// Fails without the fix: a nested hold that asks for replicas joins none that asks
// for fewer without asking Redis.
func TestLocalReentryAsksRedisForItsReplicas(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		outer := c.NewLock("a", relock.LocalReentry())
		inner := c.NewLock("a", relock.LocalReentry(), relock.Replicas(1, time.Second))
		rig.Must(t, outer.Lock(x.By("me")))
		rig.WantIs(t, inner.Lock(x.By("me")), relock.ErrReplicas)
		wantHolds(t, inner, 0)
		synctest.Wait()
		x.Holders(outer, "me", 1)
		rig.Must(t, outer.Unlock())
		x.Frees("a")
	})
}

// Fails when the error does not name the call that ends the hold.
func TestUnlockingTheOtherSideSaysWhichCallEndsTheHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw := x.Client().NewRWLock("a")
		for want, c := range map[string]struct {
			lock          func(context.Context) error
			wrong, unlock func() error
		}{
			"holds for reading: call RUnlock": {rw.RLock, rw.Unlock, rw.RUnlock},
			"holds for writing: call Unlock":  {rw.Lock, rw.RUnlock, rw.Unlock},
		} {
			rig.WantIs(t, c.wrong(), relock.ErrNotHeld)
			rig.Must(t, c.lock(t.Context()))
			err := c.wrong()
			rig.WantIs(t, err, relock.ErrNotHeld)
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
			rig.Must(t, c.unlock())
		}
	})
}

// The owner waits on a condition, so an Unlock for it is refused, and another owner reads by the handle. Fails when the
// error has the caller end that owner's hold.
func TestUnlockingASideWhoseOwnerWaitsNamesNoOtherCall(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, me := x.Client().NewRWLock("a"), x.By("me")
		rig.Must(t, rw.Lock(me))
		wait := rig.Beside(func() error { return rw.WLocker().NewCond("c").Wait(me) })
		rig.StillWaits(t, wait)
		rig.Must(t, rw.RLock(x.By("you")))
		err := rw.Unlock()
		rig.WantIs(t, err, relock.ErrNotHeld)
		if strings.Contains(err.Error(), "RUnlock") {
			t.Errorf("%v names the Unlock of another owner", err)
		}
		rig.WantIs(t, rig.Returned(t, wait), relock.ErrLost)
		rig.Must(t, rw.RUnlock())
		x.Free(x.Lock("a"))
	})
}
