package contract_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Redis cannot be reached from before the release until long after the lease.
// Fails without the fix: who gives a release up forgets its session; then the room goes as well,
// and Shutdown has nothing to wait for.
func TestReleaseThatNeverSucceedsLeavesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("a", relock.TTL(time.Second))
		rig.Must(t, l.Lock(t.Context()))
		heal := x.Server.Partition()
		rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		virtual.Sleep(time.Minute)
		if left := rig.Remains(c); left != "" {
			t.Errorf("%s a minute after a lease of 1 s", left)
		}
		heal()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rig.Must(t, c.Shutdown(ctx))
	})
}

// Redis refuses the release with an error that it would repeat: missing
// permissions, or a key of another type. It was asked again for ReleaseTimeout.
// Fails without the fix: a refusal ends the release, as it ends a request.
func TestRefusedReleaseIsToldAtOnce(t *testing.T) {
	for _, text := range []string{
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"WRONGTYPE Operation against a key holding the wrong kind of value",
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := x.Linked()
			l := c.NewLock("a")
			rig.Must(t, l.Lock(t.Context()))
			releases := func() (n int) {
				for _, args := range link.Log() {
					if rig.ScriptSent(args) == "release" {
						n++
					}
				}
				return n
			}
			before, began := releases(), time.Now()
			x.Server.FailNext(1_000_000, text, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
			err := l.Unlock()
			rig.WantIs(t, err, relock.ErrUnconfirmed)
			if !mentions(err, text[:6]) || time.Since(began) > 0 {
				t.Errorf("%v after %v, want %s at once", err, time.Since(began), text)
			}
			virtual.Sleep(time.Minute)
			if n := releases() - before; n != 1 {
				t.Errorf("asked %d times", n)
			}
			if left := rig.Remains(c); left != "" {
				t.Error(left)
			}
		})
	}
}

// The data is gone, and two of three nested holds are unlocked at the same time.
// The second waits for the statement of the first, which finds the loss, and had
// nothing left to say itself: it returned nil.
// Fails without the fix: an unlock that has nothing to say returns why the session is over.
func TestSecondOfTwoNestedUnlocksAfterALossIsLostToo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a", relock.Owner("me"))
		var holds []*relock.Hold
		for range 3 {
			holds = append(holds, acquire(t, l, t.Context()))
		}
		x.Server.FlushAll()
		link.Latency(5 * time.Millisecond)
		first := rig.Beside(holds[0].Release)
		virtual.Sleep(time.Millisecond)
		second := rig.Beside(holds[1].Release)
		rig.WantIs(t, <-first, relock.ErrLost)
		rig.WantIs(t, <-second, relock.ErrLost)
		rig.WantIs(t, holds[2].Release(), relock.ErrLost)
	})
}

// A fixed lease was granted by a message, and the statement that completes it
// goes unanswered until ctx ends; then the call released what it had, and waited
// for that.
// Fails without the fix: what a call gives up is released without it.
func TestCallEndsWithItsContextThoughItHasAGrantToGiveBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder := x.Lock("a")
		c, link := x.Linked()
		rig.Must(t, holder.Lock(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		call := rig.Beside(func() error { return c.NewLock("a", relock.NoWatchdog()).Lock(ctx) })
		synctest.Wait()
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("evalsha", "eval") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		virtual.Sleep(time.Millisecond)
		rig.Must(t, holder.Unlock())
		rig.WantIs(t, <-call, context.DeadlineExceeded)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the call took %v, want its context's 2s", took)
		}
		link.OnCommand(nil)
		virtual.Sleep(30 * time.Second)
		x.Frees("a")
	})
}

// An unlock that had to wait for its turn to speak, and then released to a silent
// server, waited for the whole ReleaseTimeout once more.
// Fails without the fix: the release has what the turn has left of the time.
func TestUnlockThatWaitsForTheTurnReturnsWithinTheReleaseTimeout(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a", relock.Owner("me"), relock.TTL(time.Hour))
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Lock(t.Context()))
		stated := false
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "release") || rig.Runs(cmd, "hold") && !stated {
				stated = true
				return redistest.Lose
			}
			return redistest.Pass
		})
		nested := rig.Beside(l.Unlock) // by its second try the other has the release under way
		rig.StillWaits(t, nested)
		began := time.Now()
		rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Unlock took %v, want the 5s of the ReleaseTimeout", took)
		}
		rig.WantIs(t, rig.Returned(t, nested), relock.ErrUnconfirmed)
	})
}

// A grant that came while a lost hold of the handle was not unlocked yet is given back,
// and Redis does not answer: the call released the grant before it returned.
// Fails without the fix: such a grant is given back behind the call's back.
func TestCallEndsWithItsContextThoughItsHandleIsOccupied(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a")
		rig.Must(t, l.Lock(x.By("me")))
		ctx, cancel := context.WithTimeout(x.By("you"), 2*time.Second)
		defer cancel()
		began := time.Now()
		call := rig.Beside(func() error { return l.Lock(ctx) })
		rig.StillWaits(t, call)
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("evalsha", "eval") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		_, err := x.Lock("a").ForceUnlock(t.Context())
		rig.Must(t, err)
		virtual.Sleep(time.Second)
		x.Refuses(x.Lock("a")) // it has been given back, and Redis has not heard of that
		rig.WantIs(t, <-call, context.DeadlineExceeded)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the call took %v, want its context's 2s", took)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		link.OnCommand(nil)
		virtual.Sleep(30 * time.Second)
		x.Frees("a")
	})
}

// A release that reaches Redis after the lease is a loss if somebody else could hold
// meanwhile, and not one of Redis' making. While its record is there, nobody could.
// Fails without the fix: it is said that Redis no longer had the hold.
func TestReleaseThatArrivesAfterTheLeaseSaysSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		arrive := make(chan struct{})
		late := func(l *relock.Lock, meanwhile func()) error {
			rig.Must(t, l.Lock(t.Context()))
			virtual.Sleep(1600 * time.Millisecond)
			arrive = make(chan struct{})
			link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if rig.Runs(cmd, "release") {
					return redistest.Hold(arrive)
				}
				return redistest.Pass
			})
			unlock := rig.Beside(l.Unlock)
			virtual.Sleep(500 * time.Millisecond)
			meanwhile()
			close(arrive)
			return <-unlock
		}
		l := c.NewLock("late", relock.TTL(2*time.Second), relock.NoWatchdog())
		rig.Must(t, late(l, func() {}))
		next := x.Client().NewLock("late")
		err := late(l, func() { rig.Must(t, next.Lock(t.Context())) })
		rig.WantIs(t, err, relock.ErrLost)
		if err == nil || !strings.Contains(err.Error(), "its lease ended before the release reached redis") {
			t.Errorf("a release after the lease: %v", err)
		}
		rig.Must(t, next.Unlock())
		gone := c.NewLock("gone")
		link.OnCommand(nil)
		rig.Must(t, gone.Lock(t.Context()))
		x.Server.FlushAll()
		err = gone.Unlock()
		rig.WantIs(t, err, relock.ErrLost)
		if !strings.Contains(err.Error(), "redis no longer had it") {
			t.Errorf("a release of what was lost: %v", err)
		}
	})
}
