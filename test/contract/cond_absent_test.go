package contract_test

import (
	"context"
	"errors"
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

// signalsAndUnlocks wakes who has waited longest, under the lock.
func signalsAndUnlocks(t *testing.T, l *relock.Lock) {
	t.Helper()
	rig.Must(t, l.Lock(t.Context()))
	rig.Must(t, l.NewCond("c").Signal(t.Context()))
	rig.Must(t, l.Unlock())
}

// A wait has the lock again, and its statement of the longer lease does not come through; meanwhile another
// call of the owner locks, and unlocks.
// Fails when it re-enters what the wait has: that is not to be unlocked until the wait returns,
// its Unlock ended nothing, and the hold was renewed for ever.
func TestWhatIsLockedWhileAWaitIsConfirmedCanBeUnlocked(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"redis": nil, "local": {relock.LocalReentry()}} {
		for way, wait := range map[string]time.Duration{"Lock": time.Minute, "one attempt": 0} {
			t.Run(name+" "+way, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					c, link := x.Linked()
					outer, inner := nested(x, c, opts...)
					s := x.Sleeps(x.By("me"), c.NewLock("l").NewCond("c"), 0)
					var lost, known atomic.Bool
					link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
						if !known.Load() && rig.Runs(cmd, "hold") {
							lost.Store(true)
							return redistest.CutBefore
						}
						return redistest.Pass
					})
					signalsAndUnlocks(t, x.Lock("l"))
					s.Waits()
					third := c.NewLock("l", append(opts, relock.TTL(time.Minute))...)
					had, err := third.TryLock(x.By("me"), wait)
					rig.Must(t, err)
					if !lost.Load() || !had || rig.IsShut(s.Done) {
						t.Fatalf("statement lost %v, locked %v, wait over %v", lost.Load(), had, rig.IsShut(s.Done))
					}
					known.Store(true)
					rig.Must(t, third.Unlock())
					s.Woken()
					rig.WantIs(t, third.Unlock(), relock.ErrNotHeld)
					rig.End(t, inner)
					rig.End(t, outer)
					x.Frees("l")
				})
			})
		}
	}
}

// leaving are the calls that end what they have locked, and that nobody else can end; each locks,
// says so and goes on when it may.
var leaving = map[string]func(ctx context.Context, l *relock.Lock, locked func()) error{
	"Do": func(ctx context.Context, l *relock.Lock, locked func()) error {
		return l.Do(ctx, func(context.Context) error { locked(); return nil })
	},
	"TryDo": func(ctx context.Context, l *relock.Lock, locked func()) error {
		_, err := l.TryDo(ctx, time.Minute, func(context.Context) error { locked(); return nil })
		return err
	},
	"Multi.Do": func(ctx context.Context, l *relock.Lock, locked func()) error {
		return relock.NewMulti(l).Do(ctx, func(context.Context) error { locked(); return nil })
	},
	"Multi.Unlock": func(ctx context.Context, l *relock.Lock, locked func()) error {
		m := relock.NewMulti(l)
		err := m.Lock(ctx)
		if err == nil {
			locked()
			err = m.Unlock()
		}
		return err
	},
}

// An owner waits, and so gives up what another call of it has, which ends meanwhile.
// Fails when the wait returns with that hold: nobody could unlock it, and it was renewed for ever.
func TestAWaitReturnsWithoutWhatHasEndedMeanwhile(t *testing.T) {
	for name, call := range leaving {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				released := 0
				c := x.Client(relock.Trace(relock.Hooks{Released: func(relock.Event) { released++ }}))
				l, goOn := c.NewLock("l"), make(chan struct{})
				rig.Must(t, l.Lock(x.By("me")))
				other := rig.Beside(func() error { return call(x.By("me"), c.NewLock("l"), func() { <-goOn }) })
				synctest.Wait()
				x.Holders(l, "me", 2)
				s := x.Sleeps(x.By("me"), l.NewCond("c"), 0)
				close(goOn)
				rig.WantIs(t, rig.Returned(t, other), relock.ErrNotHeld)
				s.Waits()
				signalsAndUnlocks(t, x.Lock("l"))
				s.Woken()
				rig.Must(t, l.Unlock())
				x.Frees("l")
				if released != 2 {
					t.Errorf("%d holds were released, want 2", released)
				}
			})
		})
	}
}

// Two goroutines of an owner hold, one waits on a condition, and the other comes to its Unlock or
// Release: it is told that it does not hold, and nobody would unlock for it later.
// Fails when the wait returns with the other's hold: the lock was taken for ever.
func TestAnUnlockDuringAWaitOfItsOwnerIsRemembered(t *testing.T) {
	for name, shared := range map[string]bool{"one handle": true, "two handles": false} {
		for _, local := range []bool{true, false} {
			for _, way := range []string{"Unlock", "Release"} {
				t.Run(fmt.Sprint(name, " ", way, " local ", local), func(t *testing.T) {
					rig.Run(t, func(t *testing.T, x *rig.Lab) {
						var released []error
						c := x.Client(relock.Trace(relock.Hooks{Released: func(e relock.Event) { released = append(released, e.Err) }}))
						handle := func() *relock.Lock {
							if local {
								return c.NewLock("l", relock.LocalReentry())
							}
							return c.NewLock("l")
						}
						mine := handle()
						other := mine
						if !shared {
							other = handle()
						}
						rig.Must(t, mine.Lock(x.By("me")))
						unlock := other.Unlock
						if way == "Release" {
							unlock = acquire(t, other, x.By("me")).Release
						} else {
							rig.Must(t, other.Lock(x.By("me")))
						}
						s := x.Sleeps(x.By("me"), mine.NewCond("c"), 0)
						rig.WantIs(t, unlock(), relock.ErrNotHeld)
						s.Waits()
						signalsAndUnlocks(t, x.Lock("l"))
						s.Woken()
						virtual.Sleep(time.Minute)
						x.Holders(mine, "me", 1)
						rig.Must(t, mine.Unlock())
						x.Frees("l")
						rig.WantIs(t, mine.Unlock(), relock.ErrNotHeld)
						rig.WantIs(t, other.Unlock(), relock.ErrNotHeld)
						if len(released) != 2 || !errors.Is(released[0], relock.ErrNotHeld) || released[1] != nil {
							t.Errorf("released with %v, want that nothing was held, and no error", released)
						}
					})
				})
			}
		}
	}
}

// Two goroutines of an owner hold by one handle. While one waits on a condition, the other comes to its Unlock, which
// names no hold. Another owner that has got the lock meanwhile must keep it.
// Fails when the handle takes the other owner's Lock, or when Unlock ends a hold of Acquire before one that is away.
func TestAnUnlockDuringAWaitOfItsOwnerEndsNoHoldOfAnotherOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		rig.Must(t, l.Lock(x.By("me")))
		rig.Must(t, l.Lock(x.By("me")))
		s := x.Sleeps(x.By("me"), l.NewCond("c"), 0)
		for _, ctx := range []context.Context{x.By("other"), t.Context()} {
			if _, err := l.TryLock(ctx, time.Second); !errors.Is(err, relock.ErrOwnerMismatch) {
				t.Fatalf("TryLock by the same handle: %v, want ErrOwnerMismatch", err)
			}
		}
		h := acquire(t, l, x.By("other"))
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		rig.Must(t, h.Err())
		s.Waits()
		rig.Must(t, l.NewCond("c").Signal(x.By("other")))
		rig.End(t, h)
		s.Woken()
		rig.Must(t, l.Unlock())
		x.Frees("l")
	})
}

// Fails when an owner that waits with one hold, whose Unlock cannot come before the wait has ended, keeps others off.
func TestAHandleOfOneHoldThatWaitsIsForEveryOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		rig.Must(t, l.Lock(x.By("me")))
		s := x.Sleeps(x.By("me"), l.NewCond("c"), 0)
		signalsAndUnlocks(t, l)
		s.Woken()
		rig.Must(t, l.Unlock())
		x.Frees("l")
	})
}

// Fails when a call that is refused has ended the hold.
func TestADetachDuringAWaitOfItsOwnerIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		h := rig.MustAcquire(t, l)
		s := x.Sleeps(t.Context(), l.NewCond("c"), 0)
		_, err := h.Detach(t.Context(), time.Minute)
		rig.WantIs(t, err, relock.ErrNotHeld)
		s.Waits()
		signalsAndUnlocks(t, x.Lock("l"))
		s.Woken()
		rig.Must(t, h.Err())
		rig.End(t, h)
	})
}

// Both goroutines of the owner unlock while a third waits for it: it returns that it holds nothing.
func TestAWaitWhoseHoldsAreAllUnlockedIsLostAndTheLockIsFree(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		rig.Must(t, l.Lock(x.By("me")))
		rig.Must(t, l.Lock(x.By("me")))
		s := x.Sleeps(x.By("me"), l.NewCond("c"), 0)
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		s.Waits()
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		s.Ended(relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
		x.Frees("l")
	})
}

// A wait is refused, and a hold of its owner has ended until then.
// Fails when Redis is not told of that: it has the hold for as long as the others.
func TestARefusedWaitHasNoHoldThatHasEndedMeanwhile(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a, goOn, gate := x.Actor(), make(chan struct{}), make(chan struct{})
		l, h, other := byTwo(x, a)
		do := rig.Beside(func() error {
			return a.NewLock("l").Do(x.By("me"), func(context.Context) error { <-goOn; return nil })
		})
		synctest.Wait()
		a.Fate("await", 1, redistest.Hold(gate))
		waits := rig.Beside(func() error { return l.NewCond("c").Wait(t.Context()) })
		synctest.Wait()
		close(goOn)
		rig.WantIs(t, <-do, relock.ErrNotHeld)
		close(gate)
		rig.WantIs(t, <-waits, relock.ErrOwnerMismatch)
		virtual.Sleep(time.Second)
		x.Holders(l, "me", 2) // one in each process
		rig.End(t, h)
		rig.End(t, other)
		x.Frees("l")
	})
}

// The only hold of an owner that waits ends meanwhile.
// Fails when the wait goes on: it would return with nothing, and its signal be nobody's.
func TestAWaitThatHasNoHoldLeftIsLostAndItsSignalIsTheNextOnes(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		var first *rig.Sleep
		err := p[0].l.Do(t.Context(), func(ctx context.Context) error {
			first = x.Sleeps(ctx, p[0].c, 0)
			return nil
		})
		rig.WantIs(t, err, relock.ErrNotHeld)
		synctest.Wait()
		if !rig.IsShut(first.Done) || !errors.Is(first.Err, relock.ErrLost) {
			t.Fatalf("the wait is over %v, error %v, want it lost", rig.IsShut(first.Done), first.Err)
		}
		next := p[1].sleeps(x)
		signalsAndUnlocks(t, p[2].l)
		next.Woken()
		rig.Must(t, p[1].l.Unlock())
		rig.WantBare(t, x.Redis, "l")
		if left := rig.Remains(p[0].Client); left != "" {
			t.Errorf("the client keeps %s", left)
		}
	})
}

// The owner has lost its hold by another handle than that of the condition, and has not unlocked it.
// Fails when it is told that it holds nothing: there is something to unlock.
func TestSignalAfterALossByAnotherHandleSaysSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, me := x.Client(), x.By("me")
		l := c.NewLock("l", relock.NoWatchdog())
		rig.Must(t, l.Lock(me))
		virtual.Sleep(time.Hour)
		cond := c.NewLock("l").NewCond("c")
		rig.WantIs(t, cond.Signal(me), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		if err := cond.Signal(me); errors.Is(err, relock.ErrLost) {
			t.Errorf("Signal after the Unlock: %v, want one that is not lost", err)
		}
	})
}

// Fails when a condition says only that the owner has lost its hold: it was the client that was closed.
func TestSignalAfterCloseSaysThatTheClientIsClosed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, me := x.Client(), x.By("me")
		l := c.NewLock("l")
		rig.Must(t, l.Lock(me))
		rig.Must(t, c.Close())
		err := l.NewCond("c").Signal(me)
		rig.WantIs(t, err, relock.ErrLost)
		rig.WantIs(t, err, relock.ErrClosed)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// Fails when what is done under a hold goes on after it has ended, because its owner waited just then.
func TestAnUnlockDuringAWaitOfItsOwnerEndsTheContextsOfTheHold(t *testing.T) {
	for _, way := range []string{"Unlock", "Release"} {
		t.Run(way, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := x.Client()
				l, other := c.NewLock("l"), c.NewLock("l")
				rig.Must(t, l.Lock(x.By("me")))
				h := acquire(t, other, x.By("me"))
				under := h.Context(t.Context())
				s := x.Sleeps(x.By("me"), l.NewCond("c"), 0)
				if rig.IsShut(under.Done()) {
					t.Error("the wait has ended the context")
				}
				end := h.Release
				if way == "Unlock" {
					end = other.Unlock
				}
				rig.WantIs(t, end(), relock.ErrNotHeld)
				if !rig.IsShut(under.Done()) {
					t.Error("the context goes on")
				}
				rig.WantIs(t, context.Cause(under), relock.ErrNotHeld)
				s.Waits()
				signalsAndUnlocks(t, x.Lock("l"))
				s.Woken()
				rig.Must(t, l.Unlock())
				x.Frees("l")
			})
		})
	}
}
