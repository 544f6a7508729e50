package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// An inside is what a lock protects: it notices when two are in it.
type inside struct {
	t      *testing.T
	owner  atomic.Pointer[thread]
	visits atomic.Int64
}

func (in *inside) visit(th *thread) {
	if !in.owner.CompareAndSwap(nil, th) {
		in.t.Errorf("%s is inside beside another", th.owner)
	}
	in.visits.Add(1)
	pauseFor(th.ctx, 200*time.Microsecond) // in virtual time nothing else takes any
	in.owner.CompareAndSwap(th, nil)
}

// A way locks one side for a thread.
type way func(th *thread, l *relock.Lock) error

var waysToLock = []way{
	func(th *thread, l *relock.Lock) error { return l.Lock(th.ctx) },
	func(th *thread, l *relock.Lock) error { return timed(l.TryLock(th.ctx, time.Minute)) },
	func(th *thread, l *relock.Lock) error { _, err := l.Acquire(th.ctx); return err },
	func(th *thread, l *relock.Lock) error { // as long as it takes
		for {
			if got, err := l.TryLock(th.ctx, 0); got || err != nil {
				return err
			}
			pauseFor(th.ctx, time.Millisecond)
		}
	},
}

func anyWay() way { return waysToLock[rand.N(len(waysToLock))] }

// all runs the work of several threads, and waits for the last.
func (g *ground) all(threads int, work func(th *thread) error) {
	g.t.Helper()
	var calls []*attempt
	for i := range threads {
		th := g.thread(fmt.Sprint("t", i))
		calls = append(calls, th.begin(func(ctx context.Context) error { th.ctx = ctx; return work(th) }))
	}
	for _, a := range calls {
		g.ok(a.ends())
	}
	g.queue()
	g.held()
}

// TestJTREG_CheckedLockLoops: threads that lock in every way exclude each other.
func TestJTREG_CheckedLockLoops(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		const threads, rounds = 6, 12
		in := &inside{t: t}
		g.all(threads, func(th *thread) error {
			for range rounds {
				if err := anyWay()(th, th.excl); err != nil {
					return err
				}
				in.visit(th)
				if err := th.excl.Unlock(); err != nil {
					return err
				}
			}
			return nil
		})
		if got := in.visits.Load(); got != threads*rounds {
			t.Errorf("%d visits, want %d", got, threads*rounds)
		}
	})
}

// TestJTREG_SimpleReentrantLockLoops: the same, by threads that nest.
func TestJTREG_SimpleReentrantLockLoops(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		in := &inside{t: t}
		var nest func(th *thread, depth int) error
		nest = func(th *thread, depth int) error {
			if depth == 0 {
				in.visit(th)
				return nil
			}
			if err := anyWay()(th, th.WLocker()); err != nil {
				return err
			}
			return errors.Join(nest(th, depth-1), th.Unlock())
		}
		g.all(5, func(th *thread) error {
			for range 4 {
				if err := nest(th, 3); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// TestJTREG_CancelledLockLoops: all but two threads are interrupted at some
// moment; just these two complete, and the lock is none the worse.
func TestJTREG_CancelledLockLoops(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		const threads, rounds = 8, 25
		in := &inside{t: t}
		var calls []*attempt
		for i := range threads {
			th := g.thread(fmt.Sprint("t", i))
			calls = append(calls, th.begin(func(ctx context.Context) error {
				for n := 0; n < rounds || i >= 2; n++ {
					if err := th.excl.Lock(ctx); err != nil {
						return err
					}
					in.visit(th)
					if err := th.excl.Unlock(); err != nil {
						return fmt.Errorf("unlock: %v", err)
					}
				}
				return nil
			}))
		}
		for _, a := range calls[2:] {
			pauseFor(t.Context(), time.Millisecond+rand.N(7*time.Millisecond))
			a.interrupt()
		}
		for i, a := range calls {
			if i < 2 {
				g.ok(a.ends())
			} else {
				g.is(a.ends(), context.Canceled)
			}
		}
		g.queue()
		g.until(func() (bool, string) {
			info, err := g.view().Info(t.Context())
			g.ok(err)
			return len(info.Holders) == 0, fmt.Sprintf("%v hold", info.Holders)
		})
	})
}

// TestJTREG_TimeoutLockLoops: threads lock, and wait for 10 ms at most; once the
// lock is jammed, all of them end.
func TestJTREG_TimeoutLockLoops(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		in := &inside{t: t}
		var jammed atomic.Bool
		var calls []*attempt
		for i := range 5 {
			th := g.thread(fmt.Sprint("t", i))
			calls = append(calls, th.begin(func(ctx context.Context) error {
				for {
					err := timed(th.excl.TryLock(ctx, 10*time.Millisecond))
					if errors.Is(err, relock.ErrNotAcquired) && !jammed.Load() {
						continue // a slow machine
					}
					if err != nil {
						return err
					}
					in.visit(th)
					if err := th.excl.Unlock(); err != nil {
						return err
					}
				}
			}))
		}
		g.until(func() (bool, string) { return in.visits.Load() > 20, "nobody gets the lock" })
		jam := g.thread("jam")
		g.ok(jam.excl.Lock(jam.ctx))
		jammed.Store(true)
		for _, a := range calls {
			g.is(a.ends(), relock.ErrNotAcquired)
		}
		g.queue()
		g.held("jam w1")
		g.ok(jam.excl.Unlock())
	})
}

// TestJTREG_LockOncePerThreadLoops: each thread locks each lock of an array once,
// so that every missed wake-up is the last.
func TestJTREG_LockOncePerThreadLoops(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		const threads, locks = 6, 20
		var inner [locks]inside
		for i := range inner {
			inner[i].t = t
		}
		g.all(threads, func(th *thread) error {
			c := g.clients[rand.N(len(g.clients))]
			for i := range inner {
				l := c.NewLock(fmt.Sprint(g.name, i), g.opts...)
				if err := l.Lock(th.ctx); err != nil {
					return err
				}
				inner[i].visit(th)
				if err := l.Unlock(); err != nil {
					return err
				}
			}
			return nil
		})
		for i := range inner {
			if got := inner[i].visits.Load(); got != threads {
				t.Errorf("lock %d: %d visits, want %d", i, got, threads)
			}
		}
	})
}
