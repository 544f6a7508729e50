package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// nested has an owner hold a lock for a short lease, and nested for a long one.
func nested(x *rig.Lab, c *relock.Client, opts ...relock.LockOption) (outer, inner *relock.Hold) {
	x.T.Helper()
	outer = x.BeginAs("me", c.NewLock("l", append(opts, relock.TTL(2*time.Second))...)).Holds()
	return outer, x.BeginAs("me", c.NewLock("l", append(opts, relock.TTL(time.Minute))...)).Holds()
}

// An owner that waits has a hold for a longer lease than the one it began with: what it has
// after the wait is renewed, and has the longer lease.
func TestHoldsOfTwoLeasesAreKeptAfterAWait(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"renewed": nil, "fixed": {relock.NoWatchdog()}} {
		t.Run(name, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				a, b := x.Actor(), x.Actor()
				outer, inner := nested(x, a.Client, opts...)
				one := x.Sleeps(x.By("me"), a.NewLock("l").NewCond("c"), 0)
				l := b.NewLock("l")
				rig.Must(t, l.Lock(t.Context()))
				rig.Must(t, l.NewCond("c").Signal(t.Context()))
				rig.Must(t, l.Unlock())
				one.Woken()
				x.Until(x.Now() + 30*time.Second)
				rig.Must(t, inner.Err())
				x.Refuses(l)
				rig.End(t, inner)
				if opts == nil {
					rig.End(t, outer)
				} else {
					rig.WantIs(t, outer.Release(), relock.ErrLost)
				}
				x.Frees("l")
			})
		})
	}
}

// A fixed lease, and a waiter that asks for the lock itself, as nothing can be heard: it is
// granted it for the lease with which its session began.
func TestALongerFixedLeaseIsHadAfterAWaitThatHeardNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		x.Server.FailNext(1_000_000, "LOADING Redis is loading the dataset in memory", func(args []string) bool { return args[0] == "subscribe" })
		a, b := x.Actor(), x.Actor()
		outer, inner := nested(x, a.Client, relock.NoWatchdog())
		one := x.Sleeps(x.By("me"), a.NewLock("l").NewCond("c"), 0)
		one.Waits()
		l := b.NewLock("l")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.NewCond("c").Signal(t.Context()))
		rig.Must(t, l.Unlock())
		x.Until(x.Now() + 20*time.Second)
		one.Woken()
		rig.Must(t, inner.Err())
		x.Refuses(l)
		virtual.Sleep(10 * time.Second)
		rig.Must(t, inner.Err())
		rig.WantIs(t, outer.Release(), relock.ErrLost)
		x.Refuses(l)
		rig.End(t, inner)
		x.Frees("l")
	})
}

// A waiter that was forgotten, as its client was cut off for longer than its lease, finds
// the lock free: it has it for the lease that it has asked for, and no longer.
func TestForgottenWaiterTrustsNoLongerThanItHasAskedFor(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		outer, inner := nested(x, a.Client)
		ctx, cancel := context.WithCancel(x.By("me"))
		defer cancel()
		one := x.Sleeps(ctx, a.NewLock("l").NewCond("c"), 0)
		one.Waits()
		l := x.Lock("l")
		cutOff(a, func() {
			x.Until(x.Now() + 5*time.Second)
			rig.Must(t, l.Lock(t.Context())) // and the waiter is forgotten
			rig.Must(t, l.NewCond("c").Signal(t.Context()))
			rig.Must(t, l.Unlock())
			rig.WantBare(t, x.Redis, "l")
		})
		one.Woken()
		heal := a.Link.Hole()
		defer heal()
		if ok, err := l.TryLock(t.Context(), time.Hour); !ok || err != nil {
			t.Fatalf("the next: %v, %v", ok, err)
		}
		rig.WantIs(t, inner.Err(), relock.ErrLost)
		rig.WantIs(t, outer.Err(), relock.ErrLost)
		rig.Must(t, l.Unlock())
	})
}

// The renewal of a session is about to be sent when its owner is to wait, and may not.
func TestSessionThatMayNotWaitIsRenewedOn(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		la, h, other := byTwo(x, a)
		gate := make(chan struct{})
		a.Fate("await", 1, redistest.Hold(gate))
		var wait rig.Going
		rig.RenewAround(a.Client, false, func() {
			wait = rig.Beside(func() error { return la.NewCond("c").Wait(t.Context()) })
			synctest.Wait()
		})
		synctest.Wait()
		close(gate)
		rig.WantIs(t, <-wait, relock.ErrOwnerMismatch)
		virtual.Sleep(time.Minute)
		rig.End(t, h)
		rig.End(t, other)
		x.Frees("l")
	})
}

// The server hears of the wait too late: the lease has ended, another has held and
// signalled since, and then a late copy of the waiter's acquire was granted the lock.
// It was not answered at first, and returns as if it had been woken.
// Fails when it waits by that grant: the signal that it waits for has been given.
func TestAWaitThatWasLostBeforeItBeganMissesNoSignal(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		late, gate := make(chan struct{}), make(chan struct{})
		a.LateThen(late, "await", gate)
		l := a.NewLock("l", relock.Owner("me"), relock.TTL(2*time.Second), relock.NoWatchdog())
		x.Take(l)
		x.Until(1500 * time.Millisecond)
		waits := rig.Beside(func() error { return l.NewCond("c").Wait(t.Context()) })
		x.Until(2500 * time.Millisecond)
		other := x.Lock("l")
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.NewCond("c").Signal(t.Context()))
		rig.Must(t, other.Unlock())
		close(late)
		synctest.Wait()
		close(gate)
		x.Until(x.Now() + time.Second)
		rig.Must(t, rig.Returned(t, waits))
		rig.Must(t, l.Unlock())
		x.Frees("l")
	})
}

// Redis has executed the wait, its answer is lost, and the copy after it is refused. A signal and a grant came meanwhile.
// Fails when the wait is lost though it holds again, or when the grant stays in Redis until its lease ends.
func TestAWaitThatIsGrantedBeforeItIsAnsweredHolds(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		a.Fate("await", 1, redistest.SwallowReply)
		l := a.NewLock("l", relock.Owner("me"))
		h := x.Take(l)
		waits := rig.Beside(func() error { return l.NewCond("c").Wait(t.Context()) })
		x.Until(100 * time.Millisecond)
		x.Server.FailNext(1_000_000, "NOPERM this user may not", func(args []string) bool { return rig.ScriptSent(args) == "await" })
		other := x.Lock("l")
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.NewCond("c").Signal(t.Context()))
		rig.Must(t, other.Unlock())
		x.Until(10 * time.Second)
		rig.Must(t, rig.Returned(t, waits))
		rig.Must(t, h.Err())
		x.Refuses(x.Lock("l"))
		rig.End(t, h)
		x.Frees("l")
	})
}

// The new primary has never heard that the lock was given up: to it the hold has gone on.
// Fails when the wait is not ended, or when the lock is had beside another's hold.
func TestAWaitThatAFailoverLosesEndsAsIfItWereWoken(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l := x.Actor().NewLock("l", relock.Owner("me"))
		h := x.Take(l)
		x.Until(101 * time.Millisecond)
		restore, token := x.Keep("l"), h.Token()
		waits := rig.Beside(func() error { return l.NewCond("c").Wait(t.Context()) })
		x.Until(time.Second)
		rig.StillWaits(t, waits)
		restore()
		x.Server.KillSubscribers()
		x.Until(3 * time.Second)
		rig.Must(t, rig.Returned(t, waits))
		rig.Must(t, h.Err())
		if got := h.Token(); got != token {
			t.Errorf("token %d, want that of the hold that has gone on, %d", got, token)
		}
		x.Refuses(x.Lock("l"))
		rig.End(t, h)
		x.Frees("l")
	})
}

// The reverse: the grant after the wait is of a request that is older than the short lease of a nested hold, or it gives a
// nested hold without a watchdog only the rest of its lease.
// Fails when the wait returns with a hold that is lost, or not whole, though Redis answers all the time.
func TestANestedHoldOfOtherTermsIsKeptAfterAWait(t *testing.T) {
	for name, row := range map[string]struct {
		outer, waits, lasts time.Duration
		inner               []relock.LockOption
	}{
		"short":           {time.Minute, 3 * time.Second, time.Second, []relock.LockOption{relock.TTL(2 * time.Second)}},
		"short and fixed": {time.Minute, 3 * time.Second, time.Second, []relock.LockOption{relock.TTL(2 * time.Second), relock.NoWatchdog()}},
		"fixed":           {30 * time.Second, 9 * time.Second, 29 * time.Second, []relock.LockOption{relock.TTL(30 * time.Second), relock.NoWatchdog()}},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				a, l := x.Client(), x.Lock("l")
				outer := acquire(t, a.NewLock("l", relock.TTL(row.outer)), x.By("me"))
				inner := acquire(t, a.NewLock("l", row.inner...), x.By("me"))
				s := x.Sleeps(x.By("me"), a.NewLock("l").NewCond("c"), 0)
				s.Waits()
				virtual.Sleep(row.waits)
				rig.Must(t, l.Lock(t.Context()))
				rig.Must(t, l.NewCond("c").Signal(t.Context()))
				rig.Must(t, l.Unlock())
				s.Woken()
				virtual.Sleep(row.lasts)
				rig.Must(t, inner.Err())
				rig.End(t, inner)
				rig.End(t, outer)
				x.Frees("l")
			})
		})
	}
}
