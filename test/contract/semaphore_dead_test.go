package contract_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The holders of all permits have died, and the queue's key has expired; the hash lives on, since
// a call that was refused had a longer lease in mind.
// Fails when those who come back under the names of the dead are let in for nothing: the permits of
// their old grants were not counted any more.
func TestPermitsOfTheDeadAreGivenBackOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		names := []string{"worker-1", "worker-2", "worker-3", "worker-4"}
		dead, link := x.Linked(relock.TokenKeep(time.Minute))
		for _, name := range names[:2] {
			_, err := dead.NewSemaphore("gpu", 2, relock.TTL(2*time.Second)).Acquire(x.By(name))
			rig.Must(t, err)
		}
		c := x.Client(relock.TokenKeep(time.Minute))
		_, err := c.NewSemaphore("gpu", 2, relock.TTL(5*time.Minute)).TryAcquire(x.By("batch"), 0)
		rig.WantIs(t, err, relock.ErrNotAcquired)
		link.Cut()
		virtual.Sleep(64 * time.Second)
		held := 0
		for _, name := range names {
			if _, err := c.NewSemaphore("gpu", 2, relock.TTL(2*time.Second)).TryAcquire(x.By(name), 0); err == nil {
				held++
			}
		}
		if held != 2 {
			t.Errorf("%d hold 2 permits", held)
		}
	})
}

// A copy of a request comes when its own session is dead and not forgotten yet, as so many others died
// later, and its owner holds by another session.
// Fails when the session is counted twice: its permits stay taken while anybody holds.
func TestPermitsOfASessionThatComesBackAreCountedOnce(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		acquire := func(c *relock.Client, owner string, weight int, ttl time.Duration) *relock.Hold {
			h, err := c.NewSemaphore("gpu", 1000, relock.Weight(weight), relock.TTL(ttl), relock.NoWatchdog()).TryAcquire(x.By(owner), 0)
			rig.Must(t, err)
			return h
		}
		a, crowd, late := x.Actor(), x.Actor(), make(chan struct{})
		a.Fate("acquire", 1, redistest.Duplicate(late))
		acquire(a.Client, "me", 500, 250*time.Millisecond)
		other := acquire(x.Client(), "me", 500, 5*time.Second)
		acquire(x.Client(), "you", 100, time.Minute)
		for i := range 300 { // more than one script forgets
			acquire(crowd.Client, fmt.Sprint(i), 1, 270*time.Millisecond)
		}
		a.Link.Cut()
		crowd.Link.Cut()
		virtual.Sleep(350 * time.Millisecond)
		close(late)
		synctest.Wait()
		virtual.Sleep(300 * time.Millisecond)
		rig.End(t, other)
		rig.End(t, acquire(x.Client(), "next", 500, time.Second))
	})
}

// The dead hold together, and the queue's key expires before the hash, as after a call that was refused and had a
// longer lease in mind.
// Fails when their records stay in the hash, where nothing leads to them, for as long as the lock is used.
func TestTheDeadWhoHeldTogetherLeaveNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		dead, link := x.Linked(relock.TokenKeep(time.Minute))
		for range 20 {
			x.Take(dead.NewSemaphore("gpu", 20, relock.TTL(2*time.Second)))
		}
		c := x.Client(relock.TokenKeep(time.Minute))
		_, err := c.NewSemaphore("gpu", 20, relock.TTL(5*time.Minute)).TryAcquire(t.Context(), 0)
		rig.WantIs(t, err, relock.ErrNotAcquired)
		link.Cut()
		virtual.Sleep(64 * time.Second)
		rig.End(t, x.Take(c.NewSemaphore("gpu", 20)))
		rig.WantBare(t, x.Redis, "gpu")
	})
}
