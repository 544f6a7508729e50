package redisson_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// TestAReaderTrustsItsOwnLeaseOnly: the hash lives for as long as the longest lease of all
// readers, and for less when that one has gone.
func TestAReaderTrustsItsOwnLeaseOnly(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, link := linked(t, x)
		h, err := a.NewRWLock("a", redisson.TTL(10*time.Second)).RLocker().Acquire(t.Context())
		rig.Must(t, err)
		other := client(t, x).NewRWLock("a", redisson.TTL(time.Minute))
		rig.Must(t, other.RLock(t.Context()))
		virtual.Sleep(4 * time.Second) // and it has renewed
		link.Hole()
		rig.Must(t, other.RUnlock())
		if ok, err := other.TryLock(t.Context(), time.Minute); !ok || err != nil {
			t.Fatalf("the writer: %v, %v", ok, err)
		}
		rig.WantIs(t, h.Err(), relock.ErrLost)
		rig.Must(t, other.Unlock())
		_ = h.Release() // it was lost
	})
}

// TestWhatAnEarlierReadLeftEndsNoLaterOne: an owner that writes reads, and is not answered.
// What may have come of that is ended later, when the owner reads again.
func TestWhatAnEarlierReadLeftEndsNoLaterOne(t *testing.T) {
	for name, answered := range map[string]bool{"never had": false, "unlocked": true} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				loadAll(t, x)
				c, link := linked(t, x)
				l, me := c.NewRWLock("a"), x.By("me")
				rig.Must(t, l.Lock(me))
				fate(link, "read_acquire", 1, redistest.SwallowReply)
				ctx, cancel := context.WithTimeout(me, time.Second)
				if answered {
					ctx = me
				}
				err := l.RLock(ctx)
				cancel()
				if answered {
					rig.Must(t, err)
					rig.Must(t, l.RUnlock())
				} else {
					rig.WantIs(t, err, context.DeadlineExceeded)
				}
				h, err := l.RLocker().Acquire(me)
				rig.Must(t, err)
				virtual.Sleep(time.Minute)
				rig.Must(t, l.Unlock())
				if ok, err := client(t, x).NewRWLock("a").TryLock(t.Context(), 0); ok || err != nil {
					t.Errorf("a writer beside a reader: %v, %v", ok, err)
				}
				rig.Must(t, h.Release())
				bare(t, x)
			})
		})
	}
}

// TestAnUnlockThatIsMadeAgainEndsNoLaterRead of the same owner: that waits for it.
func TestAnUnlockThatIsMadeAgainEndsNoLaterRead(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loadAll(t, x)
		c, link := linked(t, x)
		l, me := c.NewRWLock("a"), x.By("me")
		rig.Must(t, l.Lock(me))
		rig.Must(t, l.RLock(me))
		fate(link, "read_release", 1, redistest.CutReply)
		ends := rig.Beside(l.RUnlock)
		synctest.Wait()
		rig.StillWaits(t, ends)
		rig.Must(t, l.RLock(me))
		rig.Must(t, <-ends)
		rig.Must(t, l.Unlock())
		if ok, err := client(t, x).NewRWLock("a").TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("a writer beside a reader: %v, %v", ok, err)
		}
		rig.Must(t, l.RUnlock())
		bare(t, x)
	})
}
