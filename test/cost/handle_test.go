package cost_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
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
	measure := func(n int) (local, count time.Duration) {
		l, rw := c.NewLock(fmt.Sprint("nested ", n), relock.LocalReentry()), c.NewRWLock(fmt.Sprint("readers ", n))
		for range n / 2 {
			rig.Must(t, errors.Join(l.Lock(ctx), l.Lock(ctx), rw.RLock(context.Background())))
		}
		defer release(t, n, l.Unlock)
		defer release(t, n/2, rw.RUnlock)
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
	repeatedly(t, "a local re-entry, or a count, costs four times as much among thousands of holds", func(best minima) bool {
		of := func(n int) (local, count float64) {
			l, c := measure(n)
			return best.least(fmt.Sprint("local ", n), micros(l)), best.least(fmt.Sprint("count ", n), micros(c))
		}
		local, count := of(20)
		localMany, countMany := of(4000)
		t.Logf("microseconds of 50 local re-entries: %.0f among 20 holds, %.0f among 4,000; of 50 counts: %.0f among 10, %.0f among 2,000", local, localMany, count, countMany)
		return localMany <= 4*local && countMany <= 4*count
	})
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// release ends so many holds.
func release(t *testing.T, n int, unlock func() error) {
	t.Helper()
	for range n {
		rig.Must(t, unlock())
	}
}

// Fails when a statement, or what leads to it, walks the holds of the session.
func TestAReentryCostsTheSameAmongThousandsOfHolds(t *testing.T) {
	ctx := relock.WithOwner(context.Background(), "me")
	c, _, _ := costly(t)
	measure := func(n int) time.Duration {
		l := c.NewLock(fmt.Sprint("nested ", n))
		for range n {
			rig.Must(t, l.Lock(ctx))
		}
		defer release(t, n, l.Unlock)
		return quickest(20, func() {
			for range 10 {
				rig.Must(t, l.Lock(ctx))
				rig.Must(t, l.Unlock())
			}
		})
	}
	repeatedly(t, "a re-entry costs three times as much among thousands of holds", func(best minima) bool {
		few, many := best.least("few", micros(measure(10))), best.least("many", micros(measure(4000)))
		t.Logf("microseconds of 10 re-entries: %.0f among 10 holds, %.0f among 4,000", few, many)
		return many <= 3*few
	})
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
		virtual.Sleep(15 * time.Second) // a renewal finds it gone
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
