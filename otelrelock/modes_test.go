package otelrelock_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

const (
	writes = "kind=rw mode=write name=a"
	reads  = "kind=rw mode=read name=a"
)

// Fails when a hold that was counted for writing, and downgraded, is taken off those for reading.
func TestDowngradedHoldIsHeldNoLongerThanItLasts(t *testing.T) {
	for how, end := range map[string]func(s *seen, link *redistest.Link, rw *relock.RWLock){
		"unlocked": func(s *seen, _ *redistest.Link, rw *relock.RWLock) { rig.Must(s.t, rw.RUnlock()) },
		"lost": func(s *seen, link *redistest.Link, rw *relock.RWLock) {
			link.Hole()
			virtual.Sleep(time.Minute)
			rig.WantIs(s.t, rw.RUnlock(), relock.ErrLost)
		},
	} {
		t.Run(how, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				s := watch(t)
				s.t = t
				c, link := x.Linked(s.hooks)
				rw := c.NewRWLock("a")
				rig.Must(t, rw.Lock(t.Context()))
				rig.Must(t, rw.Downgrade(t.Context()))
				s.want("relock.lock.held", writes+": 1")
				end(s, link, rw)
				s.want("relock.lock.held", writes+": 0")
			})
		})
	}
}

// Fails when the holds of one owner are taken for each other: those for reading end first.
func TestDowngradedHoldBesideReadsOfItsOwnerIsCountedOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		rw := x.Client(s.hooks).NewRWLock("a")
		me := relock.WithOwner(t.Context(), "me")
		rig.Must(t, rw.Lock(me))
		rig.Must(t, rw.RLock(me))
		s.want("relock.lock.held", reads+": 1", writes+": 1")
		rig.Must(t, rw.RUnlock())
		s.want("relock.lock.held", reads+": 0", writes+": 1")
		rig.Must(t, rw.RLock(me))
		rig.Must(t, rw.Downgrade(me))
		for range 2 {
			rig.Must(t, rw.RUnlock())
		}
		s.want("relock.lock.held", reads+": 0", writes+": 0")
	})
}

// Fails when a hold is remembered by its token, which is another after a wait.
func TestDowngradeAfterAWaitIsCountedOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		rw := x.Client(s.hooks).NewRWLock("a")
		me, you := relock.WithOwner(t.Context(), "me"), relock.WithOwner(t.Context(), "you")
		rig.Must(t, rw.Lock(me))
		asleep := x.Sleeps(me, rw.WLocker().NewCond("c"), 0)
		other := x.Client().NewRWLock("a").WLocker()
		rig.Must(t, other.Lock(you))
		rig.Must(t, other.NewCond("c").Signal(you))
		rig.Must(t, other.Unlock())
		asleep.Woken()
		rig.Must(t, rw.Downgrade(me))
		rig.Must(t, rw.RUnlock())
		s.want("relock.lock.held", writes+": 0")
	})
}
