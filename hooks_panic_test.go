package relock_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
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
				inLab(t, func(t *testing.T, x *lab) {
					c := x.client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) { end() }}))
					l := handle(c)
					for way, call := range everyWayIn(l) {
						survive(func() { t.Errorf("%s returned %v", way, call(t.Context())) })
						wantHolds(t, l, 0)
						synctest.Wait()
						if left := relock.Remains(c); left != "" {
							t.Errorf("%s left %s", way, left)
						}
						wantIs(t, l.Unlock(), relock.ErrNotHeld)
						x.holders(l, "", 0)
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
				inLab(t, func(t *testing.T, x *lab) {
					dies := false
					c := x.client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) {
						if dies {
							end()
						}
					}}))
					l := c.NewLock("a", opts...)
					outer := acquire(t, l, x.by("me"))
					dies = true
					for _, nested := range []*relock.Lock{l, c.NewLock("a", opts...)} {
						for way, call := range everyWay(nested) {
							survive(func() { t.Errorf("%s returned %v", way, call(x.by("me"))) })
							wantHolds(t, l, 1)
							synctest.Wait()
							x.holders(l, "me", 1)
						}
					}
					noErr(t, outer.Err())
					noErr(t, outer.Release())
					x.frees("a")
				})
			})
		}
	}
}

// A hook that has unlocked the lock before it panics: the hold that is the next
// call's by then stays that one's.
func TestPanicOfAHookThatHasUnlockedEndsNoOtherHold(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		var l *relock.Lock
		calls := 0
		l = x.client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) {
			if calls++; calls == 2 {
				_ = l.Unlock()
				othersRest()
				panic("hook")
			}
		}})).NewLock("a")
		noErr(t, l.Lock(t.Context()))
		time.Sleep(time.Second) // there are tokens to pass on
		second := beside(func() error { survive(func() { _ = l.Lock(t.Context()) }); return nil })
		synctest.Wait()
		third := beside(func() error { return l.Lock(t.Context()) })
		synctest.Wait()
		noErr(t, l.Unlock())
		time.Sleep(time.Minute)
		noErr(t, hasReturned(t, second))
		noErr(t, hasReturned(t, third))
		wantHolds(t, l, 1)
		x.refuses(x.lock("a"))
		noErr(t, l.Unlock())
	})
}

// othersRest lets everybody else of the bubble come to rest.
func othersRest() { time.Sleep(time.Millisecond) }

// Two holds of one owner are found lost by a question to one, and the hook panics: the
// other's context did not end, its loss was told to nobody, and Redis not of either.
// Fails without the fix: hooks come after everything else, and each is called.
func TestPanicOfTheLostHookKeepsNothingBack(t *testing.T) {
	for ending, end := range endings {
		t.Run(ending, func(t *testing.T) {
			inLab(t, func(t *testing.T, x *lab) {
				told := 0
				c := x.client(relock.Trace(relock.Hooks{Lost: func(relock.Event) { told++; end() }}))
				l := c.NewLock("a")
				first, second := acquire(t, l, x.by("me")), acquire(t, l, x.by("me"))
				contexts := []context.Context{first.Context(t.Context()), second.Context(t.Context())}
				x.suspend(time.Minute)
				survive(func() { t.Errorf("Err returned %v", first.Err()) })
				synctest.Wait()
				for i, ctx := range contexts {
					if !isShut(ctx.Done()) {
						t.Errorf("context %d goes on", i+1)
					}
				}
				if told != 2 {
					t.Errorf("%d losses told, want 2", told)
				}
				x.frees("a") // its lease has not ended on the server's clock
				wantIs(t, first.Release(), relock.ErrLost)
				wantIs(t, second.Release(), relock.ErrLost)
			})
		})
	}
}

// A re-entry finds the loss of its owner's hold while it states its count, and the
// hook panics: the next re-entry waited for its turn for ever.
// Fails without the fix: the turn is given back however the statement ends.
func TestPanicOfTheLostHookInAStatementStopsNoOther(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked(relock.Trace(relock.Hooks{Lost: func(relock.Event) { panic("hook") }}))
		l, other := c.NewLock("a"), c.NewLock("a")
		outer := acquire(t, l, x.by("me"))
		arrive := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if runs(cmd, "hold") {
				return redistest.Hold(arrive)
			}
			return redistest.Pass
		})
		first := beside(func() error { survive(func() { _ = l.Lock(x.by("me")) }); return nil })
		synctest.Wait()
		second := beside(func() error { return other.Lock(x.by("me")) })
		stillWaits(t, second)
		x.suspend(time.Minute)
		close(arrive)
		noErr(t, hasReturned(t, first))
		noErr(t, hasReturned(t, second))
		noErr(t, other.Unlock())
		wantIs(t, outer.Release(), relock.ErrLost)
	})
}

// Renewals of three locks go out together, and the hook of the first blocks: the others
// were lost, though Redis had renewed them.
// Fails without the fix: all answers are noted before the first hook is called.
func TestRenewedHookThatBlocksLosesNoOtherLock(t *testing.T) {
	for name, locks := range map[string]int{"statements": 3, "one command": 20} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, x *lab) {
				var calls atomic.Int64
				c := x.client(relock.Trace(relock.Hooks{Renewed: func(relock.Event) {
					if calls.Add(1) == 1 {
						time.Sleep(2 * time.Minute)
					}
				}}))
				var holds []*relock.Hold
				for i := range locks {
					holds = append(holds, acquire(t, c.NewLock(string(rune('a'+i))), t.Context()))
				}
				time.Sleep(time.Minute)
				for _, h := range holds {
					noErr(t, h.Err())
				}
				time.Sleep(2 * time.Minute)
				for _, h := range holds {
					noErr(t, h.Release())
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
		"block":  func() { time.Sleep(time.Hour) },
		"Goexit": runtime.Goexit,
	} {
		t.Run(ending, func(t *testing.T) {
			inLab(t, func(t *testing.T, x *lab) {
				c := x.client(relock.Trace(relock.Hooks{Lost: func(relock.Event) { end() }}))
				fixed, forced, other := c.NewLock("fixed", relock.NoWatchdog()), c.NewLock("forced"), c.NewLock("other")
				noErr(t, fixed.Lock(t.Context()))
				noErr(t, other.Lock(t.Context()))
				time.Sleep(time.Minute)
				wantHolds(t, fixed, 0)
				wantHolds(t, other, 1)

				// By a message: the inbox goes on hearing.
				noErr(t, forced.Lock(t.Context()))
				_, err := forced.ForceUnlock(t.Context())
				noErr(t, err)
				synctest.Wait()
				wantHolds(t, forced, 0)
				holder := x.lock("waited")
				noErr(t, holder.Lock(t.Context()))
				waited := c.NewLock("waited")
				waiter := beside(func() error { return waited.Lock(t.Context()) })
				synctest.Wait()
				noErr(t, holder.Unlock())
				noErr(t, hasReturned(t, waiter))
				noErr(t, waited.Unlock())
				noErr(t, other.Unlock())
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
