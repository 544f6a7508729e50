package redisson_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/redisson"
)

// TestAReleaseThatGetsNoTurnEndsNoNestedHold that Redis is being asked for: it is unconfirmed,
// and the nested hold is one like any other.
// Fails when a hold is forgotten before Redis can be told, and with the last one its session.
func TestAReleaseThatGetsNoTurnEndsNoNestedHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		c, link := linked(t, x, redisson.ReleaseTimeout(10*time.Millisecond))
		l, other, me := c.NewLock("a"), client(t, x).NewLock("a"), x.By("me")
		outer, err := l.Acquire(me)
		rig.Must(t, err)
		link.Latency(100 * time.Millisecond)
		var nested *redisson.Hold
		asks := rig.Beside(func() (err error) { nested, err = l.Acquire(me); return err })
		synctest.Wait()
		rig.WantIs(t, outer.Release(), relock.ErrUnconfirmed)
		rig.Must(t, <-asks)
		link.Latency(0)
		for _, later := range []time.Duration{time.Second, time.Minute} { // a minute: and it was renewed
			time.Sleep(later)
			rig.Must(t, nested.Err())
			if ok, err := other.TryLock(t.Context(), 0); ok || err != nil {
				t.Fatalf("another owner beside a nested hold: %v, %v", ok, err)
			}
		}
		rig.Must(t, nested.Release())
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.Unlock())
		bare(t, x)
	})
}

// Its end is told to Redis beside the Unlock, and the next Lock may come first.
// Fails when that one counts a hold that is lost and unlocked: Redis has it no more, and the
// owner was told to unlock what it had.
func TestAnOwnerLocksAnewAfterAllThatItLostIsUnlocked(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other, me := client(t, x).NewLock("a"), client(t, x).NewLock("a"), x.By("me")
		for range 50 { // who comes first is chance
			rig.Must(t, l.Lock(me))
			if ok, err := other.ForceUnlock(t.Context()); !ok || err != nil {
				t.Fatalf("ForceUnlock = %v, %v", ok, err)
			}
			rig.WantIs(t, l.Lock(me), relock.ErrLost) // which finds the loss
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
			rig.Must(t, l.Lock(me))
			rig.Must(t, l.Unlock())
			synctest.Wait()
		}
		bare(t, x)
	})
}
