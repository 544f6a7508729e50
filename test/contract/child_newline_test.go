package contract_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// As TestManyBranchesThatReadAreLetInTogether, of a flow whose name has two lines.
func TestManyBranchesOfANameOfTwoLinesAreLetInTogether(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const branches = 300
		c := x.Client()
		lock := func() *relock.RWLock { return c.NewRWLock("a") }
		flow := x.By("flow\nof two lines")
		outer := enters(t, lock().WLocker(), flow)
		writes := enters(t, lock().WLocker(), relock.WithChildOwner(flow))
		var inside atomic.Int32
		holds := make(chan *relock.Hold, branches)
		for range branches {
			go func() {
				h, err := lock().RLocker().Acquire(relock.WithChildOwner(flow))
				if err != nil {
					t.Error(err)
				}
				inside.Add(1)
				holds <- h
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		rig.Must(t, writes.Release())
		synctest.Wait()
		if n := inside.Load(); n != branches {
			t.Errorf("%d of %d branches are let in when the one that writes has gone", n, branches)
		}
		for range branches {
			rig.Must(t, (<-holds).Release())
		}
		rig.Must(t, outer.Release())
	})
}
