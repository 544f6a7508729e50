package cost_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// quickest is the shortest of some runs, since what else the machine does can only add
// to one.
func quickest(runs int, f func()) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range runs {
		began := time.Now()
		f()
		best = min(best, time.Since(began))
	}
	return best
}

// Without a command nothing hides what a handle does with its own holds.
// Fails when a call on a handle asks each of its holds.
func TestACallOnAHandleCostsTheSameAmongThousandsOfHolds(t *testing.T) {
	ctx := relock.WithOwner(context.Background(), "me")
	c, _, _ := costly(t)
	l, rw := c.NewLock("nested", relock.LocalReentry()), c.NewRWLock("readers")
	measure := func(n int) (local, count time.Duration) {
		for l.HoldCount() < n {
			rig.Must(t, l.Lock(ctx))
		}
		for rw.RLocker().HoldCount() < n/2 {
			rig.Must(t, rw.RLock(context.Background()))
		}
		return quickest(20, func() {
				for range 50 {
					rig.Must(t, l.Lock(ctx))
					rig.Must(t, l.Unlock())
				}
			}), quickest(20, func() {
				for range 50 {
					if got := rw.RLocker().HoldCount(); got != n/2 {
						t.Fatalf("%d read holds, want %d", got, n/2)
					}
				}
			})
	}
	local, count := measure(20)
	localMany, countMany := measure(4000)
	t.Logf("50 local re-entries: %v among 20 holds, %v among 4,000; 50 counts: %v among 10, %v among 2,000", local, localMany, count, countMany)
	if localMany > 4*local {
		t.Errorf("a local re-entry among 4,000 holds costs %v, and %v among 20", localMany/50, local/50)
	}
	if countMany > 4*count {
		t.Errorf("counting 2,000 holds costs %v, and 10 %v", countMany/50, count/50)
	}
}

// Fails when a statement, or what leads to it, walks the holds of the session.
func TestAReentryCostsTheSameAmongThousandsOfHolds(t *testing.T) {
	ctx := relock.WithOwner(context.Background(), "me")
	c, _, _ := costly(t)
	l := c.NewLock("nested")
	measure := func(n int) time.Duration {
		for l.HoldCount() < n {
			rig.Must(t, l.Lock(ctx))
		}
		return quickest(20, func() {
			for range 10 {
				rig.Must(t, l.Lock(ctx))
				rig.Must(t, l.Unlock())
			}
		})
	}
	few, many := measure(10), measure(4000)
	t.Logf("10 re-entries: %v among 10 holds, %v among 4,000", few, many)
	if many > 3*few {
		t.Errorf("a re-entry among 4,000 holds costs %v, and %v among 10", many/10, few/10)
	}
}

// Fails when what a handle has noted of its holds outlives the loss of one.
func TestALossIsNoticedAmongTheHoldsOfAHandle(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const n = 5
		rw := x.Client().NewRWLock("a")
		read := func() { readOften(t, rw, n) }
		unlock := func(lost int) { unlockOften(t, rw, n, lost) }
		read()
		_, err := x.Lock("a").ForceUnlock(t.Context())
		rig.Must(t, err)
		synctest.Wait()
		counts(t, rw.RLocker(), 0)
		unlock(n)

		read()
		x.Suspend(time.Minute)
		counts(t, rw.RLocker(), 0)
		unlock(n)

		read()
		info, err := x.Lock("a").Info(t.Context())
		rig.Must(t, err)
		rig.Must(t, x.Redis.HDel(t.Context(), key.For("relock", "a").Hash, "g:"+info.Holders[1].Owner).Err())
		time.Sleep(15 * time.Second) // a renewal finds it gone
		counts(t, rw.RLocker(), n-1)
		unlock(1)
		counts(t, rw.RLocker(), 0)
	})
}

// readOften takes n read holds.
func readOften(t *testing.T, rw *relock.RWLock, n int) {
	t.Helper()
	for range n {
		rig.Must(t, rw.RLock(t.Context()))
	}
	counts(t, rw.RLocker(), n)
	synctest.Wait() // the inbox hears, and what was lost before is released
}

// unlockOften ends n read holds, and says of the first of them that they were lost.
func unlockOften(t *testing.T, rw *relock.RWLock, n, lost int) {
	t.Helper()
	for i := range n {
		if err := rw.RUnlock(); i < lost {
			rig.WantIs(t, err, relock.ErrLost)
		} else {
			rig.Must(t, err)
		}
	}
}

func counts(t *testing.T, l *relock.Lock, want int) {
	t.Helper()
	if got := l.HoldCount(); got != want {
		t.Errorf("%d holds, want %d", got, want)
	}
}
