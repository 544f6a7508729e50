package contract_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock/internal/rig"
)

// Two wait. One is signalled and granted the lock, does not hear of it for longer than its
// lease, has the lock again before anybody else asks, and waits anew. The signal was its own.
// Fails when it is passed on still: the one's new wait is counted off, and signals to the
// other go to nobody.
func TestWhoComesBackWithASignalAfterItsLeaseAndWaitsAnewOwesNone(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		one := p[0].sleeps(x)
		x.Until(9 * time.Second)
		other := p[1].sleeps(x)
		x.Until(10500 * time.Millisecond)
		heal := p[0].Link.Hole()
		p[2].signals(x)
		rig.Must(t, p[2].l.Unlock())
		x.Until(40500 * time.Millisecond) // when its lease is over
		heal()
		one.Woken()
		one = x.Sleeps(t.Context(), p[0].c, 0)
		one.Waits()
		other.Waits()
		at := x.Now()
		p[2].signals(x)
		rig.Must(t, p[2].l.Unlock())
		other.Woken()
		if took := x.Now() - at; took > time.Second {
			t.Errorf("the other was woken %v after its signal", took)
		}
		rig.Must(t, p[1].l.Unlock())
	})
}

// The queue's key was deleted, and its hash was not. Fails when the hold is told as lost
// that the waiter had taken beside what was left of its place.
func TestWhoWaitedInAQueueThatWasLostReleasesWhatItHolds(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 3)
		rig.Must(t, p[0].l.Lock(t.Context()))
		waits := rig.Beside(func() error { return p[1].l.Lock(t.Context()) })
		rig.StillWaits(t, waits)
		if n := x.Redis.Del(t.Context(), "relock:q:{l}").Val(); n != 1 {
			t.Fatal("there was no queue")
		}
		rig.Must(t, p[0].l.Unlock())
		x.Until(15 * time.Second)
		rig.Must(t, rig.Returned(t, waits))
		next := rig.Beside(func() error { return p[2].l.Lock(x.By("me")) })
		rig.StillWaits(t, next)
		rig.Must(t, p[1].l.Unlock())
		rig.Must(t, rig.Returned(t, next))
		rig.Must(t, p[2].l.Unlock())
		x.Frees("l")
	})
}
