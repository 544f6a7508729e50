package contract_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The holds of one owner have one lease in Redis. What one of them asks for must not change
// what another is promised.

// terms are the kinds of lock in which an owner nests holds of different terms.
var terms = map[string]func(c *relock.Client, opts ...relock.LockOption) *relock.Lock{
	"plain": func(c *relock.Client, opts ...relock.LockOption) *relock.Lock { return c.NewLock("a", opts...) },
	"fair": func(c *relock.Client, opts ...relock.LockOption) *relock.Lock {
		return c.NewLock("a", append(opts, relock.Fair())...)
	},
	"local": func(c *relock.Client, opts ...relock.LockOption) *relock.Lock {
		return c.NewLock("a", append(opts, relock.LocalReentry())...)
	},
	"write": func(c *relock.Client, opts ...relock.LockOption) *relock.Lock {
		return c.NewRWLock("a", opts...).WLocker()
	},
	"read": func(c *relock.Client, opts ...relock.LockOption) *relock.Lock {
		return c.NewRWLock("a", opts...).RLocker()
	},
}

// everyTerms runs f for each kind in virtual time.
func everyTerms(t *testing.T, f func(t *testing.T, x *rig.Lab, rival *relock.Lock, of func(opts ...relock.LockOption) *relock.Lock)) {
	t.Helper()
	for name, of := range terms {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := x.Client()
				rival := of(x.Client())
				if name == "read" {
					rival = terms["write"](x.Client())
				}
				f(t, x, rival, func(opts ...relock.LockOption) *relock.Lock { return of(c, opts...) })
			})
		})
	}
}

// trustedFor fails where a hold is trusted for longer than that from now.
func trustedFor(t *testing.T, h interface{ TrustedUntil() time.Time }, most time.Duration) {
	t.Helper()
	if d := time.Until(h.TrustedUntil()); d <= 0 || d > most {
		t.Errorf("trusted for %v, want it to be more than 0 and at most %v", d, most)
	}
}

// A hold with a TTL of a second was trusted for the hour of a nested one, and renewed so seldom.
func TestAHoldIsTrustedForItsOwnTTLBesideANestedOneOfAnHour(t *testing.T) {
	for _, unlocked := range []bool{false, true} {
		everyTerms(t, func(t *testing.T, x *rig.Lab, rival *relock.Lock, of func(opts ...relock.LockOption) *relock.Lock) {
			outer := acquire(t, of(relock.TTL(time.Second)), x.By("me"))
			nested := acquire(t, of(relock.TTL(time.Hour), relock.NoWatchdog()), x.By("me"))
			if unlocked {
				rig.End(t, nested)
			}
			for range 3 {
				trustedFor(t, outer, time.Second)
				virtual.Sleep(20 * time.Second)
				rig.Must(t, outer.Err())
			}
			x.Server.FlushAll()
			virtual.Sleep(time.Second)
			rig.WantIs(t, outer.Err(), relock.ErrLost)
			rig.WantIs(t, outer.Release(), relock.ErrLost)
			if !unlocked {
				rig.WantIs(t, nested.Release(), relock.ErrLost)
			}
		})
	}
}

// The lease in Redis only gets longer. So a dead process leaves the lock taken for the longest TTL that its owner asked
// for, also that of a nested hold which was released.
func TestALeaseThatANestedHoldMadeLongStaysLongAfterACrash(t *testing.T) {
	for name, of := range terms {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				outer := acquire(t, of(c, relock.TTL(time.Second)), x.By("me"))
				rig.End(t, acquire(t, of(c, relock.TTL(time.Minute)), x.By("me")))
				virtual.Sleep(5 * time.Second)
				link.Cut()
				virtual.Sleep(2 * time.Second)
				rig.WantIs(t, outer.Err(), relock.ErrLost)
				holders := x.Info(of(x.Client())).Holders
				if len(holders) != 1 || holders[0].TTL < 50*time.Second {
					t.Errorf("held by %+v, want the rest of a minute", holders)
				}
			})
		})
	}
}

// Both are renewed: the short one for its own TTL.
func TestAHoldIsTrustedForItsOwnTTLBesideALongerOneThatIsRenewed(t *testing.T) {
	everyTerms(t, func(t *testing.T, x *rig.Lab, rival *relock.Lock, of func(opts ...relock.LockOption) *relock.Lock) {
		long := acquire(t, of(relock.TTL(time.Minute)), x.By("me"))
		virtual.Sleep(19 * time.Second) // the next renewal is due in a second, and the lease is long
		short := acquire(t, of(relock.TTL(time.Second)), x.By("me"))
		for range 100 {
			trustedFor(t, short, time.Second)
			trustedFor(t, long, time.Minute)
			virtual.Sleep(317 * time.Millisecond)
		}
		x.Server.FlushAll()
		virtual.Sleep(time.Second)
		rig.WantIs(t, short.Release(), relock.ErrLost)
		rig.WantIs(t, long.Release(), relock.ErrLost)
	})
}

// A renewal that came while only the long hold was there had set the timer for that one.
func TestAHoldOfTheFirstTTLIsRenewedThoughALongerOneWasMeanwhile(t *testing.T) {
	everyTerms(t, func(t *testing.T, x *rig.Lab, rival *relock.Lock, of func(opts ...relock.LockOption) *relock.Lock) {
		second := of(relock.TTL(time.Second))
		short := acquire(t, second, x.By("me"))
		long := acquire(t, of(relock.TTL(time.Minute)), x.By("me"))
		rig.End(t, short)
		virtual.Sleep(5 * time.Second)
		short = acquire(t, second, x.By("me"))
		for range 20 {
			trustedFor(t, short, time.Second)
			virtual.Sleep(317 * time.Millisecond)
		}
		rig.End(t, short)
		rig.End(t, long)
	})
}

// The outer hold was renewed a moment ago, so the nested one needs no command. The next renewal is due in ten seconds.
func TestAHoldOfLocalReentryIsRenewedByItsOwnTTL(t *testing.T) {
	everyTerms(t, func(t *testing.T, x *rig.Lab, rival *relock.Lock, of func(opts ...relock.LockOption) *relock.Lock) {
		outer := acquire(t, of(relock.TTL(30*time.Second)), x.By("me"))
		virtual.Sleep(100 * time.Millisecond)
		nested := acquire(t, of(relock.TTL(time.Second), relock.LocalReentry()), x.By("me"))
		for range 20 {
			trustedFor(t, nested, time.Second)
			virtual.Sleep(317 * time.Millisecond)
		}
		rig.End(t, nested)
		rig.End(t, outer)
	})
}

// Two nested calls wait for the turn of a third, and one statement is for both. The longer lease was
// renewed recently and need not be stated. The shorter one must be.
func TestANestedHoldOfAShortTTLIsStatedWithAnotherCallsOfALongOne(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		outer := acquire(t, c.NewLock("a"), x.By("me"))
		virtual.Sleep(9 * time.Second)
		link.Latency(50 * time.Millisecond)
		first, second := x.BeginAs("me", c.NewLock("a")), x.BeginAs("me", c.NewLock("a"))
		short := x.BeginAs("me", c.NewLock("a", relock.TTL(time.Second))).Returns()
		trustedFor(t, short, time.Second)
		virtual.Sleep(5 * time.Second)
		for _, h := range []*relock.Hold{short, first.Returns(), second.Returns(), outer} {
			rig.End(t, h)
		}
	})
}

func TestNoWatchdogEndsAHoldThoughItsOwnerHasOthers(t *testing.T) {
	for _, released := range []bool{false, true} {
		everyTerms(t, func(t *testing.T, x *rig.Lab, rival *relock.Lock, of func(opts ...relock.LockOption) *relock.Lock) {
			outer := acquire(t, of(relock.TTL(500*time.Millisecond), relock.NoWatchdog()), x.By("me"))
			ctx := outer.Context(t.Context())
			ttl := 600 * time.Millisecond // it is renewed before the outer one ends
			if released {
				ttl = 3 * time.Second
			}
			nested := acquire(t, of(relock.TTL(ttl)), x.By("me"))
			if released {
				rig.End(t, nested)
			}
			trustedFor(t, outer, 500*time.Millisecond)
			virtual.Sleep(499 * time.Millisecond)
			synctest.Wait()
			rig.WantIs(t, outer.Err(), relock.ErrLost)
			rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
			if !rig.IsShut(outer.Lost()) {
				t.Error("Lost is open after the loss")
			}
			if !released {
				virtual.Sleep(time.Minute)
				rig.Must(t, nested.Err())
				x.Refuses(rival)
				rig.End(t, nested)
			}
			x.Free(of())
			rig.WantIs(t, outer.Release(), relock.ErrLost)
		})
	}
}

func TestMaxHoldEndsAHoldThoughItsOwnerHasOthers(t *testing.T) {
	everyTerms(t, func(t *testing.T, x *rig.Lab, rival *relock.Lock, of func(opts ...relock.LockOption) *relock.Lock) {
		outer := acquire(t, of(relock.TTL(300*time.Millisecond), relock.MaxHold(500*time.Millisecond)), x.By("me"))
		later := acquire(t, of(relock.TTL(300*time.Millisecond)), x.By("me"))
		virtual.Sleep(400 * time.Millisecond)
		second := acquire(t, of(relock.TTL(300*time.Millisecond), relock.MaxHold(500*time.Millisecond)), x.By("me"))
		rig.Must(t, outer.Err())
		virtual.Sleep(400 * time.Millisecond)
		rig.WantIs(t, outer.Err(), relock.ErrLost)
		rig.Must(t, second.Err()) // its own time counts from its own grant
		virtual.Sleep(400 * time.Millisecond)
		rig.WantIs(t, second.Err(), relock.ErrLost)
		rig.Must(t, later.Err())
		x.Refuses(rival)
		rig.End(t, later)
		x.Free(of())
		rig.WantIs(t, outer.Release(), relock.ErrLost)
		rig.WantIs(t, second.Release(), relock.ErrLost)
	})
}

// A hold that has ended by itself is unlocked on its own handle, and the owner can lock there again.
func TestAHoldThatEndsBesideANestedOneIsUnlockedAsLost(t *testing.T) {
	everyTerms(t, func(t *testing.T, x *rig.Lab, rival *relock.Lock, of func(opts ...relock.LockOption) *relock.Lock) {
		fixed := of(relock.TTL(time.Second), relock.NoWatchdog())
		rig.Must(t, fixed.Lock(x.By("me")))
		nested := acquire(t, of(relock.TTL(time.Minute)), x.By("me"))
		virtual.Sleep(2 * time.Second)
		if n := fixed.HoldCount(); n != 0 {
			t.Errorf("%d holds, want none", n)
		}
		rig.WantIs(t, fixed.Unlock(), relock.ErrLost)
		rig.Must(t, fixed.Lock(x.By("me")))
		rig.Must(t, fixed.Unlock())
		rig.Must(t, nested.Err())
		rig.End(t, nested)
		x.Free(fixed)
	})
}

func TestAQuorumHoldIsTrustedForItsOwnTermsBesideANestedOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		q, _ := p.process()
		outer, err := q.NewLock("a", relock.TTL(time.Second)).Acquire(x.By("me"))
		rig.Must(t, err)
		fixed, err := q.NewLock("a", relock.TTL(2*time.Second), relock.NoWatchdog()).Acquire(x.By("me"))
		rig.Must(t, err)
		nested, err := q.NewLock("a", relock.TTL(time.Hour), relock.NoWatchdog()).Acquire(x.By("me"))
		rig.Must(t, err)
		trustedFor(t, outer, time.Second)
		trustedFor(t, fixed, 2*time.Second)
		virtual.Sleep(2 * time.Second)
		rig.WantIs(t, fixed.Release(), relock.ErrLost)
		virtual.Sleep(10 * time.Minute)
		trustedFor(t, outer, time.Second)
		rig.Must(t, nested.Release())
		virtual.Sleep(time.Minute)
		trustedFor(t, outer, time.Second)
		rig.Must(t, outer.Release())
		rig.Must(t, take(t, p.lock("a")).Release())
	})
}

// The renewals of many locks are in flight, on a connection that does not answer, when the owner of one nests with a
// short lease. Fails when that is lost while the answer to the renewal is waited for, which may take longer.
func TestAHoldOfAShortTTLIsRenewedThoughAnotherRenewalIsInFlight(t *testing.T) {
	for name, outer := range map[string]relock.LockOption{"watched": relock.TTL(30 * time.Second), "no longer": relock.MaxHold(10005 * time.Millisecond)} {
		t.Run(name, func(t *testing.T) { nestShort(t, outer) })
	}
}

func nestShort(t *testing.T, outer relock.LockOption) {
	t.Helper()
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		var all []*relock.Hold
		for i := range 8 {
			all = append(all, acquire(t, c.NewLock(string(rune('a'+i)), relock.TTL(30*time.Second), outer), x.By("me")))
		}
		var late atomic.Bool
		late.Store(true)
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "hold") && late.Load() {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		virtual.Sleep(9900 * time.Millisecond)
		for range 200 { // until the renewals are on their way
			if virtual.Sleep(time.Millisecond); x.Now() > 10*time.Second {
				break
			}
		}
		virtual.Sleep(10 * time.Millisecond)
		late.Store(false)
		nested := acquire(t, c.NewLock("a", relock.TTL(time.Second)), x.By("me"))
		for range 5 {
			trustedFor(t, nested, time.Second)
			virtual.Sleep(317 * time.Millisecond)
		}
		close(gate)
		rig.End(t, nested)
		for _, h := range all {
			rig.End(t, h)
		}
	})
}
