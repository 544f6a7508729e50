package contract_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestWatchdogKeepsAHoldForAnyTime(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, ttl := range []time.Duration{100 * time.Millisecond, 30 * time.Second, 10 * time.Minute} {
			l := x.Lock("a", relock.TTL(ttl))
			h := acquire(t, l, t.Context())
			for range 7 {
				virtual.Sleep(ttl)
				x.Refuses(x.Lock("a"))
				rig.Must(t, h.Err())
			}
			rig.Must(t, l.Unlock())
		}
	})
}

func TestNoWatchdogLosesTheHoldAfterItsTTL(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a", relock.TTL(10*time.Second), relock.NoWatchdog()), x.Lock("a")
		h := acquire(t, l, t.Context())
		began := time.Now()
		next := rig.Beside(func() error { return other.Lock(t.Context()) })
		<-h.Lost()
		if took := time.Since(began); took > 10*time.Second || took < 9*time.Second {
			t.Errorf("lost after %v", took)
		}
		rig.Must(t, <-next)
		if took := time.Since(began); took > 10*time.Second+200*time.Millisecond {
			t.Errorf("the next has it after %v, want 10s", took)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		x.Refuses(x.Lock("a"))
		rig.Must(t, other.Unlock())
	})
}

// TestNoWatchdogIsGivenAFullTTLByAHandOff: the grant a waiter gets is the rest
// of its place in the queue, and that is not what a fixed lease promises.
func TestNoWatchdogIsGivenAFullTTLByAHandOff(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a"), x.Lock("a", relock.TTL(9*time.Second), relock.NoWatchdog())
		rig.Must(t, l.Lock(t.Context()))
		next := rig.Beside(func() error { return other.Lock(t.Context()) })
		virtual.Sleep(2900 * time.Millisecond)
		rig.StillWaits(t, next)
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, next))
		virtual.Sleep(8500 * time.Millisecond)
		if other.HoldCount() != 1 {
			t.Error("lost before its TTL")
		}
		rig.Must(t, other.Unlock())
	})
}

func TestMaxHoldEndsRenewal(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.TTL(6*time.Second), relock.MaxHold(time.Minute))
		h := acquire(t, l, t.Context())
		began := time.Now()
		<-h.Lost()
		if took := time.Since(began); took < time.Minute || took > time.Minute+6*time.Second {
			t.Errorf("lost after %v, want within a TTL after 1m0s", took)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		virtual.Sleep(time.Second)
		x.Frees("a")
	})
}

// TestGrantIsRenewedWhileAnyHoldHasAWatchdog, and the others end by their own terms.
func TestGrantIsRenewedWhileAnyHoldHasAWatchdog(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		fixed, kept := c.NewLock("a", relock.NoWatchdog()), c.NewLock("a", relock.TTL(time.Minute))
		h := acquire(t, fixed, x.By("me"))
		rig.Must(t, kept.Lock(x.By("me")))
		trustedFor(t, h, 30*time.Second)
		virtual.Sleep(10 * time.Minute)
		if !rig.IsShut(h.Lost()) {
			t.Error("a hold without a watchdog is not lost after its TTL")
		}
		if kept.HoldCount() != 1 {
			t.Error("the hold with a watchdog is lost")
		}
		rig.WantIs(t, fixed.Unlock(), relock.ErrLost)
		rig.Must(t, kept.Unlock())
	})
}

func TestFailedRenewalIsRetriedUntilTheTrustEnds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a")
		h := acquire(t, l, t.Context())
		virtual.Sleep(time.Second)
		heal := link.Cut()
		virtual.Sleep(26 * time.Second)
		rig.Must(t, h.Err())
		heal()
		virtual.Sleep(time.Minute)
		rig.Must(t, h.Err())
		if rig.IsShut(h.Lost()) {
			t.Error("lost by a fault that was over in time")
		}
		rig.Must(t, l.Unlock())
	})
}

// Redis refuses all renewals for ten seconds, as while somebody sets up its users anew.
// Fails when what a server refuses is a loss at once, of one hold or of holds that are renewed together.
func TestARenewalThatRedisRefusesIsTriedAgain(t *testing.T) {
	for _, locks := range []int{1, 20} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c := x.Client()
			var holds []*relock.Hold
			for i := range locks {
				holds = append(holds, x.Take(c.NewLock(fmt.Sprint("a", i))))
			}
			x.Until(8 * time.Second)
			heals := x.Now() + 10*time.Second
			refused := 0
			x.Server.FailNext(1_000_000, "NOPERM this user has no permissions", func(args []string) bool {
				refuses := x.Now() < heals && rig.ScriptSent(args) == "hold"
				if refuses {
					refused++
				}
				return refuses
			})
			x.Until(5 * time.Minute)
			if refused < 2 {
				t.Errorf("%d renewals were refused, want several", refused)
			}
			for _, h := range holds {
				rig.End(t, h)
			}
		})
	}
}

func TestLostRepliesToRenewalsAreNoLoss(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a")
		h := acquire(t, l, t.Context())
		var renewals atomic.Int64
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "hold") {
				if n := renewals.Add(1); n%3 != 0 {
					return []redistest.Verdict{redistest.CutBefore, redistest.SwallowReply, redistest.CutReply}[n%3]
				}
			}
			return redistest.Pass
		})
		virtual.Sleep(5 * time.Minute)
		if n := renewals.Load(); n < 20 {
			t.Errorf("%d renewals", n)
		}
		rig.Must(t, h.Err())
		rig.Must(t, l.Unlock())
	})
}

// TestHolderBehindAPartitionKnowsBeforeAnybodyElseHolds: for several instants
// of the cut, and several shares of the renewal interval.
func TestHolderBehindAPartitionKnowsBeforeAnybodyElseHolds(t *testing.T) {
	for at := range 12 {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := x.Linked()
			l, other := c.NewLock("a", relock.TTL(3*time.Second)), x.Lock("a")
			h := acquire(t, l, t.Context())
			ctx := h.Context(t.Context())
			next := rig.Beside(func() error { return other.Lock(t.Context()) })
			virtual.Sleep(time.Duration(at)*271*time.Millisecond + 17)
			cuts := []func() func(){link.Cut, link.Hole}
			heal := cuts[at%2]()
			rig.Must(t, <-next)
			if !rig.IsShut(h.Lost()) || !rig.IsShut(ctx.Done()) {
				t.Error("another holds, and Lost or the context is open")
			}
			rig.WantIs(t, h.Err(), relock.ErrLost)
			rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
			if l.HoldCount() != 0 {
				t.Error("another holds, and HoldCount is 1")
			}
			heal()
			virtual.Sleep(10 * time.Second)
			x.Refuses(x.Lock("a"))
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
			x.Refuses(x.Lock("a"))
			rig.Must(t, other.Unlock())
		})
	}
}

func TestHoldThatRedisLostIsLostAtTheNextRenewal(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		h := acquire(t, l, t.Context())
		began := time.Now()
		x.Server.FlushAll()
		<-h.Lost()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("lost after %v, want within a third of the TTL", took)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// A pause ends the lease of an outer hold, and not that of the one nested in it:
// the nested context says so at the first question, before any goroutine has run.
func TestContextOfANestedHoldAsksTheClockForTheOuterOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		outer, inner := c.NewLock("outer"), c.NewLock("inner", relock.TTL(time.Hour))
		rig.WantIs(t, outer.Do(t.Context(), func(ctx context.Context) error {
			below, end := context.WithCancel(ctx)
			defer end()
			return inner.Do(below, func(ctx context.Context) error {
				x.Suspend(time.Minute)
				rig.WantIs(t, ctx.Err(), context.Canceled)
				rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
				return nil
			})
		}), relock.ErrLost)
	})
}

// An owner's hold with a watchdog is released while one without is on its way; that one is
// released too, and a third is asked for before Redis has heard. Fails when the third is not
// renewed, though it has a watchdog: what was due last was the end of the lease.
func TestAHoldThatFollowsOneWithoutAWatchdogIsRenewed(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		l := a.NewLock("l", relock.Owner("me"), relock.TTL(time.Second))
		fixed := a.NewLock("l", relock.Owner("me"), relock.TTL(time.Second), relock.NoWatchdog())
		first := x.Take(l)
		gates := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
		var said atomic.Int32
		a.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if n := said.Load(); rig.ScriptSent(cmd.Args) == "hold" && n < 2 {
				said.Store(n + 1)
				return redistest.Hold(gates[n])
			}
			return redistest.Pass
		})
		second := x.Begin(fixed)
		released := rig.Beside(first.Release)
		synctest.Wait()
		close(gates[0])
		h := second.Holds()
		alsoReleased := rig.Beside(h.Release)
		third := x.Begin(l)
		synctest.Wait()
		close(gates[1])
		rig.Must(t, <-released)
		rig.Must(t, <-alsoReleased)
		h = third.Holds()
		x.Until(10 * time.Second)
		rig.Must(t, h.Err())
		rig.End(t, h)
		x.Frees("l")
	})
}
