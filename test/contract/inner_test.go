package contract_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// What these tests see or bring about is no part of what users can.

// TestHooksOfNestedHoldsAreCalledUnderNoMutex: of those that Redis is not told of.
// Fails when one is called under the mutex of its handle: it could not ask that.
func TestHooksOfNestedHoldsAreCalledUnderNoMutex(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var l *relock.Lock
		calls := 0
		free := func() {
			calls++
			asked := make(chan struct{})
			go func() {
				l.HoldCount() // takes the mutexes of its handle and of its client
				close(asked)
			}()
			for tries := 0; ; tries++ { // a goroutine that waits for a mutex does not let virtual time pass
				select {
				case <-asked:
					return
				default:
				}
				if tries == 1_000_000 {
					t.Error("a hook is called under a mutex")
					return
				}
				runtime.Gosched()
			}
		}
		c := x.Client(relock.Trace(relock.Hooks{
			Acquired: func(context.Context, relock.Event) { free() },
			Released: func(relock.Event) { free() },
		}))
		l = c.NewLock("a", relock.LocalReentry())
		for range 3 {
			rig.Must(t, l.Lock(x.By("me")))
		}
		for range 3 {
			rig.Must(t, l.Unlock())
		}
		if calls != 6 {
			t.Errorf("%d calls of hooks, want 6", calls)
		}
	})
}

// Shutdown waited for the session for ever.
func TestGrantThatIsLostBeforeItsCallHasSeenItIsForgotten(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		if err := rig.AskAgainWhenLost(t.Context(), a.NewLock("l")); err == nil {
			t.Error("the call holds what was lost")
		}
		if left := rig.Remains(a.Client); left != "" {
			t.Errorf("the client still keeps %s", left)
		}
	})
}

// Some nested unlocks wait for their turn, and the first of them states all. The
// others had the error of a renewal that too few replicas had, and that has no part
// in it.
// Fails without the fix: such an unlock asks why the session is over only if it is.
func TestUnlocksThatShareAStatementSucceedThoughARenewalFellShort(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a")
		ctx := relock.WithOwner(t.Context(), "me")
		outer, err := l.Acquire(ctx)
		rig.Must(t, err)
		for range 3 {
			rig.Must(t, l.Lock(ctx))
		}
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "hold") {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		var unlocks []<-chan error
		for range 3 {
			unlocks = append(unlocks, rig.Beside(l.Unlock))
			rig.StillWaits(t, unlocks[len(unlocks)-1])
		}
		rig.PretendShort(outer)
		close(gate)
		for _, unlock := range unlocks {
			rig.Must(t, <-unlock)
		}
		rig.Must(t, outer.Release())
	})
}

// A round of renewals had the session among its own, and it is released before the
// round has sent anything. Stated then, it held nothing: Redis made a reader's grant
// of it, where that came before the release, which then found the lock lost.
// Fails without the fix: the round looks once more whether the session is held.
func TestRenewalOfWhatIsReleasedMeanwhileIsNotSent(t *testing.T) {
	for _, locks := range []int{1, 20} { // as a statement, and in one command
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := x.Linked()
			var all []*relock.Lock
			for i := range locks {
				all = append(all, c.NewLock(fmt.Sprint("job ", i), relock.Owner("a")))
				rig.Must(t, all[i].Lock(t.Context()))
			}
			var before int
			rig.RenewAround(c, false, func() {
				for _, l := range all {
					rig.Must(t, l.Unlock())
				}
				before = len(link.Log())
			})
			synctest.Wait()
			for _, args := range link.Log()[before:] {
				if name := rig.ScriptSent(args); name == "hold" || name == "renew" {
					t.Errorf("%d locks: sent %s %q after the release", locks, name, args)
				}
			}
		})
	}
}
