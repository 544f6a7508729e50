package contract_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// The queue's key lives for TokenKeep after the last lease of a waiter, the hash for as
// long as its holder renews: what a waiter that died during a long hold has left is in the
// hash alone.
// Fails when nothing takes that away: it stayed for as long as the lock was used.
func TestWaitersThatDiedDuringALongHoldLeaveNothing(t *testing.T) {
	waits := map[string]func(x *rig.Lab, a *rig.Actor){
		"for the lock":          func(x *rig.Lab, a *rig.Actor) { x.Begin(a.NewLock("l")) },
		"for the lock, by name": func(x *rig.Lab, a *rig.Actor) { x.BeginAs("me", a.NewLock("l")) },
		"on a condition": func(x *rig.Lab, a *rig.Actor) {
			l := a.NewLock("l")
			rig.Must(x.T, l.Lock(x.T.Context()))
			x.Sleeps(x.T.Context(), l.NewCond("c"), 0)
		},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				a, l := x.Actor(), x.Lock("l")
				if name == "on a condition" {
					wait(x, a)
				}
				h := x.Take(l)
				if name != "on a condition" {
					wait(x, a)
				}
				a.Link.Cut()
				x.Until(x.Now() + 30*time.Minute)
				if x.Redis.Exists(t.Context(), key.For("relock", "l").Queue).Val() != 0 {
					t.Error("the queue has not expired: this test shows nothing")
				}
				rig.End(t, h)
				rig.WantBare(t, x.Redis, "l")
			})
		})
	}
}

// Fails when what one call may do is forgotten as soon as it is done, or never ends.
func TestACrowdThatDiedDuringALongHoldIsForgottenStepByStep(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		h := x.Take(a.NewLock("l"))
		r := rig.Raw{T: t, Redis: x.Redis, ID: rig.ID(x.Actor().Client)}
		for i := range 1000 {
			r.Ask(fmt.Sprintf("%022d", i), fmt.Sprint("~", i), time.Second, 1, 0)
		}
		x.Until(x.Now() + 30*time.Minute)
		rig.End(t, h)
		if n := a.Sent("release"); n < 4 {
			t.Errorf("%d calls have forgotten 1,000 waiters, want at most 250 by each", n)
		}
		rig.WantBare(t, x.Redis, "l")
	})
}

// A queue is deleted while waiters live: each is put back by its heartbeat. One that has
// died before goes.
// Fails when who lives is dropped with it: a waiter on a condition would return unsignalled.
func TestWaitersThatLiveOutliveTheirQueue(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, b := x.Actor(), x.Lock("l")
		rig.Must(t, b.Lock(t.Context()))
		sleeps := x.Sleeps(t.Context(), b.NewCond("c"), 0)
		l := x.Lock("l")
		h := x.Take(l)
		x.Begin(a.NewLock("l"))
		a.Link.Cut()
		x.Until(x.Now() + time.Minute)
		waits := x.Begin(x.Lock("l"))
		x.Redis.Del(t.Context(), key.For("relock", "l").Queue)
		rig.End(t, h)
		x.Until(x.Now() + time.Minute)
		rig.End(t, waits.Holds())
		sleeps.Waits()
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.NewCond("c").Signal(t.Context()))
		rig.Must(t, l.Unlock())
		sleeps.Woken()
		rig.Must(t, b.Unlock())
		rig.WantBare(t, x.Redis, "l")
	})
}
