package contract_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestMultiHoldsAllItsLocksOrNone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		m := relock.NewMulti(c.NewLock("b"), c.NewLock("a"), c.NewRWLock("c").RLocker())
		rig.Must(t, m.Lock(t.Context()))
		x.Refuses(x.Lock("a"))
		x.Refuses(x.Lock("b"))
		x.Refuses(x.Client().NewRWLock("c").WLocker())
		rig.Must(t, m.Unlock())
		x.Frees("a")
		x.Frees("b")
		last := x.Lock("b")
		rig.Must(t, last.Lock(t.Context()))
		for _, wait := range []time.Duration{0, time.Second} {
			if got, err := m.TryLock(t.Context(), wait); got || err != nil {
				t.Errorf("TryLock(%v) = %v, %v beside a lock that is taken", wait, got, err)
			}
			x.Frees("a")
		}
		rig.WantIs(t, m.Unlock(), relock.ErrNotHeld)
		rig.Must(t, last.Unlock())
		synctest.Wait() // the call whose wait is over has left the queue
		h, err := m.TryAcquire(t.Context(), 0)
		rig.Must(t, err)
		rig.Must(t, h.Release())
	})
}

func TestMultiWaitsForAllItsLocksTogether(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, b := x.Lock("a"), x.Lock("b")
		rig.Must(t, a.Lock(t.Context()))
		rig.Must(t, b.Lock(t.Context()))
		c := x.Client()
		m := relock.NewMulti(c.NewLock("a"), c.NewLock("b"))
		time.AfterFunc(600*time.Millisecond, func() { rig.Must(t, a.Unlock()) })
		began := time.Now()
		_, err := m.TryAcquire(t.Context(), time.Second)
		rig.WantIs(t, err, relock.ErrNotAcquired)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v, want the second that all have together", took)
		}
		x.Frees("a")
		rig.Must(t, b.Unlock())
	})
}

func TestMultiGivesBackWhenItsContextEnds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		b := x.Lock("b")
		rig.Must(t, b.Lock(t.Context()))
		c, link := x.Linked()
		m := relock.NewMulti(c.NewLock("a"), c.NewLock("b"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		heal := make(chan func(), 1)
		time.AfterFunc(900*time.Millisecond, func() { heal <- link.Hole() }) // nobody waits for Redis
		began := time.Now()
		rig.WantIs(t, m.Lock(ctx), context.DeadlineExceeded)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v, want the second that the context lasts", took)
		}
		(<-heal)()
		virtual.Sleep(5 * time.Second)
		x.Frees("a")
		rig.Must(t, b.Unlock())
	})
}

// Fails when locks are taken in the order in which they were given.
func TestMultisNeverWaitInACircle(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const names, processes, rounds = 6, 8, 20
		inside := make(jobs, names)
		done := make(chan error, processes)
		for p := range processes {
			c := x.Client(relock.Defaults(relock.TTL(time.Second)))
			rng := rand.New(rand.NewPCG(uint64(p), 1))
			go func() {
				var err error
				for range rounds {
					err = errors.Join(err, inside.take(t.Context(), c, rng.Perm(names)[:1+rng.IntN(3)]))
				}
				done <- err
			}()
		}
		for range processes {
			select {
			case err := <-done:
				rig.Must(t, err)
			case <-time.After(time.Hour):
				t.Fatal("they wait for each other")
			}
		}
		for n := range names {
			x.Frees(fmt.Sprint("job ", n))
		}
	})
}

// jobs count who is at work on each.
type jobs []atomic.Int32

// take locks several jobs, in the order in which they are given, and works on them.
func (inside jobs) take(ctx context.Context, c *relock.Client, mine []int) error {
	var locks []*relock.Lock
	for _, n := range mine {
		locks = append(locks, c.NewLock(fmt.Sprint("job ", n)))
	}
	return relock.NewMulti(locks...).Do(ctx, func(context.Context) (err error) {
		for _, n := range mine {
			if inside[n].Add(1) != 1 {
				err = errors.Join(err, fmt.Errorf("job %d is held twice", n))
			}
			defer inside[n].Add(-1)
		}
		virtual.Sleep(3 * time.Millisecond)
		return err
	})
}

// Either of its locks is the first, and has the shorter lease.
func TestMultiIsLostWithTheFirstThatIsLost(t *testing.T) {
	for first, other := range map[string]string{"a": "b", "b": "a"} {
		t.Run(first, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) { losesFirst(t, x, first, other) })
		})
	}
}

func losesFirst(t *testing.T, x *rig.Lab, first, other string) {
	t.Helper()
	c := x.Client()
	m := relock.NewMulti(c.NewLock(first, relock.TTL(10*time.Second)), c.NewLock(other))
	h, err := m.Acquire(t.Context())
	rig.Must(t, err)
	rig.Must(t, h.Err())
	if len(h.Tokens()) != 2 || h.Tokens()["a"] == 0 || h.Tokens()["b"] == 0 {
		t.Errorf("tokens %v, want one of each lock", h.Tokens())
	}
	if left := time.Until(h.TrustedUntil()); left <= 0 || left > 10*time.Second {
		t.Errorf("trusted for %v", left)
	}
	ctx, lost := h.Context(t.Context()), h.Lost()
	ended, err := x.Lock(first).ForceUnlock(t.Context())
	rig.Must(t, err)
	if !ended {
		t.Fatal("nothing was removed")
	}
	<-lost
	rig.WantIs(t, h.Err(), relock.ErrLost)
	rig.WantIs(t, ctx.Err(), context.Canceled)
	rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
	wantZero(t, h.TrustedUntil())
	x.Refuses(x.Lock(other)) // until the Release
	rig.WantIs(t, h.Release(), relock.ErrLost)
	x.Frees(other)
	rig.WantIs(t, h.Release(), relock.ErrNotHeld)
	<-h.Lost()
}

func TestMultiThatIsReleasedInTimeIsNotLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		h, err := relock.NewMulti(c.NewLock("a"), c.NewLock("b")).Acquire(t.Context())
		rig.Must(t, err)
		lost, ctx := h.Lost(), h.Context(t.Context())
		rig.Must(t, h.Release())
		synctest.Wait()
		rig.WantIs(t, ctx.Err(), context.Canceled)
		rig.WantIs(t, h.Err(), relock.ErrNotHeld)
		rig.WantNot(t, h.Err(), relock.ErrLost)
		select {
		case <-lost:
			t.Error("lost, though it was released in time")
		default:
		}
	})
}

// While it waits for the second lock it loses the first: it asks for both again.
// Fails when what is not held whole is returned.
func TestMultiAsksAgainForWhatItLostWhileItWaited(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		b := x.Lock("b")
		rig.Must(t, b.Lock(t.Context()))
		c := x.Client()
		call := rig.Beside(func() error {
			h, err := relock.NewMulti(c.NewLock("a"), c.NewLock("b")).Acquire(t.Context())
			if err == nil {
				err = errors.Join(h.Err(), h.Release())
			}
			return err
		})
		rig.StillWaits(t, call)
		ended, err := x.Lock("a").ForceUnlock(t.Context())
		rig.Must(t, err)
		if !ended {
			t.Fatal("nothing was removed")
		}
		rig.Must(t, b.Unlock())
		rig.Must(t, <-call)
		x.Frees("a")
		x.Frees("b")
	})
}

// The second lock is so far away that the short lease of the first is over each time. Later it is near.
// Fails when what was lost some times is asked for no more.
func TestMultiAsksAgainHoweverOftenItLosesWhatItHas(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		far, link := x.Linked()
		link.Latency(150 * time.Millisecond)
		m := relock.NewMulti(x.Lock("a", relock.TTL(100*time.Millisecond), relock.NoWatchdog()), far.NewLock("b"))
		call := rig.Beside(func() error {
			h, err := m.Acquire(t.Context())
			if err == nil {
				err = errors.Join(h.Err(), h.Release())
			}
			return err
		})
		virtual.Sleep(time.Minute)
		rig.StillWaits(t, call)
		link.Latency(0)
		rig.Must(t, <-call)
		x.Frees("a")
		x.Frees("b")
	})
}
