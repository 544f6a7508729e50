package contract_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Fails when the function is looked at only once the lock is held: a lock that is taken would hide that it is nil.
func TestTryDoOfNoFunctionIsRefusedThoughTheLockIsTaken(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		held := rig.MustAcquire(t, x.Lock("l"))
		for _, wait := range []time.Duration{0, time.Second} {
			began := x.Now()
			ran, err := x.Lock("l").TryDo(t.Context(), wait, nil)
			if rig.WantIs(t, err, relock.ErrInvalidOption); ran || x.Now() != began {
				t.Errorf("TryDo(%v) of a nil function: ran %v, after %v", wait, ran, x.Now()-began)
			}
		}
		rig.End(t, held)
	})
}

// Fails when the token of a lost hold is taken for none.
func TestTokenOfAQuorumLockIsThatOfALostHoldToo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := newPrimaries(x, 3).lock("a", relock.NoWatchdog())
		rig.Must(t, l.Lock(t.Context()))
		token := l.Token()
		<-l.Lost()
		if token == 0 || l.Token() != token || l.HoldCount() != 0 {
			t.Errorf("token %d and %d holds after the loss, before it was %d", l.Token(), l.HoldCount(), token)
		}
		if rig.WantIs(t, l.Unlock(), relock.ErrLost); l.Token() != 0 {
			t.Errorf("token %d of a handle without a hold", l.Token())
		}
	})
}

// Fails when a re-entry is told as held since its owner's first hold.
func TestHeldOfAHookIsOfTheHoldAndNotOfItsGrant(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var r record
		l, me := x.Client(r.trace()).NewLock("a"), called(t, "me")
		rig.Must(t, l.Lock(me))
		virtual.Sleep(3 * time.Second)
		rig.Must(t, l.Lock(me))
		acquired := "acquired a me token=true waited=0s held=0s err=<nil>"
		r.saw(t, acquired, acquired)
		virtual.Sleep(2 * time.Second)
		rig.Must(t, l.Unlock())
		virtual.Sleep(time.Second)
		rig.Must(t, l.Unlock())
		r.saw(t, "released a me token=true waited=0s held=2s err=<nil>", "released a me token=true waited=0s held=6s err=<nil>")
	})
}

// Fails when what a hold lasted before its wait is told as held after it.
func TestHeldOfAHookBeginsAgainAfterAWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var held time.Duration
		l := x.Client(relock.Trace(relock.Hooks{Released: func(e relock.Event) { held = e.Held }})).NewLock("a")
		rig.Must(t, l.Lock(x.By("me")))
		virtual.Sleep(3 * time.Second)
		_, err := l.NewCond("c").WaitFor(x.By("me"), 2*time.Second)
		rig.Must(t, err)
		virtual.Sleep(4 * time.Second)
		rig.Must(t, l.Unlock())
		if held != 4*time.Second {
			t.Errorf("the hook was told of %v, want the 4 s since the wait", held)
		}
	})
}

// A writer that also reads has one lease for both.
// Fails when its renewal is told of the older hold, or a failed one is.
func TestHooksOfARenewalGetTheNewestHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		told := make(chan string, 100)
		tells := func(what string) func(relock.Event) {
			return func(e relock.Event) { told <- fmt.Sprint(what, " read=", e.Read) }
		}
		c, link := x.Linked(relock.Trace(relock.Hooks{Renewed: tells("renewed"), RenewalFailed: tells("failed")}))
		l := c.NewRWLock("a")
		rig.Must(t, l.Lock(x.By("me")))
		rig.Must(t, l.RLock(x.By("me")))
		wants := func(want string) {
			t.Helper()
			if got := <-told; got != want {
				t.Errorf("the hook was told %q, want %q", got, want)
			}
		}
		wants("renewed read=true")
		heal := link.Cut()
		wants("failed read=true")
		heal()
		rig.Must(t, l.RUnlock())
		for len(told) > 0 {
			<-told
		}
		wants("renewed read=false")
		rig.Must(t, l.Unlock())
	})
}

// One of the waiters of the first page has died.
// Fails when a page that is not full of live waiters is taken for the last.
func TestALongQueueIsReadBeyondItsDead(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		const waiters, dies = 520, 250
		raw := rig.Raw{T: t, Redis: x.Redis, ID: "nobody"}
		held := x.Take(x.Lock("l", relock.NoWatchdog()))
		var want []string
		for i := range waiters {
			owner, ttl := fmt.Sprint("owner", i), time.Minute
			if i == dies {
				ttl = 5 * time.Second
			} else {
				want = append(want, owner)
			}
			raw.Ask(fmt.Sprintf("%022d", i), owner, ttl, 1, 0)
		}
		virtual.Sleep(6 * time.Second)
		x.Waits(x.Lock("l"), want...)
		rig.End(t, held)
	})
}

// Fails when a context of a hold that was handed over ends only once somebody asks it.
func TestDetachEndsTheContextsOfItsHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		h := rig.MustAcquire(t, c.NewLock("l"))
		ctx := h.Context(t.Context())
		ticket, err := h.Detach(t.Context(), time.Minute)
		rig.Must(t, err)
		if !rig.IsShut(ctx.Done()) {
			t.Error("the context of a hold that was handed over goes on")
		}
		again, err := c.Resume(t.Context(), ticket)
		rig.Must(t, err)
		rig.End(t, again)
	})
}

// The machine sleeps for longer than the lease.
// Fails when a loss that Unlock or Release finds is told to its caller only.
func TestALossThatItsUnlockFindsIsToldToTheHookAndTheLog(t *testing.T) {
	for how, end := range map[string]func(*relock.Lock, *relock.Hold) error{
		"Unlock":  func(l *relock.Lock, _ *relock.Hold) error { return l.Unlock() },
		"Release": func(_ *relock.Lock, h *relock.Hold) error { return h.Release() },
	} {
		t.Run(how, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				var r record
				var out lockedBuffer
				l := x.Client(r.trace(), relock.Logger(slog.New(slog.NewTextHandler(&out, nil)))).NewLock("a")
				h := acquire(t, l, called(t, "me"))
				x.Suspend(time.Minute)
				rig.WantIs(t, end(l, h), relock.ErrLost)
				r.saw(t, "acquired a me token=true waited=0s held=0s err=<nil>",
					"lost a me token=true waited=0s held=1m0s err=lost: its lease could not be renewed in time")
				if n := strings.Count(out.String(), "lock lost"); n != 1 {
					t.Errorf("the loss is in %d lines of the log, want 1:\n%s", n, out.String())
				}
			})
		})
	}
}

// Fails when either side waits longer than it was told, or less long.
func TestTryLockOfEitherSideWaitsForAsLongAsItWasTold(t *testing.T) {
	for side, try := range map[string]func(*relock.RWLock, context.Context, time.Duration) (bool, error){
		"read": (*relock.RWLock).TryRLock, "write": (*relock.RWLock).TryLock,
	} {
		t.Run(side, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				held := rig.MustAcquire(t, x.Client().NewRWLock("l").WLocker())
				for _, wait := range []time.Duration{-1, 0, time.Millisecond, 1500 * time.Millisecond, time.Minute} {
					began := x.Now()
					got, err := try(x.Client().NewRWLock("l"), t.Context(), wait)
					if took := x.Now() - began; got || err != nil || took != max(wait, 0) {
						t.Errorf("a try for %v = %v, %v after %v", wait, got, err, took)
					}
				}
				rig.End(t, held)
			})
		})
	}
}

// The machine sleeps for longer than the lease that two holds share.
// Fails when the Unlock that finds their loss tells of one of them only.
func TestAnUnlockThatFindsTheLossOfTwoHoldsTellsOfBoth(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var r record
		l := x.Client(r.trace()).NewLock("a")
		ctx := called(t, "me")
		rig.Must(t, l.Lock(ctx))
		rig.Must(t, l.Lock(ctx))
		x.Suspend(time.Minute)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		const acquired, lost = "acquired a me token=true waited=0s held=0s err=<nil>",
			"lost a me token=true waited=0s held=1m0s err=lost: its lease could not be renewed in time"
		r.saw(t, acquired, acquired, lost, lost)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		r.saw(t)
	})
}
