package relock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

func TestWatchdogKeepsAHoldForAnyTime(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		for _, ttl := range []time.Duration{100 * time.Millisecond, 30 * time.Second, 10 * time.Minute} {
			l := x.lock("a", relock.TTL(ttl))
			h := acquire(t, l, t.Context())
			for range 7 {
				time.Sleep(ttl)
				x.refuses(x.lock("a"))
				noErr(t, h.Err())
			}
			noErr(t, l.Unlock())
		}
	})
}

func TestNoWatchdogLosesTheHoldAfterItsTTL(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a", relock.TTL(10*time.Second), relock.NoWatchdog()), x.lock("a")
		h := acquire(t, l, t.Context())
		began := time.Now()
		next := beside(func() error { return other.Lock(t.Context()) })
		<-h.Lost()
		if took := time.Since(began); took > 10*time.Second || took < 9*time.Second {
			t.Errorf("lost after %v", took)
		}
		noErr(t, <-next)
		if took := time.Since(began); took > 10*time.Second+200*time.Millisecond {
			t.Errorf("the next has it after %v, want 10s", took)
		}
		wantIs(t, l.Unlock(), relock.ErrLost)
		x.refuses(x.lock("a"))
		noErr(t, other.Unlock())
	})
}

// TestNoWatchdogIsGivenAFullTTLByAHandOff: the grant a waiter gets is the rest
// of its place in the queue, and that is not what a fixed lease promises.
func TestNoWatchdogIsGivenAFullTTLByAHandOff(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a"), x.lock("a", relock.TTL(9*time.Second), relock.NoWatchdog())
		noErr(t, l.Lock(t.Context()))
		next := beside(func() error { return other.Lock(t.Context()) })
		time.Sleep(2900 * time.Millisecond)
		stillWaits(t, next)
		noErr(t, l.Unlock())
		noErr(t, hasReturned(t, next))
		time.Sleep(8500 * time.Millisecond)
		if other.HoldCount() != 1 {
			t.Error("lost before its TTL")
		}
		noErr(t, other.Unlock())
	})
}

func TestMaxHoldEndsRenewal(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.TTL(6*time.Second), relock.MaxHold(time.Minute))
		h := acquire(t, l, t.Context())
		began := time.Now()
		<-h.Lost()
		if took := time.Since(began); took < time.Minute || took > time.Minute+6*time.Second {
			t.Errorf("lost after %v, want within a TTL after 1m0s", took)
		}
		wantIs(t, l.Unlock(), relock.ErrLost)
		time.Sleep(time.Second)
		x.frees("a")
	})
}

// TestGrantIsRenewedWhileAnyHoldHasAWatchdog, with the longest TTL of them.
func TestGrantIsRenewedWhileAnyHoldHasAWatchdog(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		fixed, kept := c.NewLock("a", relock.NoWatchdog()), c.NewLock("a", relock.TTL(time.Minute))
		h := acquire(t, fixed, x.by("me"))
		noErr(t, kept.Lock(x.by("me")))
		if d := time.Until(h.TrustedUntil()); d < 50*time.Second {
			t.Errorf("trusted for %v, want the longer TTL", d)
		}
		time.Sleep(10 * time.Minute)
		noErr(t, h.Err())
		if d := time.Until(h.TrustedUntil()); d < 35*time.Second {
			t.Errorf("trusted for %v, want it renewed by the longer TTL", d)
		}
		noErr(t, kept.Unlock())
		<-h.Lost()
		wantIs(t, fixed.Unlock(), relock.ErrLost)
	})
}

func TestFailedRenewalIsRetriedUntilTheTrustEnds(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a")
		h := acquire(t, l, t.Context())
		time.Sleep(time.Second)
		heal := link.Cut()
		time.Sleep(26 * time.Second)
		noErr(t, h.Err())
		heal()
		time.Sleep(time.Minute)
		noErr(t, h.Err())
		if isShut(h.Lost()) {
			t.Error("lost by a fault that was over in time")
		}
		noErr(t, l.Unlock())
	})
}

func TestLostRepliesToRenewalsAreNoLoss(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a")
		h := acquire(t, l, t.Context())
		var renewals atomic.Int64
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if runs(cmd, "hold") {
				if n := renewals.Add(1); n%3 != 0 {
					return []redistest.Verdict{redistest.CutBefore, redistest.SwallowReply, redistest.CutReply}[n%3]
				}
			}
			return redistest.Pass
		})
		time.Sleep(5 * time.Minute)
		if n := renewals.Load(); n < 20 {
			t.Errorf("%d renewals", n)
		}
		noErr(t, h.Err())
		noErr(t, l.Unlock())
	})
}

// TestHolderBehindAPartitionKnowsBeforeAnybodyElseHolds: for several instants
// of the cut, and several shares of the renewal interval.
func TestHolderBehindAPartitionKnowsBeforeAnybodyElseHolds(t *testing.T) {
	for at := range 12 {
		inLab(t, func(t *testing.T, x *lab) {
			c, link := x.linked()
			l, other := c.NewLock("a", relock.TTL(3*time.Second)), x.lock("a")
			h := acquire(t, l, t.Context())
			ctx := h.Context(t.Context())
			next := beside(func() error { return other.Lock(t.Context()) })
			time.Sleep(time.Duration(at)*271*time.Millisecond + 17)
			cuts := []func() func(){link.Cut, link.Hole}
			heal := cuts[at%2]()
			noErr(t, <-next)
			if !isShut(h.Lost()) || !isShut(ctx.Done()) {
				t.Error("another holds, and Lost or the context is open")
			}
			wantIs(t, h.Err(), relock.ErrLost)
			wantIs(t, context.Cause(ctx), relock.ErrLost)
			if l.HoldCount() != 0 {
				t.Error("another holds, and HoldCount is 1")
			}
			heal()
			time.Sleep(10 * time.Second)
			x.refuses(x.lock("a"))
			wantIs(t, l.Unlock(), relock.ErrLost)
			x.refuses(x.lock("a"))
			noErr(t, other.Unlock())
		})
	}
}

func TestHoldThatRedisLostIsLostAtTheNextRenewal(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		h := acquire(t, l, t.Context())
		began := time.Now()
		x.srv.FlushAll()
		<-h.Lost()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("lost after %v, want within a third of the TTL", took)
		}
		wantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// A pause ends the lease of an outer hold, and not that of the one nested in it:
// the nested context says so at the first question, before any goroutine has run.
func TestContextOfANestedHoldAsksTheClockForTheOuterOne(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		outer, inner := c.NewLock("outer"), c.NewLock("inner", relock.TTL(time.Hour))
		wantIs(t, outer.Do(t.Context(), func(ctx context.Context) error {
			below, end := context.WithCancel(ctx)
			defer end()
			return inner.Do(below, func(ctx context.Context) error {
				x.suspend(time.Minute)
				wantIs(t, ctx.Err(), context.Canceled)
				wantIs(t, context.Cause(ctx), relock.ErrLost)
				return nil
			})
		}), relock.ErrLost)
	})
}

// TestSuspendedHolderIsLostAtTheFirstQuestion: the machine slept through its
// lease. No timer has fired yet, and the clock decides.
func TestSuspendedHolderIsLostAtTheFirstQuestion(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, l *relock.Lock, h *relock.Hold, ctx context.Context){
		"Err": func(t *testing.T, _ *relock.Lock, h *relock.Hold, _ context.Context) {
			wantIs(t, h.Err(), relock.ErrLost)
		},
		"context": func(t *testing.T, _ *relock.Lock, _ *relock.Hold, ctx context.Context) {
			wantIs(t, ctx.Err(), context.Canceled)
		},
		"Cause": func(t *testing.T, _ *relock.Lock, _ *relock.Hold, ctx context.Context) {
			wantIs(t, context.Cause(ctx), relock.ErrLost)
		},
		"Release": func(t *testing.T, _ *relock.Lock, h *relock.Hold, _ context.Context) {
			wantIs(t, h.Release(), relock.ErrLost)
		},
		"Unlock": func(t *testing.T, l *relock.Lock, _ *relock.Hold, _ context.Context) {
			wantIs(t, l.Unlock(), relock.ErrLost)
		},
		"re-entry": func(t *testing.T, l *relock.Lock, _ *relock.Hold, ctx context.Context) {
			wantIs(t, l.Lock(context.WithoutCancel(ctx)), relock.ErrLost)
		},
		"HoldCount":    func(t *testing.T, l *relock.Lock, _ *relock.Hold, _ context.Context) { wantHolds(t, l, 0) },
		"TrustedUntil": func(t *testing.T, _ *relock.Lock, h *relock.Hold, _ context.Context) { wantZero(t, h.TrustedUntil()) },
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, x *lab) {
				l := x.lock("a")
				h := acquire(t, l, x.by("me"))
				ctx := h.Context(x.by("me"))
				lost := h.Lost()
				time.Sleep(1007 * time.Millisecond) // the watchdog's sleep is not over at this instant
				x.suspend(28 * time.Second)
				noErr(t, h.Err())
				x.suspend(time.Second)
				ask(t, l, h, ctx)
				if !isShut(lost) || !isShut(ctx.Done()) {
					t.Errorf("after %s: Lost %v, context %v, want both closed", name, isShut(lost), isShut(ctx.Done()))
				}
			})
		})
	}
}

func wantHolds(t testing.TB, l *relock.Lock, want int) {
	t.Helper()
	if got := l.HoldCount(); got != want {
		t.Errorf("HoldCount = %d, want %d", got, want)
	}
}

func wantZero(t testing.TB, got time.Time) {
	t.Helper()
	if !got.IsZero() {
		t.Errorf("trusted until %v, want the zero time", got)
	}
}

// TestSuspendedHolderNoticesByItself, soon after the machine wakes up, though
// nobody asks.
func TestSuspendedHolderNoticesByItself(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.NoWatchdog())
		h := acquire(t, l, t.Context())
		lost := h.Lost()
		time.Sleep(time.Second)
		x.suspend(29 * time.Second)
		began := time.Now()
		<-lost
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("noticed %v after the machine woke up", took)
		}
		wantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// TestGrantThatWasSleptThroughIsNoResult: the machine sleeps while the answer
// is under way, for longer than the lease.
func TestGrantThatWasSleptThroughIsNoResult(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a")
		slept := false
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if !slept && runs(cmd, "acquire") {
				slept = true
				x.suspend(time.Minute)
			}
			return redistest.Pass
		})
		noErr(t, l.Lock(t.Context()))
		synctest.Wait()
		if !slept || l.HoldCount() != 1 {
			t.Errorf("slept %v, %d live holds, want one that was asked for anew", slept, l.HoldCount())
		}
		noErr(t, l.Unlock())
		x.frees("a")
	})
}
