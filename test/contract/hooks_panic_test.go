package contract_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// survive runs f on a goroutine of its own, which a hook may end in any way.
func survive(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	<-done
}

// endings are the ways in which a hook may not return.
var endings = map[string]func(){
	"panic":  func() { panic("hook") },
	"Goexit": runtime.Goexit,
}

// everyWayIn is every call that takes a lock, under a context that everyWay lacks none of.
func everyWayIn(l *relock.Lock) map[string]func(context.Context) error {
	ways := everyWay(l)
	ways["SyncLocker"] = func(ctx context.Context) error { l.SyncLocker(ctx).Lock(); return nil }
	return ways
}

// A hook that panics when its call has the lock: nobody has a hold to release, and it
// was renewed for ever.
// Fails without the fix: the hold is given back unless the hook returns.
func TestPanicOfTheAcquiredHookGivesTheHoldBack(t *testing.T) {
	handles := map[string]func(c *relock.Client) *relock.Lock{
		"plain": func(c *relock.Client) *relock.Lock { return c.NewLock("a") },
		"fair":  func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Fair()) },
		"write": func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() },
		"read":  func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").RLocker() },
		"owner": func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Owner("me")) },
	}
	for kind, handle := range handles {
		for ending, end := range endings {
			t.Run(kind+" "+ending, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					c := x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) { end() }}))
					l := handle(c)
					for way, call := range everyWayIn(l) {
						survive(func() { t.Errorf("%s returned %v", way, call(t.Context())) })
						wantHolds(t, l, 0)
						synctest.Wait()
						if left := rig.Remains(c); left != "" {
							t.Errorf("%s left %s", way, left)
						}
						rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
						x.Holders(l, "", 0)
					}
				})
			})
		}
	}
}

// The same in a nested call, which leaves the outer hold as it was.
func TestPanicOfTheAcquiredHookLeavesTheOuterHold(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"local": {relock.LocalReentry()}, "redis": nil} {
		for ending, end := range endings {
			t.Run(name+" "+ending, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					dies := false
					c := x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) {
						if dies {
							end()
						}
					}}))
					l := c.NewLock("a", opts...)
					outer := acquire(t, l, x.By("me"))
					dies = true
					for _, nested := range []*relock.Lock{l, c.NewLock("a", opts...)} {
						for way, call := range everyWay(nested) {
							survive(func() { t.Errorf("%s returned %v", way, call(x.By("me"))) })
							wantHolds(t, l, 1)
							synctest.Wait()
							x.Holders(l, "me", 1)
						}
					}
					rig.Must(t, outer.Err())
					rig.Must(t, outer.Release())
					x.Frees("a")
				})
			})
		}
	}
}

// A hook that has unlocked the lock before it panics: the hold that is the next
// call's by then stays that one's.
func TestPanicOfAHookThatHasUnlockedEndsNoOtherHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var l *relock.Lock
		calls := 0
		l = x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) {
			if calls++; calls == 2 {
				_ = l.Unlock()
				othersRest()
				panic("hook")
			}
		}})).NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		virtual.Sleep(time.Second) // there are tokens to pass on
		second := rig.Beside(func() error { survive(func() { _ = l.Lock(t.Context()) }); return nil })
		synctest.Wait()
		third := rig.Beside(func() error { return l.Lock(t.Context()) })
		synctest.Wait()
		rig.Must(t, l.Unlock())
		virtual.Sleep(time.Minute)
		rig.Must(t, rig.Returned(t, second))
		rig.Must(t, rig.Returned(t, third))
		wantHolds(t, l, 1)
		x.Refuses(x.Lock("a"))
		rig.Must(t, l.Unlock())
	})
}

// othersRest lets everybody else of the bubble come to rest.
func othersRest() { virtual.Sleep(time.Millisecond) }

// Two holds of one owner are found lost by a question to one, and the hook ends its goroutine.
// Fails when the other's context does not end, its loss is not told, or Redis is not told of either.
func TestALostHookThatEndsItsGoroutineKeepsNothingBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		told := 0
		c := x.Client(relock.Trace(relock.Hooks{Lost: func(relock.Event) { told++; runtime.Goexit() }}))
		l := c.NewLock("a")
		first, second := acquire(t, l, x.By("me")), acquire(t, l, x.By("me"))
		contexts := []context.Context{first.Context(t.Context()), second.Context(t.Context())}
		x.Suspend(time.Minute)
		rig.WantIs(t, first.Err(), relock.ErrLost)
		synctest.Wait()
		for i, ctx := range contexts {
			if !rig.IsShut(ctx.Done()) {
				t.Errorf("context %d goes on", i+1)
			}
		}
		if told != 2 {
			t.Errorf("%d losses told, want 2", told)
		}
		x.Frees("a") // its lease has not ended on the server's clock
		rig.WantIs(t, first.Release(), relock.ErrLost)
		rig.WantIs(t, second.Release(), relock.ErrLost)
	})
}

// Renewals of three locks go out together, and the hook of the first blocks: the others
// were lost, though Redis had renewed them.
// Fails without the fix: all answers are noted before the first hook is called.
func TestRenewedHookThatBlocksLosesNoOtherLock(t *testing.T) {
	for name, locks := range map[string]int{"statements": 3, "one command": 20} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				var calls atomic.Int64
				c := x.Client(relock.Trace(relock.Hooks{Renewed: func(relock.Event) {
					if calls.Add(1) == 1 {
						virtual.Sleep(2 * time.Minute)
					}
				}}))
				var holds []*relock.Hold
				for i := range locks {
					holds = append(holds, acquire(t, c.NewLock(string(rune('a'+i))), t.Context()))
				}
				virtual.Sleep(time.Minute)
				for _, h := range holds {
					rig.Must(t, h.Err())
				}
				virtual.Sleep(2 * time.Minute)
				for _, h := range holds {
					rig.Must(t, h.Release())
				}
			})
		})
	}
}

// The watchdog finds a loss, and the hook blocks, or ends its goroutine: no other lock
// was renewed any more.
// Fails without the fix: the watchdog's goroutine calls no hook.
func TestLostHookThatDoesNotReturnStopsNoRenewal(t *testing.T) {
	for ending, end := range map[string]func(){
		"block":  func() { virtual.Sleep(time.Hour) },
		"Goexit": runtime.Goexit,
	} {
		t.Run(ending, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := x.Client(relock.Trace(relock.Hooks{Lost: func(relock.Event) { end() }}))
				fixed, forced, other := c.NewLock("fixed", relock.NoWatchdog()), c.NewLock("forced"), c.NewLock("other")
				rig.Must(t, fixed.Lock(t.Context()))
				rig.Must(t, other.Lock(t.Context()))
				virtual.Sleep(time.Minute)
				wantHolds(t, fixed, 0)
				wantHolds(t, other, 1)

				// By a message: the inbox goes on hearing.
				rig.Must(t, forced.Lock(t.Context()))
				_, err := forced.ForceUnlock(t.Context())
				rig.Must(t, err)
				synctest.Wait()
				wantHolds(t, forced, 0)
				holder := x.Lock("waited")
				rig.Must(t, holder.Lock(t.Context()))
				waited := c.NewLock("waited")
				waiter := rig.Beside(func() error { return waited.Lock(t.Context()) })
				synctest.Wait()
				rig.Must(t, holder.Unlock())
				rig.Must(t, rig.Returned(t, waiter))
				rig.Must(t, waited.Unlock())
				rig.Must(t, other.Unlock())
				virtual.Sleep(2 * time.Hour)
			})
		})
	}
}

// Fails when a hook that does not return keeps back what was joined to it, whichever of the hooks it is.
func TestAHookThatDoesNotReturnKeepsNoJoinedHookBack(t *testing.T) {
	every := func(f func(what string)) relock.Hooks {
		event := func(what string) func(relock.Event) { return func(relock.Event) { f(what) } }
		call := func(what string) func(context.Context, relock.Event) {
			return func(context.Context, relock.Event) { f(what) }
		}
		return relock.Hooks{
			Waiting: call("waiting"), Acquired: call("acquired"), GaveUp: call("gave up"),
			Renewed: event("renewed"), RenewalFailed: event("renewal failed"), Released: event("released"), Lost: event("lost"),
		}
	}
	for ending, end := range endings {
		t.Run(ending, func(t *testing.T) {
			var told []string
			h := every(func(string) { end() }).Join(every(func(what string) { told = append(told, what) }))
			for _, hook := range []func(context.Context, relock.Event){h.Waiting, h.Acquired, h.GaveUp} {
				survive(func() { hook(t.Context(), relock.Event{}) })
			}
			for _, hook := range []func(relock.Event){h.Renewed, h.RenewalFailed, h.Released, h.Lost} {
				survive(func() { hook(relock.Event{}) })
			}
			want := "waiting, acquired, gave up, renewed, renewal failed, released, lost"
			if got := strings.Join(told, ", "); got != want {
				t.Errorf("called %s\nwant   %s", got, want)
			}
		})
	}
}

// Fails when a call whose hook did not return is told as one that gave up.
func TestACallWhoseWaitingHookDoesNotReturnHasNotGivenUp(t *testing.T) {
	for ending, end := range endings {
		t.Run(ending, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				held := rig.MustAcquire(t, x.Lock("a"))
				c := x.Client(relock.Trace(relock.Hooks{
					Waiting: func(context.Context, relock.Event) { end() },
					GaveUp:  func(_ context.Context, e relock.Event) { t.Errorf("gave up: %v", e.Err) },
				}))
				survive(func() { t.Errorf("Lock returned %v", c.NewLock("a").Lock(t.Context())) })
				synctest.Wait()
				rig.End(t, held)
				x.Frees("a")
			})
		})
	}
}
