package contract_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// elsewhere restores the owner of a context in another process: from its text.
func elsewhere(t *testing.T, ctx context.Context) context.Context { //nolint:revive // t first, as everywhere
	t.Helper()
	id, ok := relock.OwnerFrom(ctx)
	if !ok {
		t.Fatal("the context names no owner")
	}
	return relock.WithOwner(t.Context(), id)
}

// exclusive are the kinds of lock that one owner has at a time, each made in a client of its own.
var exclusive = map[string]func(x *rig.Lab) *relock.Lock{
	"plain":   func(x *rig.Lab) *relock.Lock { return x.Lock("a") },
	"local":   func(x *rig.Lab) *relock.Lock { return x.Lock("a", relock.LocalReentry()) },
	"fair":    func(x *rig.Lab) *relock.Lock { return x.Lock("a", relock.Fair()) },
	"rw":      func(x *rig.Lab) *relock.Lock { return x.Client().NewRWLock("a").WLocker() },
	"fair rw": func(x *rig.Lab) *relock.Lock { return x.Client().NewRWLock("a", relock.Fair()).WLocker() },
	"semaphore": func(x *rig.Lab) *relock.Lock {
		return x.Client().NewSemaphore("a", 1)
	},
}

func eachExclusive(t *testing.T, f func(t *testing.T, x *rig.Lab, lock func() *relock.Lock)) {
	t.Helper()
	for kind, lock := range exclusive {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) { f(t, x, func() *relock.Lock { return lock(x) }) })
		})
	}
}

func enters(t *testing.T, l *relock.Lock, ctx context.Context) *relock.Hold { //nolint:revive // t first, as everywhere
	t.Helper()
	h, err := l.TryAcquire(ctx, 0)
	rig.Must(t, err)
	synctest.Wait() // until the inbox hears
	return h
}

func keepsOut(t *testing.T, l *relock.Lock, ctx context.Context) { //nolint:revive // t first, as everywhere
	t.Helper()
	_, err := l.TryAcquire(ctx, 0)
	rig.WantIs(t, err, relock.ErrNotAcquired)
}

func TestBranchEntersWhatItsAncestorsHold(t *testing.T) {
	eachExclusive(t, func(t *testing.T, x *rig.Lab, lock func() *relock.Lock) {
		flow := x.By("flow")
		outer := enters(t, lock(), flow)
		stranger := rig.Beside(func() error { return lock().Lock(x.By("stranger")) })
		rig.StillWaits(t, stranger)
		held, deep := []*relock.Hold{outer}, flow
		for range 5 {
			deep = relock.WithChildOwner(deep)
			h := enters(t, lock(), elsewhere(t, deep))
			if h.Token() != outer.Token() {
				t.Errorf("the branch has token %d, want %d", h.Token(), outer.Token())
			}
			held = append(held, h)
		}
		virtual.Sleep(2 * time.Minute) // renewals keep them all
		synctest.Wait()
		for _, h := range slices.Backward(held) {
			rig.StillWaits(t, stranger)
			rig.Must(t, h.Release())
		}
		rig.Must(t, rig.Returned(t, stranger))
	})
}

// TestBranchesOfOneFlowExcludeEachOther has siblings, and children of siblings, ask for a lock that one
// of them holds: with and without an ancestor that holds it.
func TestBranchesOfOneFlowExcludeEachOther(t *testing.T) {
	eachExclusive(t, func(t *testing.T, x *rig.Lab, lock func() *relock.Lock) {
		flow := x.By("flow")
		first, second := relock.WithChildOwner(flow), relock.WithChildOwner(flow)
		deeper, cousin := relock.WithChildOwner(first), relock.WithChildOwner(second)
		for _, above := range []bool{true, false} {
			var outer *relock.Hold
			if above {
				outer = enters(t, lock(), flow)
			}
			for _, c := range []struct {
				holds   context.Context
				refused []context.Context
			}{
				{first, []context.Context{second, cousin, relock.WithChildOwner(flow)}},
				{deeper, []context.Context{first, second, cousin, relock.WithChildOwner(first)}},
			} {
				h := enters(t, lock(), c.holds)
				for _, other := range c.refused {
					keepsOut(t, lock(), elsewhere(t, other))
				}
				again := enters(t, lock(), elsewhere(t, c.holds)) // its own hold is no hindrance
				rig.Must(t, again.Release())
				if !above {
					keepsOut(t, lock(), flow)
				}
				rig.Must(t, h.Release())
			}
			if above {
				rig.Must(t, outer.Release())
			}
		}
		x.Frees("a")
	})
}

func TestBranchesWaitInOrderOfArrivalAheadOfStrangers(t *testing.T) {
	eachExclusive(t, func(t *testing.T, x *rig.Lab, lock func() *relock.Lock) {
		flow := x.By("flow")
		outer := enters(t, lock(), flow)
		first := enters(t, lock(), relock.WithChildOwner(flow))
		stranger := rig.Beside(func() error { return lock().Lock(x.By("stranger")) })
		rig.StillWaits(t, stranger)
		var waiting []chan *relock.Hold
		for range 4 {
			got := make(chan *relock.Hold, 1)
			waiting = append(waiting, got)
			go func() {
				h, err := lock().Acquire(relock.WithChildOwner(flow))
				if err != nil {
					t.Error(err)
				}
				got <- h
			}()
			virtual.Sleep(time.Second)
			synctest.Wait()
		}
		rig.Must(t, first.Release())
		for i, got := range waiting {
			synctest.Wait()
			for _, later := range waiting[i+1:] {
				if len(later) > 0 {
					t.Fatalf("a later branch holds before branch %d has gone", i)
				}
			}
			select {
			case h := <-got:
				if h.Token() != outer.Token() {
					t.Errorf("branch %d has token %d, want %d", i, h.Token(), outer.Token())
				}
				rig.Must(t, h.Release())
			default:
				t.Fatalf("branch %d does not hold", i)
			}
		}
		rig.StillWaits(t, stranger)
		rig.Must(t, outer.Release())
		rig.Must(t, rig.Returned(t, stranger))
	})
}

func TestBranchLeavesTheQueueWithItsContext(t *testing.T) {
	eachExclusive(t, func(t *testing.T, x *rig.Lab, lock func() *relock.Lock) {
		flow := x.By("flow")
		outer := enters(t, lock(), flow)
		first := enters(t, lock(), relock.WithChildOwner(flow))
		ctx, cancel := context.WithCancel(relock.WithChildOwner(flow))
		leaving := rig.Beside(func() error { return lock().Lock(ctx) })
		rig.StillWaits(t, leaving)
		last := rig.Beside(func() error { return lock().Lock(relock.WithChildOwner(flow)) })
		rig.StillWaits(t, last)
		cancel()
		rig.WantIs(t, rig.Returned(t, leaving), context.Canceled)
		rig.Must(t, first.Release())
		rig.Must(t, rig.Returned(t, last))
		_ = outer.Release()
	})
}

func TestBranchLosesItsHoldWhenAnAncestorUnlocks(t *testing.T) {
	eachExclusive(t, func(t *testing.T, x *rig.Lab, lock func() *relock.Lock) {
		flow := x.By("flow")
		child := relock.WithChildOwner(flow)
		outer := enters(t, lock(), flow)
		middle := enters(t, lock(), child)
		inner := enters(t, lock(), relock.WithChildOwner(child))
		stranger := rig.Beside(func() error { return lock().Lock(x.By("stranger")) })
		rig.StillWaits(t, stranger)
		rig.Must(t, middle.Release())
		synctest.Wait()
		rig.WantIs(t, inner.Err(), relock.ErrLost)
		if !strings.Contains(inner.Err().Error(), "ancestor") {
			t.Errorf("%v does not say why", inner.Err())
		}
		rig.WantIs(t, inner.Release(), relock.ErrLost)
		rig.Must(t, outer.Err())
		rig.StillWaits(t, stranger)
		next := enters(t, lock(), relock.WithChildOwner(flow))
		rig.Must(t, outer.Release())
		synctest.Wait()
		rig.WantIs(t, next.Err(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, stranger))
	})
}

// TestBranchLosesItsHoldWithAnAncestorThatIsCutOff: until the branch can have heard of that, nobody
// else is granted the lock.
func TestBranchLosesItsHoldWithAnAncestorThatIsCutOff(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		flow := x.By("flow")
		outer := enters(t, c.NewLock("a"), flow)
		branch, cut := x.Linked()
		virtual.Sleep(5 * time.Second)
		inner := enters(t, branch.NewLock("a"), relock.WithChildOwner(flow))
		stranger := rig.Beside(func() error { return x.Lock("a").Lock(x.By("stranger")) })
		rig.StillWaits(t, stranger)
		link.Cut()
		virtual.Sleep(29 * time.Second)
		cut.Cut() // it cannot hear that its ancestor has lost the lock
		for inner.Err() == nil {
			rig.StillWaits(t, stranger)
			virtual.Sleep(100 * time.Millisecond)
		}
		rig.WantIs(t, outer.Err(), relock.ErrLost)
		rig.WantIs(t, inner.Err(), relock.ErrLost)
		virtual.Sleep(15 * time.Second) // a heartbeat of the stranger's
		rig.Must(t, rig.Returned(t, stranger))
	})
}

func TestBranchHearsThatItsAncestorWasLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		flow := x.By("flow")
		outer := enters(t, c.NewLock("a"), flow)
		inner := enters(t, x.Lock("a"), relock.WithChildOwner(flow))
		stranger := rig.Beside(func() error { return x.Lock("a").Lock(x.By("stranger")) })
		link.Cut()
		virtual.Sleep(45 * time.Second)
		synctest.Wait()
		rig.WantIs(t, outer.Err(), relock.ErrLost)
		rig.WantIs(t, inner.Err(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, stranger))
	})
}

func TestBranchOfAnOwnerThatHasLostTheLockIsToldSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("a")
		other := c.NewLock("a") // the lost hold does not occupy this handle
		flow := x.By("flow")
		outer := enters(t, l, flow)
		if done, err := x.Lock("a").ForceUnlock(t.Context()); !done || err != nil {
			t.Fatalf("ForceUnlock = %v, %v", done, err)
		}
		synctest.Wait()
		for _, handle := range []*relock.Lock{l, other} {
			_, err := handle.TryAcquire(relock.WithChildOwner(relock.WithChildOwner(flow)), 0)
			rig.WantIs(t, err, relock.ErrLost)
		}
		rig.WantIs(t, outer.Release(), relock.ErrLost)
		rig.Must(t, enters(t, other, relock.WithChildOwner(flow)).Release())
	})
}

func TestForceUnlockOfAnAncestorEndsItsBranches(t *testing.T) {
	eachExclusive(t, func(t *testing.T, x *rig.Lab, lock func() *relock.Lock) {
		flow := x.By("flow")
		outer, inner := enters(t, lock(), flow), enters(t, lock(), relock.WithChildOwner(flow))
		if done, err := lock().ForceUnlock(t.Context()); !done || err != nil {
			t.Fatalf("ForceUnlock = %v, %v", done, err)
		}
		synctest.Wait()
		rig.WantIs(t, outer.Err(), relock.ErrLost)
		rig.WantIs(t, inner.Err(), relock.ErrLost)
		x.Frees("a")
	})
}

// Two branches exclude each other, also where the owner of both has entered once more in between.
func TestACallUnderAHoldOfAnotherBranchIsADeadlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		flow := x.By("flow")
		first, second := relock.WithChildOwner(flow), relock.WithChildOwner(flow)
		ctx := t.Context()
		for _, by := range []context.Context{flow, first, flow} {
			owner, _ := relock.OwnerFrom(by)
			ctx = acquire(t, c.NewLock("a"), relock.WithOwner(ctx, owner)).Context(ctx)
		}
		branch, _ := relock.OwnerFrom(second)
		_, err := c.NewLock("a").TryAcquire(relock.WithOwner(ctx, branch), 0)
		rig.WantIs(t, err, relock.ErrDeadlock)
	})
}

// An owner that reads enters again at once, so a read hold of another one, under which its call runs, is not in its way.
func TestAnOwnerThatReadsReadsAgainUnderAHoldOfAnother(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		mine := acquire(t, c.NewRWLock("a").RLocker(), x.By("me"))
		yours := acquire(t, c.NewRWLock("a").RLocker(), x.By("you"))
		ctx := relock.WithOwner(yours.Context(mine.Context(t.Context())), "me")
		rig.Must(t, acquire(t, c.NewRWLock("a").RLocker(), ctx).Release())
		_, err := c.NewRWLock("a").WLocker().TryAcquire(ctx, 0)
		rig.WantIs(t, err, relock.ErrUpgrade)
	})
}

func TestBranchReadsAndWritesByTheRuleOfItsFlow(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		lock := func() *relock.RWLock { return x.Client().NewRWLock("a") }
		flow := x.By("flow")
		first, second, third := relock.WithChildOwner(flow), relock.WithChildOwner(flow), relock.WithChildOwner(flow)

		// Beneath a writer, branches read together and write alone.
		outer := enters(t, lock().WLocker(), flow)
		one, two := enters(t, lock().RLocker(), first), enters(t, lock().RLocker(), second)
		keepsOut(t, lock().WLocker(), third)
		_, err := lock().WLocker().TryAcquire(relock.WithChildOwner(first), 0)
		rig.WantIs(t, err, relock.ErrUpgrade)
		writer := rig.Beside(func() error { return lock().WLocker().Lock(third) })
		rig.StillWaits(t, writer)
		keepsOut(t, lock().RLocker(), relock.WithChildOwner(flow)) // a writer waits
		deep := enters(t, lock().RLocker(), relock.WithChildOwner(first))
		keepsOut(t, lock().RLocker(), x.By("stranger"))
		rig.Must(t, deep.Release())
		rig.Must(t, one.Release())
		rig.StillWaits(t, writer)
		rig.Must(t, two.Release())
		rig.Must(t, rig.Returned(t, writer))
		keepsOut(t, lock().RLocker(), second)
		rig.Must(t, outer.Release())
	})
}

func TestBranchDoesNotWriteWhereAnAncestorReads(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		lock := func() *relock.RWLock { return x.Client().NewRWLock("a") }
		flow := x.By("flow")
		outer := enters(t, lock().RLocker(), flow)
		other := enters(t, lock().RLocker(), x.By("other"))
		writer := rig.Beside(func() error { return lock().WLocker().Lock(x.By("writer")) })
		rig.StillWaits(t, writer)
		child := relock.WithChildOwner(flow)
		inner := enters(t, lock().RLocker(), child) // ahead of the writer, who waits for it
		if inner.Token() != outer.Token() {
			t.Errorf("the branch has token %d, want %d", inner.Token(), outer.Token())
		}
		for _, ctx := range []context.Context{relock.WithChildOwner(flow), relock.WithChildOwner(child)} {
			_, err := lock().WLocker().TryAcquire(ctx, time.Minute)
			rig.WantIs(t, err, relock.ErrUpgrade)
		}
		rig.Must(t, outer.Release())
		synctest.Wait()
		rig.WantIs(t, inner.Err(), relock.ErrLost)
		rig.Must(t, other.Err())
		rig.StillWaits(t, writer)
		rig.Must(t, other.Release())
		rig.Must(t, rig.Returned(t, writer))
	})
}

// TestBranchThatWaitsIsRefusedWhenItsAncestorComesToRead: it would wait for its ancestor.
func TestBranchThatWaitsIsRefusedWhenItsAncestorComesToRead(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		lock := func() *relock.RWLock { return x.Client().NewRWLock("a") }
		flow := x.By("flow")
		stranger := enters(t, lock().WLocker(), x.By("stranger"))
		outer := rig.Beside(func() error { return lock().RLocker().Lock(flow) })
		rig.StillWaits(t, outer)
		inner := rig.Beside(func() error { return lock().WLocker().Lock(relock.WithChildOwner(flow)) })
		rig.StillWaits(t, inner)
		rig.Must(t, stranger.Release())
		rig.Must(t, rig.Returned(t, outer))
		rig.WantIs(t, rig.Returned(t, inner), relock.ErrUpgrade)
	})
}

// TestDowngradeEndsTheBranchesThatWrite: readers of others come in, but not before they have gone.
func TestDowngradeEndsTheBranchesThatWrite(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		lock := func() *relock.RWLock { return x.Client().NewRWLock("a") }
		flow := x.By("flow")
		own := lock()
		rig.Must(t, own.Lock(flow))
		inner := enters(t, lock().WLocker(), relock.WithChildOwner(flow))
		reader := rig.Beside(func() error { return lock().RLocker().Lock(x.By("reader")) })
		rig.StillWaits(t, reader)
		rig.Must(t, own.Downgrade(flow))
		synctest.Wait()
		rig.WantIs(t, inner.Err(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, reader))
		rig.Must(t, own.RUnlock())
	})
}

// TestBranchThatWaitsEntersOnceItsAncestorHolds: it stood in the queue behind others.
func TestBranchThatWaitsEntersOnceItsAncestorHolds(t *testing.T) {
	eachExclusive(t, func(t *testing.T, x *rig.Lab, lock func() *relock.Lock) {
		flow := x.By("flow")
		stranger := enters(t, lock(), x.By("stranger"))
		outer := rig.Beside(func() error { return lock().Lock(flow) })
		rig.StillWaits(t, outer)
		other := rig.Beside(func() error { return lock().Lock(x.By("other")) })
		rig.StillWaits(t, other)
		inner := rig.Beside(func() error { return lock().Lock(relock.WithChildOwner(flow)) })
		rig.StillWaits(t, inner)
		rig.Must(t, stranger.Release())
		rig.Must(t, rig.Returned(t, outer))
		rig.Must(t, rig.Returned(t, inner))
		rig.StillWaits(t, other)
	})
}

func TestBranchUsesThePermitsOfItsAncestor(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		lock := func() *relock.Lock { return x.Client().NewSemaphore("a", 3, relock.Weight(2)) }
		flow := x.By("flow")
		outer := enters(t, lock(), flow)
		inner := enters(t, lock(), relock.WithChildOwner(flow))
		keepsOut(t, lock(), relock.WithChildOwner(flow))
		one := enters(t, x.Client().NewSemaphore("a", 3), x.By("stranger"))
		keepsOut(t, x.Client().NewSemaphore("a", 3), x.By("another"))
		rig.Must(t, inner.Release())
		rig.Must(t, enters(t, lock(), relock.WithChildOwner(flow)).Release())
		rig.Must(t, outer.Release())
		rig.Must(t, one.Release())
		x.Frees("a")
	})
}

func TestOwnerThatHoldsReentersWhileABranchIsInside(t *testing.T) {
	eachExclusive(t, func(t *testing.T, x *rig.Lab, lock func() *relock.Lock) {
		flow := x.By("flow")
		outer := enters(t, lock(), flow)
		inner := enters(t, lock(), relock.WithChildOwner(flow))
		again := enters(t, lock(), flow)
		rig.Must(t, outer.Release())
		synctest.Wait()
		rig.Must(t, inner.Err()) // the flow still holds
		rig.Must(t, inner.Release())
		rig.Must(t, again.Release())
		x.Frees("a")
	})
}

func TestContextThatDescendsFromAHoldTellsADeadlockFromAnEntrance(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		flow := x.By("flow")
		err := l.Do(flow, func(ctx context.Context) error {
			return l.Do(relock.WithChildOwner(ctx), func(ctx context.Context) error {
				id, _ := relock.OwnerFrom(flow)
				rig.Must(t, l.Do(relock.WithOwner(ctx, id), func(context.Context) error { return nil }))
				return nil
			})
		})
		rig.Must(t, err)
		err = l.Do(relock.WithChildOwner(flow), func(ctx context.Context) error {
			for _, other := range []context.Context{relock.WithOwner(ctx, "flow"), relock.WithChildOwner(relock.WithOwner(ctx, "flow"))} {
				err := l.Lock(other)
				rig.WantIs(t, err, relock.ErrDeadlock)
				if !strings.Contains(err.Error(), "a branch of the same flow") {
					t.Errorf("%v does not say so", err)
				}
			}
			return nil
		})
		rig.Must(t, err)
	})
}

func TestConditionRefusesABranchThatHasEntered(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("a")
		cond := l.NewCond("ready")
		flow := x.By("flow")
		child := relock.WithChildOwner(flow)
		outer, inner := enters(t, l, flow), enters(t, l, child)
		rig.WantIs(t, cond.Wait(flow), relock.ErrOwnerMismatch)
		rig.WantIs(t, cond.Wait(child), relock.ErrOwnerMismatch)
		rig.Must(t, cond.Signal(child))
		rig.Must(t, inner.Release())
		rig.Must(t, outer.Release())
		x.Frees("a")
	})
}

func TestBranchHandsItsHoldOver(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		flow := x.By("flow")
		child := relock.WithChildOwner(flow)
		outer, inner := enters(t, x.Lock("a"), flow), enters(t, x.Lock("a"), child)
		ticket, err := inner.Detach(t.Context(), time.Minute)
		rig.Must(t, err)
		keepsOut(t, x.Lock("a"), relock.WithChildOwner(flow))
		again, err := x.Client().Resume(elsewhere(t, child), ticket)
		rig.Must(t, err)
		if again.Token() != outer.Token() {
			t.Errorf("resumed with token %d, want %d", again.Token(), outer.Token())
		}
		rig.Must(t, again.Release())
		rig.Must(t, outer.Release())
		x.Frees("a")
	})
}

func TestChildOwnerIsMadeOfAnOwnerOnly(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		long := x.By("flow")
		for range 60 {
			long = relock.WithChildOwner(long)
		}
		for name, ctx := range map[string]context.Context{
			"no owner":        relock.WithChildOwner(t.Context()),
			"no owner, twice": relock.WithChildOwner(relock.WithChildOwner(t.Context())),
			"too deep":        long,
			"too deep, told":  elsewhere(t, long),
			"forged":          x.By("a~.b"),
			"forged, longer":  x.By("a~.AAAAAAAAAAA~.b"),
			"forged, at end":  x.By("a~.AAAAAAAAAAA~."),
			"forged, no bits": x.By("a~.AAAAAAAAAAB"),
		} {
			_, err := l.TryAcquire(ctx, 0)
			if rig.WantIs(t, err, relock.ErrInvalidOption); strings.HasPrefix(name, "too deep") && !strings.Contains(err.Error(), "nest less deep") {
				t.Errorf("%s: %v", name, err)
			}
		}
		h := enters(t, l, x.By("a~.AAAAAAAAAAA")) // as WithChildOwner makes them
		rig.Must(t, h.Release())
		_, err := x.Client().NewLock("b", relock.Owner("me")).TryAcquire(relock.WithChildOwner(x.By("me")), 0)
		rig.WantIs(t, err, relock.ErrOwnerMismatch)
	})
}

func TestMultiEntersWhatTheFlowHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		flow := x.By("flow")
		child := relock.WithChildOwner(flow)
		outer := enters(t, x.Lock("a"), flow)
		both := relock.NewMulti(x.Lock("a"), x.Lock("b"))
		rig.Must(t, both.Do(child, func(context.Context) error {
			keepsOut(t, x.Lock("a"), relock.WithChildOwner(flow))
			keepsOut(t, x.Lock("b"), flow)
			return nil
		}))
		rig.Must(t, outer.Release())
		x.Frees("a")
		x.Frees("b")
	})
}

func TestQuorumRefusesAChildOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		_, err := newPrimaries(x, 3).lock("a").Acquire(relock.WithChildOwner(x.By("flow")))
		rig.WantIs(t, err, relock.ErrInvalidOption)
	})
}

// TestBranchCostsOneRoundTrip where an ancestor holds, and where none does no more than an owner.
func TestBranchCostsOneRoundTrip(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		flow := x.By("flow")
		a := x.Actor()
		a.Warm()
		before := a.Sent("acquire") + a.Sent("hold") + a.Sent("release")
		sent := func() int { return a.Sent("acquire") + a.Sent("hold") + a.Sent("release") - before }
		h := enters(t, a.Client.NewLock("free"), relock.WithChildOwner(flow))
		rig.Must(t, h.Release())
		if n := sent(); n != 2 {
			t.Errorf("a free lock costs a branch %d commands, want 2", n)
		}
		outer := enters(t, x.Lock("a"), flow)
		before += sent()
		h = enters(t, a.Client.NewLock("a"), relock.WithChildOwner(flow))
		if n := sent(); n != 1 {
			t.Errorf("entering costs %d commands, want 1", n)
		}
		rig.Must(t, h.Release())
		if n := sent(); n != 2 {
			t.Errorf("entering and leaving costs %d commands, want 2", n)
		}
		rig.Must(t, outer.Release())
	})
}

// A flow and its branch share a handle. The flow's nested call ends while the branch is inside, which is allowed, as the
// outer hold goes on: it must not end the branch's hold.
func TestUnlockOfAnOwnerEndsNoHoldOfItsBranch(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, flow := x.Lock("a"), x.By("flow")
		rig.Must(t, l.Lock(flow))
		synctest.Wait()
		rig.Must(t, l.Lock(flow)) // a nested call
		if err := l.Lock(relock.WithChildOwner(flow)); err != nil {
			rig.WantIs(t, err, relock.ErrOwnerMismatch) // as on a reading side
			rig.Must(t, l.Unlock())
			rig.Must(t, l.Unlock())
			return
		}
		rig.Must(t, l.Unlock()) // of the nested call
		synctest.Wait()
		keepsOut(t, x.Lock("a"), relock.WithChildOwner(flow))
		rig.Must(t, l.Unlock()) // of the branch
		rig.Must(t, l.Unlock()) // of the flow
	})
}

// A flow and its branch share a handle. The branch loses its hold, and the flow unlocks.
func TestLossOfABranchIsNotToldToItsFlow(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, flow := x.Lock("a"), x.By("flow")
		child := relock.WithChildOwner(flow)
		rig.Must(t, l.Lock(flow))
		synctest.Wait()
		if err := l.Lock(child); err != nil {
			rig.WantIs(t, err, relock.ErrOwnerMismatch)
			rig.Must(t, l.Unlock())
			return
		}
		name, _ := relock.OwnerFrom(child)
		if done, err := x.Eye.NewLock("a").ForceUnlockHolder(t.Context(), relock.Holder{Owner: name}); !done || err != nil {
			t.Fatalf("ForceUnlockHolder = %v, %v", done, err)
		}
		synctest.Wait()
		if err := l.Unlock(); err != nil { // of the flow
			t.Errorf("the flow, whose hold was never lost, is told %v", err)
		}
		_ = l.Unlock()
	})
}

// A branch hands its hold over, and the ancestor's hold that it had entered ends. Nobody can resume the ticket, and nobody
// trusts what it has, so it is in nobody's way.
func TestATicketOfABranchEndsWithItsAncestor(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		flow := x.By("flow")
		outer := enters(t, x.Lock("a"), flow)
		ticket := detach(t, enters(t, x.Lock("a"), relock.WithChildOwner(flow)), 10*time.Hour)
		rig.Must(t, outer.Release())
		synctest.Wait()
		_, err := x.Client().Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrLost)
		virtual.Sleep(time.Minute)
		x.Frees("a")
	})
}

// A branch is inside by a handle of its own, and its flow, which holds by another one, re-enters by that of the branch.
func TestAFlowLocksByNoHandleByWhichItsBranchIsInside(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, flow := x.Client(), x.By("flow")
		of := c.NewLock("a")
		outer := enters(t, c.NewLock("a"), flow)
		rig.Must(t, of.Lock(relock.WithChildOwner(flow)))
		rig.WantIs(t, of.Lock(flow), relock.ErrOwnerMismatch)
		again, err := of.Acquire(flow)
		rig.Must(t, err)
		rig.Must(t, of.Unlock())
		rig.Must(t, again.Release())
		rig.Must(t, outer.Release())
	})
}

// The branch would come back beside the hold of its flow, as soon as that signals it. Fails when the flow's Unlock could
// end the branch's hold.
func TestAFlowLocksByNoHandleByWhichItsBranchWaitsOnACondition(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, flow := x.Client(), x.By("flow")
		of, branch := c.NewLock("a"), relock.WithChildOwner(flow)
		rig.Must(t, of.Lock(branch))
		waits := rig.Beside(func() error { return of.NewCond("c").Wait(branch) })
		rig.StillWaits(t, waits)
		rig.WantIs(t, of.Lock(flow), relock.ErrOwnerMismatch)
		outer := enters(t, c.NewLock("a"), flow)
		rig.Must(t, of.NewCond("c").Signal(flow))
		rig.Must(t, rig.Returned(t, waits))
		rig.Must(t, of.Unlock())
		rig.Must(t, outer.Release())
	})
}

// A flow that holds nothing waits for its branch like for anybody, also by one handle.
func TestAFlowWaitsForItsBranchByOneHandle(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, flow := x.Lock("a"), x.By("flow")
		rig.Must(t, l.Lock(relock.WithChildOwner(flow)))
		waits := rig.Beside(func() error { return l.Lock(flow) })
		rig.StillWaits(t, waits)
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, waits))
		rig.Must(t, l.Unlock())
	})
}

// The branch has lost its hold and not unlocked it. Fails when its flow's Unlock could end that.
func TestAFlowWaitsForTheUnlockOfALostHoldOfItsBranch(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, flow := x.Lock("a"), x.By("flow")
		rig.Must(t, l.Lock(relock.WithChildOwner(flow)))
		synctest.Wait()
		_, err := x.Eye.NewLock("a").ForceUnlock(t.Context())
		rig.Must(t, err)
		synctest.Wait()
		waits := rig.Beside(func() error { return l.Lock(flow) })
		rig.StillWaits(t, waits)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, waits))
		rig.Must(t, l.Unlock())
	})
}

// Fails when an owner whose name begins with another's waits for that one's hold in vain.
func TestAnOwnerWithALongerNameIsNoBranch(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		h := acquire(t, l, x.By("job-1"))
		_, err := l.TryLock(relock.WithOwner(h.Context(t.Context()), "job-10"), time.Second)
		rig.WantIs(t, err, relock.ErrDeadlock)
		rig.Must(t, h.Release())
	})
}
