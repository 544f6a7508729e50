package contract_test

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// Two owners share a Multi of semaphores, whose Unlock could end the hold of the other one: a third then got in beside
// both.
// Fails when a Multi takes what a semaphore's handle refuses.
func TestAMultiOfSemaphoresIsOfOneOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		m := relock.NewMulti(c.NewSemaphore("a", 2), c.NewSemaphore("b", 2))
		rig.Must(t, m.Lock(x.By("me")))
		for _, other := range []context.Context{x.By("you"), t.Context()} {
			ctx, cancel := context.WithTimeout(other, time.Second)
			rig.WantIs(t, m.Lock(ctx), relock.ErrOwnerMismatch)
			_, err := m.TryLock(ctx, 0)
			rig.WantIs(t, err, relock.ErrOwnerMismatch)
			h, err := m.Acquire(ctx) // its Release ends no other's
			if err == nil {
				err = h.Release()
			}
			rig.Must(t, err)
			cancel()
		}
		rig.WantIs(t, m.Lock(nil), relock.ErrInvalidOption) //nolint:staticcheck // what is refused
		rig.Must(t, m.Lock(x.By("me")))
		rig.Must(t, m.Unlock())
		rig.Must(t, m.Unlock())
		for range 2 {
			_, err := m.TryLock(t.Context(), time.Second)
			rig.Must(t, err)
		}
		_, err := m.TryLock(x.By("me"), time.Second)
		rig.WantIs(t, err, relock.ErrOwnerMismatch)
		rig.Must(t, m.Unlock())
		rig.Must(t, m.Unlock())
	})
}

// With one lock that excludes others Unlock has one owner's holds at a time.
// Fails when another owner is refused there, as with semaphores only, and does not wait.
func TestAMultiOfOneLockAndSemaphoresIsOfEveryOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		m := relock.NewMulti(c.NewLock("a"), c.NewSemaphore("b", 2), c.NewRWLock("c").RLocker())
		rig.Must(t, m.Lock(x.By("me")))
		if got, err := m.TryLock(x.By("you"), 0); got || err != nil {
			t.Errorf("TryLock = %v, %v of another owner, want false, nil", got, err)
		}
		waiter := rig.Beside(func() error { return m.Lock(x.By("you")) })
		rig.StillWaits(t, waiter)
		rig.Must(t, m.Unlock())
		rig.Must(t, rig.Returned(t, waiter))
		rig.Must(t, m.Unlock())
	})
}

// The same seen from outside: of two permits three owners held one each.
func TestAMultiOfSemaphoresLetsInNoMoreThanThereArePermits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		m := relock.NewMulti(x.Client().NewSemaphore("a", 2))
		in := 0
		enter := func(owner string) bool {
			got, _ := m.TryLock(x.By(owner), 0)
			return got
		}
		for _, owner := range []string{"b", "a"} {
			if enter(owner) {
				in++
			}
		}
		if enter("a") { // nested
			rig.Must(t, m.Unlock())
		}
		if got, err := x.Client().NewSemaphore("a", 2).TryLock(x.By("c"), 0); got && in == 2 || err != nil {
			t.Errorf("TryLock = %v, %v beside %d owners", got, err, in)
		}
	})
}

// A lock is lost while a Multi waits for the next one, and its context ends.
// Fails when its owner is told that it must unlock what it never had.
func TestAMultiThatFailsOwesNoUnlock(t *testing.T) {
	for range 20 {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			rig.Must(t, x.Lock("b").Lock(t.Context()))
			c := x.Client()
			m := relock.NewMulti(c.NewLock("a"), c.NewLock("b"))
			ctx, cancel := context.WithCancel(x.By("me"))
			var next bool
			var tried error
			call := rig.Beside(func() error {
				err := m.Lock(ctx)
				next, tried = c.NewLock("a").TryLock(x.By("me"), 0)
				return err
			})
			rig.StillWaits(t, call)
			_, err := x.Lock("a").ForceUnlock(t.Context())
			rig.Must(t, err)
			synctest.Wait()
			cancel()
			rig.WantIs(t, rig.Returned(t, call), context.Canceled)
			if !next || tried != nil {
				t.Errorf("TryLock = %v, %v after a call that had nothing", next, tried)
			}
		})
	}
}

// Two owners wait by one Multi, and both are granted their permits at the same time.
// Fails when the one that is refused then keeps its permit.
func TestAMultiOfSemaphoresGivesBackWhatAnotherOwnerIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, all := x.Client(), x.Client().NewSemaphore("a", 2, relock.Weight(2))
		m := relock.NewMulti(c.NewSemaphore("a", 2))
		rig.Must(t, all.Lock(t.Context()))
		me := rig.Beside(func() error { return m.Lock(x.By("me")) })
		you := rig.Beside(func() error { return m.Lock(x.By("you")) })
		rig.StillWaits(t, me)
		rig.StillWaits(t, you)
		rig.Must(t, all.Unlock())
		mine, yours := rig.Returned(t, me), rig.Returned(t, you)
		if (mine == nil) == (yours == nil) {
			t.Fatalf("%v and %v, want that one of them holds", mine, yours)
		}
		rig.WantIs(t, cmp.Or(mine, yours), relock.ErrOwnerMismatch)
		rig.Must(t, m.Unlock())
		if got, err := all.TryLock(t.Context(), 0); !got || err != nil {
			t.Errorf("TryLock of all permits = %v, %v", got, err)
		}
	})
}
