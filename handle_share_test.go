package relock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
)

// A downgrade and the unlock of its read hold come before the Lock has returned that
// took it: what Unlock is for was written under the writing side's mutex, and read
// under the reading side's.
// Fails under the race detector without the fix: a hold is what it is from the start.
func TestHoldMovedWhileItsLockReturnsIsNoRace(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		acquired, moved := make(chan bool), make(chan bool)
		c := x.client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) {
			acquired <- true
			<-moved
		}}))
		rw := c.NewRWLock("a", relock.Owner("me"), relock.LocalReentry())
		for range 20 {
			locked := beside(func() error { return rw.Lock(t.Context()) })
			<-acquired
			noErr(t, rw.Downgrade(t.Context()))
			moved <- true
			noErr(t, rw.RUnlock())
			noErr(t, <-locked)
		}
	})
}

// Nobody can tell whose hold an Unlock of a shared handle ends, where the holds have no
// names: a loss is told to whoever is first. Holds and handles of their own know better.
func TestLossOfAnAnonymousReaderIsToldToTheFirstRUnlock(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		shared := c.NewRWLock("a", relock.NoWatchdog())
		noErr(t, shared.RLock(t.Context()))
		own := c.NewRWLock("a", relock.NoWatchdog())
		noErr(t, own.RLock(t.Context()))
		h := acquire(t, own.RLocker(), t.Context())
		time.Sleep(20 * time.Second)
		noErr(t, shared.RLock(t.Context())) // by another goroutine
		time.Sleep(20 * time.Second)
		wantHolds(t, shared.RLocker(), 1)
		wantIs(t, shared.RUnlock(), relock.ErrLost)
		noErr(t, shared.RUnlock())
		wantIs(t, shared.RUnlock(), relock.ErrNotHeld)
		wantIs(t, h.Release(), relock.ErrLost)
		wantIs(t, own.RUnlock(), relock.ErrLost)
	})
}

// A nested unlock that the server refuses is not tried again, and said that it was.
// Fails without the fix: the words are those of a release that is refused.
func TestNestedUnlockThatIsRefusedSaysSo(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		rw := c.NewRWLock("a", relock.Owner("me"))
		noErr(t, rw.RLock(t.Context()))
		noErr(t, rw.RLock(t.Context()))
		x.srv.FailNext(1, "NOPERM this user has no permissions to run the 'evalsha' command", func(args []string) bool { return args[0] == "evalsha" })
		n := commandsDuring(link.Commands, func() {
			err := rw.RUnlock()
			wantIs(t, err, relock.ErrUnconfirmed)
			if text := err.Error(); strings.Contains(text, "within") || !strings.Contains(text, "and will not be") || !strings.Contains(text, "NOPERM") {
				t.Errorf("%v, want it to say that nobody tries again, and why", err)
			}
			synctest.Wait()
		})
		if n != 1 {
			t.Errorf("%d scripts, want 1", n)
		}
		time.Sleep(15 * time.Second) // the next renewal states what is left
		x.holders(rw.RLocker(), "me", 1)
		noErr(t, rw.RUnlock())
		x.frees("a")
	})
}

// Fails without the fix: an unlock that a Close cuts short does not promise to go on.
func TestUnlockThatCloseCutsShortSaysSo(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, rw *relock.RWLock){
		"last":   func(*testing.T, *relock.RWLock) {},
		"nested": func(t *testing.T, rw *relock.RWLock) { noErr(t, rw.RLock(t.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, x *lab) {
				c, link := x.linked()
				rw := c.NewRWLock("a", relock.Owner("me"))
				noErr(t, rw.RLock(t.Context()))
				prepare(t, rw)
				link.Hole()
				unlock := beside(rw.RUnlock)
				time.Sleep(3 * time.Second)
				noErr(t, c.Close())
				err := <-unlock
				wantIs(t, err, relock.ErrClosed)
				if strings.Contains(err.Error(), "goes on") {
					t.Errorf("%v of a client that is closed", err)
				}
			})
		})
	}
}

// Fails without the fix: a nested hold that asks for replicas joins none that asks
// for fewer without asking Redis.
func TestLocalReentryAsksRedisForItsReplicas(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		outer := c.NewLock("a", relock.LocalReentry())
		inner := c.NewLock("a", relock.LocalReentry(), relock.Replicas(1, time.Second))
		noErr(t, outer.Lock(x.by("me")))
		wantIs(t, inner.Lock(x.by("me")), relock.ErrReplicas)
		wantHolds(t, inner, 0)
		synctest.Wait()
		x.holders(outer, "me", 1)
		noErr(t, outer.Unlock())
		x.frees("a")
	})
}
