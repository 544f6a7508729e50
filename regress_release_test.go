package relock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// Redis cannot be reached from before the release until long after the lease.
// Fails without the fix: who gives a release up forgets its session; then the room goes as well,
// and Shutdown has nothing to wait for.
func TestReleaseThatNeverSucceedsLeavesNothing(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		l := c.NewLock("a", relock.TTL(time.Second))
		noErr(t, l.Lock(t.Context()))
		heal := x.srv.Partition()
		wantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		time.Sleep(time.Minute)
		if left := relock.Remains(c); left != "" {
			t.Errorf("%s a minute after a lease of 1 s", left)
		}
		heal()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		noErr(t, c.Shutdown(ctx))
	})
}

// A round of renewals had the session among its own, and it is released before the
// round has sent anything. Stated then, it held nothing: Redis made a reader's grant
// of it, where that came before the release, which then found the lock lost.
// Fails without the fix: the round looks once more whether the session is held.
func TestRenewalOfWhatIsReleasedMeanwhileIsNotSent(t *testing.T) {
	for _, locks := range []int{1, 20} { // as a statement, and in one command
		inLab(t, func(t *testing.T, x *lab) {
			c, link := x.linked()
			var all []*relock.Lock
			for i := range locks {
				all = append(all, c.NewLock(fmt.Sprint("job ", i), relock.Owner("a")))
				noErr(t, all[i].Lock(t.Context()))
			}
			var before int
			c.RenewAround(func() {
				for _, l := range all {
					noErr(t, l.Unlock())
				}
				before = len(link.Log())
			})
			synctest.Wait()
			for _, args := range link.Log()[before:] {
				if name := scriptSent(args); name == "hold" || name == "renew" {
					t.Errorf("%d locks: sent %s %q after the release", locks, name, args)
				}
			}
		})
	}
}

// Redis refuses the release with an error that it would repeat: missing
// permissions, or a key of another type. It was asked again for ReleaseTimeout.
// Fails without the fix: a refusal ends the release, as it ends a request.
func TestRefusedReleaseIsToldAtOnce(t *testing.T) {
	for _, text := range []string{
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"WRONGTYPE Operation against a key holding the wrong kind of value",
	} {
		inLab(t, func(t *testing.T, x *lab) {
			c, link := x.linked()
			l := c.NewLock("a")
			noErr(t, l.Lock(t.Context()))
			releases := func() (n int) {
				for _, args := range link.Log() {
					if scriptSent(args) == "release" {
						n++
					}
				}
				return n
			}
			before, began := releases(), time.Now()
			x.srv.FailNext(1_000_000, text, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
			err := l.Unlock()
			wantIs(t, err, relock.ErrUnconfirmed)
			if !mentions(err, text[:6]) || time.Since(began) > 0 {
				t.Errorf("%v after %v, want %s at once", err, time.Since(began), text)
			}
			time.Sleep(time.Minute)
			if n := releases() - before; n != 1 {
				t.Errorf("asked %d times", n)
			}
			if left := relock.Remains(c); left != "" {
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
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a", relock.Owner("me"))
		var holds []*relock.Hold
		for range 3 {
			holds = append(holds, acquire(t, l, t.Context()))
		}
		x.srv.FlushAll()
		link.Latency(5 * time.Millisecond)
		first := beside(holds[0].Release)
		time.Sleep(time.Millisecond)
		second := beside(holds[1].Release)
		wantIs(t, <-first, relock.ErrLost)
		wantIs(t, <-second, relock.ErrLost)
		wantIs(t, holds[2].Release(), relock.ErrLost)
	})
}

// A fixed lease was granted by a message, and the statement that completes it
// goes unanswered until ctx ends; then the call released what it had, and waited
// for that.
// Fails without the fix: what a call gives up is released without it.
func TestCallEndsWithItsContextThoughItHasAGrantToGiveBack(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		holder := x.lock("a")
		c, link := x.linked()
		noErr(t, holder.Lock(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		call := beside(func() error { return c.NewLock("a", relock.NoWatchdog()).Lock(ctx) })
		synctest.Wait()
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("evalsha", "eval") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		time.Sleep(time.Millisecond)
		noErr(t, holder.Unlock())
		wantIs(t, <-call, context.DeadlineExceeded)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the call took %v, want its context's 2s", took)
		}
		link.OnCommand(nil)
		time.Sleep(30 * time.Second)
		x.frees("a")
	})
}

// An unlock that had to wait for its turn to speak, and then released to a silent
// server, waited for the whole ReleaseTimeout once more.
// Fails without the fix: the release has what the turn has left of the time.
func TestUnlockThatWaitsForTheTurnReturnsWithinTheReleaseTimeout(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a", relock.Owner("me"), relock.TTL(time.Hour))
		noErr(t, l.Lock(t.Context()))
		noErr(t, l.Lock(t.Context()))
		stated := false
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if sends(cmd, "release") || sends(cmd, "hold") && !stated {
				stated = true
				return redistest.Lose
			}
			return redistest.Pass
		})
		nested := beside(l.Unlock) // its second try is answered
		stillWaits(t, nested)
		began := time.Now()
		wantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Unlock took %v, want the 5s of the ReleaseTimeout", took)
		}
		noErr(t, hasReturned(t, nested))
	})
}

// Some nested unlocks wait for their turn, and the first of them states all. The
// others had the error of a renewal that too few replicas had, and that has no part
// in it.
// Fails without the fix: such an unlock asks why the session is over only if it is.
func TestUnlocksThatShareAStatementSucceedThoughARenewalFellShort(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a")
		ctx := relock.WithOwner(t.Context(), "me")
		outer, err := l.Acquire(ctx)
		noErr(t, err)
		for range 3 {
			noErr(t, l.Lock(ctx))
		}
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if sends(cmd, "hold") {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		var unlocks []<-chan error
		for range 3 {
			unlocks = append(unlocks, beside(l.Unlock))
			stillWaits(t, unlocks[len(unlocks)-1])
		}
		outer.PretendShort()
		close(gate)
		for _, unlock := range unlocks {
			noErr(t, <-unlock)
		}
		noErr(t, outer.Release())
	})
}

// A grant that came while a lost hold of the handle was not unlocked yet is given back,
// and Redis does not answer: the call released the grant before it returned.
// Fails without the fix: such a grant is given back behind the call's back.
func TestCallEndsWithItsContextThoughItsHandleIsOccupied(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a")
		noErr(t, l.Lock(x.by("me")))
		ctx, cancel := context.WithTimeout(x.by("you"), 2*time.Second)
		defer cancel()
		began := time.Now()
		call := beside(func() error { return l.Lock(ctx) })
		stillWaits(t, call)
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("evalsha", "eval") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		_, err := x.lock("a").ForceUnlock(t.Context())
		noErr(t, err)
		time.Sleep(time.Second)
		x.refuses(x.lock("a")) // it has been given back, and Redis has not heard of that
		wantIs(t, <-call, context.DeadlineExceeded)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the call took %v, want its context's 2s", took)
		}
		wantIs(t, l.Unlock(), relock.ErrLost)
		link.OnCommand(nil)
		time.Sleep(30 * time.Second)
		x.frees("a")
	})
}

// A release that reaches Redis after the lease is a loss like any other, but not
// one of Redis' making.
// Fails without the fix: it is said that Redis no longer had the hold.
func TestReleaseThatArrivesAfterTheLeaseSaysSo(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		late, gone := c.NewLock("late", relock.TTL(2*time.Second), relock.NoWatchdog()), c.NewLock("gone")
		noErr(t, late.Lock(t.Context()))
		time.Sleep(1600 * time.Millisecond)
		arrive := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if sends(cmd, "release") {
				return redistest.Hold(arrive)
			}
			return redistest.Pass
		})
		unlock := beside(late.Unlock)
		time.Sleep(500 * time.Millisecond)
		close(arrive)
		err := <-unlock
		wantIs(t, err, relock.ErrLost)
		if !strings.Contains(err.Error(), "its lease ended before the release reached redis") {
			t.Errorf("a release after the lease: %v", err)
		}
		noErr(t, gone.Lock(t.Context()))
		x.srv.FlushAll()
		err = gone.Unlock()
		wantIs(t, err, relock.ErrLost)
		if !strings.Contains(err.Error(), "redis no longer had it") {
			t.Errorf("a release of what was lost: %v", err)
		}
	})
}
