package redisson_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// forcedBeside has a call hold by a handle, and another wait by it, when an operator ends the
// first hold: the second is granted the lock before the first hold's renewal.
func forcedBeside(t *testing.T, f func(x *rig.Lab, l, other *redisson.Lock, second rig.Going)) {
	t.Helper()
	kinds := map[string]func(c *redisson.Client) *redisson.Lock{
		"plain":  func(c *redisson.Client) *redisson.Lock { return c.NewLock("a") },
		"fair":   func(c *redisson.Client) *redisson.Lock { return c.NewLock("a", redisson.Fair()) },
		"fenced": func(c *redisson.Client) *redisson.Lock { return c.NewLock("a", redisson.Fenced()) },
		"write":  func(c *redisson.Client) *redisson.Lock { return c.NewRWLock("a").WLocker() },
	}
	for kind, handle := range kinds {
		for _, owners := range [][2]string{{"", ""}, {"one", "two"}} {
			t.Run(kind+" "+owners[0], func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					l, other := handle(client(t, x)), handle(client(t, x))
					lock := func(owner string) func() error {
						ctx := t.Context()
						if owner != "" {
							ctx = x.By(owner)
						}
						return func() error { return l.Lock(ctx) }
					}
					rig.Must(t, lock(owners[0])())
					virtual.Sleep(5 * time.Second)
					second := rig.Beside(lock(owners[1]))
					virtual.Sleep(6 * time.Second)
					removed, err := other.ForceUnlock(t.Context())
					if rig.Must(t, err); !removed {
						t.Fatal("nothing was removed")
					}
					virtual.Sleep(3 * time.Second)
					f(x, l, other, second)
					virtual.Sleep(2 * time.Minute)
					bare(t, x, "redisson_lock_token:{a}")
					x.Redis.Del(t.Context(), "redisson_lock_token:{a}") // Redisson keeps it for ever
				})
			})
		}
	}
}

// Two calls of one handle held. The Unlock of the second ended the first one's hold, and its own
// was renewed for ever.
func TestAHandleOfASharedLockHasNoSecondHoldBeforeTheFirstIsUnlocked(t *testing.T) {
	forcedBeside(t, func(x *rig.Lab, l, other *redisson.Lock, second rig.Going) { rig.SecondHoldWaits(x, l, other, second) })
}

// The Unlock of the first ended the second one's hold, and said nothing of the loss.
func TestUnlockOfALostSharedHoldLeavesTheNextHoldOfItsHandle(t *testing.T) {
	forcedBeside(t, func(x *rig.Lab, l, other *redisson.Lock, second rig.Going) {
		rig.LostUnlockSparesTheNext(x, l, other, second)
	})
}

// The RUnlock of a reader that had not heard of its loss ended the hold of a later one.
func TestRUnlockOfAnOldSharedReaderLeavesALaterOneOfItsHandle(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, writer := client(t, x).NewRWLock("a"), client(t, x).NewRWLock("a").WLocker()
		rig.Must(t, rw.RLock(t.Context()))
		virtual.Sleep(time.Second)
		rig.Must(t, x.Redis.FlushAll(t.Context()).Err())
		rig.Must(t, rw.RLock(t.Context()))
		rig.WantIs(t, rw.RUnlock(), relock.ErrLost)
		rig.RefusesAny(x, writer)
		rig.Must(t, rw.RUnlock())
		rig.WantIs(t, rw.RUnlock(), relock.ErrNotHeld)
		rig.Must(t, writer.Lock(t.Context()))
		rig.Must(t, writer.Unlock())
	})
}

func TestAnOwnerIsToldOfTheLossOfASharedLockByAnyHandle(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		outer, inner, other := c.NewLock("a"), c.NewLock("a"), client(t, x).NewLock("a")
		rig.Must(t, outer.Lock(x.By("me")))
		rig.Must(t, x.Redis.FlushAll(t.Context()).Err())
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.Unlock())
		for range 2 {
			rig.WantIs(t, inner.Lock(x.By("me")), relock.ErrLost)
			virtual.Sleep(11 * time.Second) // the loss is known
		}
		rig.WantIs(t, outer.Unlock(), relock.ErrLost)
		rig.Must(t, inner.Lock(x.By("me")))
		rig.Must(t, inner.Unlock())
	})
}

// An owner holds by two handles when the lock is granted again, to another call of one of them.
// Fails when its hold by the other handle is trusted until its next renewal.
func TestASharedLockThatIsGrantedAgainLosesTheNestedHoldsToo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		l, operator := c.NewLock("a"), client(t, x).NewLock("a")
		rig.Must(t, l.Lock(x.By("one")))
		nested := acquired(x.By("one"), t, c.NewLock("a"))
		lost := nested.Lost()
		second := rig.Beside(func() error { return l.Lock(x.By("two")) })
		x.Until(time.Second)
		removed, err := operator.ForceUnlock(t.Context())
		if rig.Must(t, err); !removed {
			t.Fatal("nothing was removed")
		}
		x.Until(2 * time.Second)
		if !rig.IsShut(lost) {
			t.Error("Lost of the nested hold is open")
		}
		rig.WantIs(t, nested.Err(), relock.ErrLost)
		rig.WantIs(t, nested.Release(), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, second))
		rig.RefusesAny(x, operator)
		rig.Must(t, l.Unlock())
		bare(t, x)
	})
}
