package redisson_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/redisson"
)

// TestWhatAnEarlierDowngradeLeftEndsNoLaterOne of a hold without an owner's name: the two
// have one field in Redis.
// Fails when the later one has a session that the earlier does not know of.
func TestWhatAnEarlierDowngradeLeftEndsNoLaterOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		c, link := linked(t, x)
		rw := c.NewRWLock("a")
		rig.Must(t, rw.Lock(t.Context()))
		fate(link, "read_acquire", 1, redistest.SwallowReply)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		rig.WantIs(t, rw.Downgrade(ctx), context.DeadlineExceeded)
		cancel()
		rig.Must(t, rw.Downgrade(t.Context()))
		time.Sleep(5 * time.Second)
		if ok, err := client(t, x).NewRWLock("a").TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("a writer beside who has downgraded: %v, %v", ok, err)
		}
		rig.Must(t, rw.RUnlock())
		bare(t, x)
	})
}

// TestOfTwoDowngradesOfOneHoldOneReads, and the other ends only what it has had itself.
// Fails when the two have a session each.
func TestOfTwoDowngradesOfOneHoldOneReads(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		c, link := linked(t, x)
		rw := c.NewRWLock("a")
		rig.Must(t, rw.Lock(t.Context()))
		link.Latency(20 * time.Millisecond)
		down := func() error { return rw.Downgrade(t.Context()) }
		one, two := rig.Beside(down), rig.Beside(down)
		errs := []error{<-one, <-two}
		if errs[0] != nil {
			errs[0], errs[1] = errs[1], errs[0]
		}
		rig.Must(t, errs[0])
		rig.WantIs(t, errs[1], relock.ErrNotHeld)
		time.Sleep(time.Second)
		wantHolds(t, rw, 0, 1)
		if ok, err := client(t, x).NewRWLock("a").TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("a writer beside who has downgraded: %v, %v", ok, err)
		}
		rig.Must(t, rw.RUnlock())
		bare(t, x)
	})
}

// TestADowngradeWhoseLeaseEndsLosesNoOtherHold of the same owner, which has a longer one.
// Fails when all holds of the owner are taken for lost with it.
func TestADowngradeWhoseLeaseEndsLosesNoOtherHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		c, link := linked(t, x)
		me := x.By("me")
		long := c.NewRWLock("a")
		short := c.NewRWLock("a", redisson.TTL(time.Second), redisson.NoWatchdog())
		rig.Must(t, long.Lock(me))
		rig.Must(t, short.Lock(me))
		time.Sleep(900 * time.Millisecond)
		link.Latency(100 * time.Millisecond)
		rig.WantIs(t, short.Downgrade(me), relock.ErrLost)
		link.Latency(0)
		time.Sleep(time.Minute)
		wantHolds(t, long, 1, 0)
		rig.WantIs(t, short.Unlock(), relock.ErrLost)
		rig.Must(t, long.Unlock())
		bare(t, x)
	})
}
