package contract_test

import (
	"testing"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// How many permits are in use, and whose they are. An owner that enters again takes no more.
func TestInfoTellsThePermitsOfASemaphore(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		eye := x.Eye.NewLock("a")
		permits := func(want int, weights map[string]int) {
			t.Helper()
			info := x.Info(eye)
			if info.Permits != want || len(info.Holders) != len(weights) {
				t.Errorf("%d permits, %d holders, want %d, %d", info.Permits, len(info.Holders), want, len(weights))
			}
			for _, h := range info.Holders {
				if h.Weight != weights[h.Owner] {
					t.Errorf("%s takes %d, want %d", h.Owner, h.Weight, weights[h.Owner])
				}
			}
		}
		permits(0, nil)
		heavy := x.Client().NewSemaphore("a", 5, relock.Weight(3))
		one := acquire(t, heavy, x.By("heavy"))
		permits(3, map[string]int{"heavy": 3})
		two := acquire(t, x.Client().NewSemaphore("a", 5), x.By("light"))
		permits(4, map[string]int{"heavy": 3, "light": 1})
		again := acquire(t, heavy, x.By("heavy"))
		permits(4, map[string]int{"heavy": 3, "light": 1})
		rig.End(t, again)
		rig.End(t, one)
		permits(1, map[string]int{"light": 1})
		rig.End(t, two)
		permits(0, nil)
	})
}

// A lock of another kind has none.
func TestInfoTellsNoPermitsOfOtherLocks(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, l := range []*relock.Lock{x.Client().NewLock("a"), x.Client().NewRWLock("b").RLocker(), x.Client().NewRWLock("c").WLocker()} {
			h := x.Take(l)
			if info := x.Info(l); info.Permits != 0 || info.Holders[0].Weight != 0 {
				t.Errorf("%+v, want no permits", info)
			}
			rig.End(t, h)
		}
	})
}

// An owner that writes and reads has both holds, and is a writer.
func TestInfoTellsAnOwnerThatWritesAndReadsAsAWriter(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw := x.Client().NewRWLock("a")
		write := acquire(t, rw.WLocker(), x.By("me"))
		read := acquire(t, rw.RLocker(), x.By("me"))
		if h := x.Info(x.Eye.NewLock("a")).Holders[0]; h.Read || h.Holds != 2 {
			t.Errorf("%+v, want a writer with two holds", h)
		}
		rig.End(t, write)
		if h := x.Info(x.Eye.NewLock("a")).Holders[0]; !h.Read || h.Holds != 1 {
			t.Errorf("%+v, want a reader with one hold", h)
		}
		rig.End(t, read)
	})
}

// Fails when a free name is told without the kind that it had.
func TestAFreeNameHasTheKindThatItHadLast(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, eye := x.Client(), x.Eye.NewLock("a")
		for _, row := range []struct {
			l    *relock.Lock
			want string
		}{
			{c.NewLock("a"), "plain"},
			{c.NewLock("a", relock.Fair()), "fair"},
			{c.NewRWLock("a").RLocker(), "rw"},
			{c.NewRWLock("a", relock.Fair()).WLocker(), "fair rw"},
			{c.NewSemaphore("a", 2), "semaphore"},
		} {
			rig.End(t, x.Take(row.l))
			if info := x.Info(eye); info.Kind != row.want || len(info.Holders) != 0 {
				t.Errorf("%+v, want a free name that was %s", info, row.want)
			}
		}
	})
}
