package contract_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

func TestBadPermitsFailEveryCallAndLeaveNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		weight := relock.Weight
		for name, l := range map[string]*relock.Lock{
			"no permits":         c.NewSemaphore("s", 0),
			"fewer than none":    c.NewSemaphore("s", -1),
			"too many":           c.NewSemaphore("s", math.MaxInt32+1),
			"no weight":          c.NewSemaphore("s", 3, weight(0)),
			"a negative weight":  c.NewSemaphore("s", 3, weight(-2)),
			"more than there is": c.NewSemaphore("s", 3, weight(4)),
			"of a lock":          c.NewLock("s", weight(1)),
			"of a fair lock":     c.NewLock("s", relock.Fair(), weight(1)),
			"of a writer":        c.NewRWLock("s", weight(2)).WLocker(),
			"of a reader":        c.NewRWLock("s", weight(2)).RLocker(),
		} {
			for way, call := range everyAnswer(l) {
				err := call(t.Context())
				short(t, err)
				if rig.WantIs(t, err, relock.ErrInvalidOption); t.Failed() {
					t.Fatalf("%s: %s", name, way)
				}
			}
			rig.WantIs(t, l.Unlock(), relock.ErrInvalidOption)
		}
		rig.WantIs(t, c.NewSemaphore("", 3).Lock(t.Context()), relock.ErrInvalidName)
		rig.WantIs(t, c.NewSemaphore("s", 3).NewCond("c").Wait(t.Context()), relock.ErrInvalidOption)
		if keys := x.Server.Direct().Keys(); len(keys) != 0 || link.Dials() != 0 {
			t.Errorf("keys %v and %d connections, want none", keys, link.Dials())
		}
		for says, l := range map[string]*relock.Lock{"0 permits; allowed": c.NewSemaphore("s", 0), "never be let in": c.NewSemaphore("s", 3, weight(4))} {
			if err := l.Lock(t.Context()); !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want a word of %q", err, says)
			}
		}
		_, err := relock.New(x.Redis, relock.Defaults(weight(1)))
		rig.WantIs(t, err, relock.ErrInvalidOption)
	})
}

// Fails when fewer are allowed than the documentation says.
func TestASemaphoreHasUpToTwoToTheThirtyFirstLessOnePermits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, permits := range []int{1, math.MaxInt32} {
			for _, weight := range []int{1, permits} {
				s := x.Client().NewSemaphore("s", permits, relock.Weight(weight))
				h := x.Take(s)
				if info := x.Info(s); info.Permits != weight {
					t.Errorf("%d permits in use of %d, want %d", info.Permits, permits, weight)
				}
				rig.End(t, h)
			}
		}
	})
}

func TestASemaphoreRefusesOnlyWhoWouldWaitForItself(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		s := c.NewSemaphore("s", 2)
		rig.Must(t, s.Do(t.Context(), func(outer context.Context) error {
			return s.Do(outer, func(inner context.Context) error {
				rig.WantIs(t, s.Do(inner, func(context.Context) error { t.Error("fn ran"); return nil }), relock.ErrDeadlock)
				_, err := s.TryAcquire(inner, time.Second)
				rig.WantIs(t, err, relock.ErrDeadlock)
				rig.WantIs(t, x.Client().NewLock("s").Lock(inner), relock.ErrKind)
				return nil
			})
		}))
		// Two holds of one grant use its permits once.
		rig.Must(t, s.Do(x.By("me"), func(outer context.Context) error {
			return s.Do(outer, func(inner context.Context) error {
				return s.Do(relock.WithOwner(inner, "you"), func(context.Context) error { return nil })
			})
		}))
		// One that holds already takes no permits.
		rig.Must(t, s.Do(x.By("me"), func(outer context.Context) error {
			return s.Do(relock.WithOwner(outer, "you"), func(inner context.Context) error {
				back := relock.WithOwner(inner, "me")
				heavy := c.NewSemaphore("s", 2, relock.Weight(2)) // one that holds nothing would wait for itself
				return errors.Join(s.Do(inner, func(context.Context) error { return nil }), heavy.Do(back, func(context.Context) error { return nil }))
			})
		}))
	})
}

// Handles differ in permits while a new number is rolled out.
// Fails when a nested call is judged by the number of the handle that holds.
func TestANestedCallOfASemaphoreIsJudgedByItsOwnPermits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		before, after := c.NewSemaphore("s", 1), c.NewSemaphore("s", 2)
		rig.Must(t, before.Do(t.Context(), func(outer context.Context) error {
			return after.Do(outer, func(inner context.Context) error {
				rig.WantIs(t, before.Lock(inner), relock.ErrDeadlock)
				rig.WantIs(t, after.Lock(inner), relock.ErrDeadlock)
				return nil
			})
		}))
	})
}

// Fails when an Unlock may end another owner's hold.
func TestHoldsOfASemaphoreThatUnlockEndsAreOfOneOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := x.Client().NewSemaphore("s", 5)
		rig.Must(t, s.Lock(x.By("a")))
		rig.WantIs(t, s.Lock(x.By("b")), relock.ErrOwnerMismatch)
		rig.WantIs(t, s.Lock(t.Context()), relock.ErrOwnerMismatch)
		h, err := s.Acquire(x.By("b"))
		rig.Must(t, err)
		rig.Must(t, s.Do(t.Context(), func(context.Context) error { return s.Lock(x.By("a")) }))
		rig.Must(t, s.Unlock())
		rig.Must(t, s.Unlock())
		rig.Must(t, h.Err())
		rig.Must(t, s.Lock(x.By("c")))
		rig.Must(t, s.Unlock())
		rig.End(t, h)
		rig.WantIs(t, s.Unlock(), relock.ErrNotHeld)
		rig.End(t, x.Take(x.Client().NewSemaphore("s", 5, relock.Weight(5))))
	})
}
