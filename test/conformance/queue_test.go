package conformance_test

import (
	"context"
	"slices"
	"testing"

	"github.com/relock-go/relock"
)

// inQueues runs a case for exclusive locks and for writers of a read/write lock.
func inQueues(t *testing.T, play func(t *testing.T, g *ground, side func(*thread) *relock.Lock)) {
	t.Helper()
	for name, side := range map[string]func(*thread) *relock.Lock{
		"L": func(th *thread) *relock.Lock { return th.excl },
		"W": func(th *thread) *relock.Lock { return th.WLocker() },
	} {
		t.Run(name, func(t *testing.T) {
			inBothModes(t, func(t *testing.T, g *ground) { play(t, g, side) })
		})
	}
}

// throughTheQueue has one waiter come, a second one, the first one interrupted,
// and the second one served; look sees what waits at each step.
func throughTheQueue(g *ground, side func(*thread) *relock.Lock, look func(waiting ...string)) {
	g.t.Helper()
	me, t1, t2 := g.thread("me"), g.thread("t1"), g.thread("t2")
	look()
	g.ok(side(me).Lock(me.ctx))
	look()
	first := t1.begin(side(t1).Lock)
	g.queue("t1")
	look("t1")
	second := t2.begin(side(t2).Lock)
	g.queue("t1", "t2")
	look("t1", "t2")
	first.interrupt()
	g.is(first.ends(), context.Canceled)
	g.queue("t2")
	look("t2")
	second.waits()
	g.ok(side(me).Unlock())
	g.ok(second.ends())
	look()
	g.held("t2 w1")
	g.ok(side(t2).Unlock())
	look()
}

func TestTCK_L11_W43_HasQueuedThreads(t *testing.T) {
	inQueues(t, func(t *testing.T, g *ground, side func(*thread) *relock.Lock) {
		throughTheQueue(g, side, func(waiting ...string) {
			t.Helper()
			got, err := g.view().Waiters(t.Context())
			g.ok(err)
			if (len(got) > 0) != (len(waiting) > 0) {
				t.Errorf("waiters %v, want %q", got, waiting)
			}
		})
	})
}

func TestTCK_L12_W46_GetQueueLength(t *testing.T) {
	inQueues(t, func(t *testing.T, g *ground, side func(*thread) *relock.Lock) {
		throughTheQueue(g, side, func(waiting ...string) {
			t.Helper()
			info, err := g.view().Info(t.Context())
			g.ok(err)
			if info.Waiters != len(waiting) {
				t.Errorf("%d waiters, want %d", info.Waiters, len(waiting))
			}
		})
	})
}

// TestTCK_L13_W44_HasQueuedThreadOfNobody: where they pass null for a thread,
// an owner without a name is refused.
func TestTCK_L13_W44_HasQueuedThreadOfNobody(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		th := g.thread("")
		g.is(th.excl.Lock(th.ctx), relock.ErrInvalidOption)
		g.is(th.Lock(th.ctx), relock.ErrInvalidOption)
		g.is(th.RLock(th.ctx), relock.ErrInvalidOption)
		g.queue()
		g.held()
	})
}

func TestTCK_L14_W45_HasQueuedThread(t *testing.T) {
	inQueues(t, func(t *testing.T, g *ground, side func(*thread) *relock.Lock) {
		throughTheQueue(g, side, func(waiting ...string) {
			t.Helper()
			got, err := g.view().Waiters(t.Context())
			g.ok(err)
			for _, owner := range []string{"me", "t1", "t2"} {
				is := slices.ContainsFunc(got, func(w relock.Waiter) bool { return w.Owner == owner })
				if want := slices.Contains(waiting, owner); is != want {
					t.Errorf("%s waits: %v, want %v", owner, is, want)
				}
			}
		})
	})
}

func TestTCK_L15_W47_GetQueuedThreads(t *testing.T) {
	inQueues(t, func(t *testing.T, g *ground, side func(*thread) *relock.Lock) {
		throughTheQueue(g, side, func(waiting ...string) {
			t.Helper()
			g.queue(waiting...)
			got, err := g.view().Waiters(t.Context())
			g.ok(err)
			for _, w := range got {
				if w.Read || w.Age < 0 {
					t.Errorf("waiter %+v, want one that writes", w)
				}
			}
		})
	})
}
