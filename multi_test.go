package relock_test

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
	"github.com/relock-go/relock/internal/redistest"
)

func TestMultiHoldsAllItsLocksOrNone(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		m := relock.NewMulti(c.NewLock("b"), c.NewLock("a"), c.NewRWLock("c").RLocker())
		noErr(t, m.Lock(t.Context()))
		x.refuses(x.lock("a"))
		x.refuses(x.lock("b"))
		x.refuses(x.client().NewRWLock("c").WLocker())
		noErr(t, m.Unlock())
		x.frees("a")
		x.frees("b")
		last := x.lock("b")
		noErr(t, last.Lock(t.Context()))
		for _, wait := range []time.Duration{0, time.Second} {
			if got, err := m.TryLock(t.Context(), wait); got || err != nil {
				t.Errorf("TryLock(%v) = %v, %v beside a lock that is taken", wait, got, err)
			}
			x.frees("a")
		}
		wantIs(t, m.Unlock(), relock.ErrNotHeld)
		noErr(t, last.Unlock())
		synctest.Wait() // the call whose wait is over has left the queue
		h, err := m.TryAcquire(t.Context(), 0)
		noErr(t, err)
		noErr(t, h.Release())
	})
}

func TestMultiWaitsForAllItsLocksTogether(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		a, b := x.lock("a"), x.lock("b")
		noErr(t, a.Lock(t.Context()))
		noErr(t, b.Lock(t.Context()))
		c := x.client()
		m := relock.NewMulti(c.NewLock("a"), c.NewLock("b"))
		time.AfterFunc(600*time.Millisecond, func() { noErr(t, a.Unlock()) })
		began := time.Now()
		_, err := m.TryAcquire(t.Context(), time.Second)
		wantIs(t, err, relock.ErrNotAcquired)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v, want the second that all have together", took)
		}
		x.frees("a")
		noErr(t, b.Unlock())
	})
}

func TestMultiGivesBackWhenItsContextEnds(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		b := x.lock("b")
		noErr(t, b.Lock(t.Context()))
		c, link := x.linked()
		m := relock.NewMulti(c.NewLock("a"), c.NewLock("b"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		heal := make(chan func(), 1)
		time.AfterFunc(900*time.Millisecond, func() { heal <- link.Hole() }) // nobody waits for Redis
		began := time.Now()
		wantIs(t, m.Lock(ctx), context.DeadlineExceeded)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v, want the second that the context lasts", took)
		}
		(<-heal)()
		time.Sleep(5 * time.Second)
		x.frees("a")
		noErr(t, b.Unlock())
	})
}

// Fails when locks are taken in the order in which they were given.
func TestMultisNeverWaitInACircle(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		const names, processes, rounds = 6, 8, 20
		var inside [names]atomic.Int32
		done := make(chan error, processes)
		for p := range processes {
			c := x.client(relock.Defaults(relock.TTL(time.Second)))
			rng := rand.New(rand.NewPCG(uint64(p), 1))
			go func() {
				var err error
				for range rounds {
					mine := rng.Perm(names)[:1+rng.IntN(3)]
					var locks []*relock.Lock
					for _, n := range mine {
						locks = append(locks, c.NewLock(fmt.Sprint("job ", n)))
					}
					err = errors.Join(err, relock.NewMulti(locks...).Do(t.Context(), func(context.Context) error {
						for _, n := range mine {
							if inside[n].Add(1) != 1 {
								err = errors.Join(err, fmt.Errorf("job %d is held twice", n))
							}
							defer inside[n].Add(-1)
						}
						time.Sleep(3 * time.Millisecond)
						return nil
					}))
				}
				done <- err
			}()
		}
		for range processes {
			select {
			case err := <-done:
				noErr(t, err)
			case <-time.After(time.Hour):
				t.Fatal("they wait for each other")
			}
		}
		for n := range names {
			x.frees(fmt.Sprint("job ", n))
		}
	})
}

func TestMultiIsLostWithTheFirstThatIsLost(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		a, b := c.NewLock("a"), c.NewLock("b")
		m := relock.NewMulti(a, b)
		h, err := m.Acquire(t.Context())
		noErr(t, err)
		noErr(t, h.Err())
		if len(h.Tokens()) != 2 || h.Tokens()["a"] == 0 || h.Tokens()["b"] == 0 {
			t.Errorf("tokens %v, want one of each lock", h.Tokens())
		}
		if left := time.Until(h.TrustedUntil()); left <= 0 || left > 30*time.Second {
			t.Errorf("trusted for %v", left)
		}
		ctx, lost := h.Context(t.Context()), h.Lost()
		ended, err := x.lock("b").ForceUnlock(t.Context())
		noErr(t, err)
		if !ended {
			t.Fatal("nothing was removed")
		}
		<-lost
		wantIs(t, h.Err(), relock.ErrLost)
		wantIs(t, ctx.Err(), context.Canceled)
		wantIs(t, context.Cause(ctx), relock.ErrLost)
		wantZero(t, h.TrustedUntil())
		x.refuses(x.lock("a")) // until the Release
		wantIs(t, h.Release(), relock.ErrLost)
		x.frees("a")
		wantIs(t, h.Release(), relock.ErrNotHeld)
		<-h.Lost()
	})
}

func TestMultiThatIsReleasedInTimeIsNotLost(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		h, err := relock.NewMulti(c.NewLock("a"), c.NewLock("b")).Acquire(t.Context())
		noErr(t, err)
		lost, ctx := h.Lost(), h.Context(t.Context())
		noErr(t, h.Release())
		synctest.Wait()
		wantIs(t, ctx.Err(), context.Canceled)
		wantIs(t, h.Err(), relock.ErrNotHeld)
		wantNot(t, h.Err(), relock.ErrLost)
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
	inLab(t, func(t *testing.T, x *lab) {
		b := x.lock("b")
		noErr(t, b.Lock(t.Context()))
		c := x.client()
		call := beside(func() error {
			h, err := relock.NewMulti(c.NewLock("a"), c.NewLock("b")).Acquire(t.Context())
			if err == nil {
				err = errors.Join(h.Err(), h.Release())
			}
			return err
		})
		stillWaits(t, call)
		ended, err := x.lock("a").ForceUnlock(t.Context())
		noErr(t, err)
		if !ended {
			t.Fatal("nothing was removed")
		}
		noErr(t, b.Unlock())
		noErr(t, <-call)
		x.frees("a")
		x.frees("b")
	})
}

// Each Unlock ends one success, and what was lost comes first.
func TestMultiUnlocksWhatWasLostFirst(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		m := relock.NewMulti(c.NewRWLock("a").RLocker(), c.NewRWLock("b").RLocker())
		noErr(t, m.Lock(t.Context()))
		synctest.Wait() // its inbox hears
		_, err := x.client().NewRWLock("a").WLocker().ForceUnlock(t.Context())
		noErr(t, err)
		synctest.Wait()
		noErr(t, m.Lock(t.Context()))
		wantIs(t, m.Unlock(), relock.ErrLost)
		noErr(t, m.Unlock())
		wantIs(t, m.Unlock(), relock.ErrNotHeld)
	})
}

func TestMultiGivesBackWhatAHookPanicsIn(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client(relock.Trace(relock.Hooks{Waiting: func(context.Context, relock.Event) { panic("hook") }}))
		b := x.lock("b")
		noErr(t, b.Lock(t.Context()))
		func() {
			defer func() {
				if p := recover(); p != "hook" {
					t.Errorf("recovered %v", p)
				}
			}()
			_ = relock.NewMulti(c.NewLock("a"), c.NewLock("b")).Lock(t.Context())
		}()
		synctest.Wait()
		x.frees("a")
		noErr(t, b.Unlock())
	})
}

func TestPanicOfAReleasedHookReachesTheCallerOfAMulti(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client(relock.Trace(relock.Hooks{Released: func(relock.Event) { panic("hook") }}))
		m := relock.NewMulti(c.NewLock("a"), c.NewLock("b"))
		noErr(t, m.Lock(t.Context()))
		defer func() {
			if p := recover(); p != "hook" {
				t.Errorf("recovered %v", p)
			}
			x.frees("a")
			x.frees("b")
		}()
		_ = m.Unlock()
	})
}

func TestMultiOfANamedOwnerReenters(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		a, b := c.NewLock("a"), c.NewLock("b")
		m := relock.NewMulti(b, a)
		noErr(t, m.Do(x.by("me"), func(ctx context.Context) error {
			ran, err := m.TryDo(ctx, 0, func(context.Context) error { return nil })
			if !ran {
				t.Error("the nested Multi waits for its own owner")
			}
			return err
		}))
		wantIs(t, m.Do(t.Context(), func(ctx context.Context) error { return m.Lock(ctx) }), relock.ErrDeadlock)
		x.frees("a")
	})
}

func TestMultiOfLocksThatDoNotGoTogetherIsRefused(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		for name, m := range map[string]*relock.Multi{
			"no lock":         relock.NewMulti(),
			"a zero value":    {},
			"nil":             relock.NewMulti(c.NewLock("a"), nil),
			"a zero lock":     relock.NewMulti(new(relock.Lock)),
			"a bad option":    relock.NewMulti(c.NewLock("a", relock.TTL(-1))),
			"one name twice":  relock.NewMulti(c.NewLock("a"), x.lock("a")),
			"both sides":      relock.NewMulti(c.NewRWLock("a").RLocker(), c.NewRWLock("a").WLocker()),
			"another prefix'": relock.NewMulti(c.NewLock("a"), x.client(relock.KeyPrefix("p")).NewLock("a")),
		} {
			_, try := m.TryLock(t.Context(), 0)
			_, tryDo := m.TryDo(t.Context(), 0, nil)
			for call, err := range map[string]error{
				"Lock": m.Lock(t.Context()), "TryLock": try, "Do": m.Do(t.Context(), nil), "TryDo": tryDo, "Unlock": m.Unlock(),
			} {
				if !errors.Is(err, relock.ErrInvalidOption) {
					t.Errorf("%s of %s: %v, want ErrInvalidOption", call, name, err)
				}
			}
		}
		if keys := x.srv.Direct().Keys(); len(keys) != 0 {
			t.Errorf("they leave %q in Redis", keys)
		}
		wantIs(t, new(relock.MultiHold).Err(), relock.ErrNotHeld)
	})
}

// One of its locks is on a server that goes silent: the other server's are given
// back, and nothing is taken without the rest.
func TestMultiOverTwoServersTakesNothingWhereOneIsSilent(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		far, link := x.linked()
		link.OnCommand(func(redistest.Command) redistest.Verdict { return redistest.Lose })
		m := relock.NewMulti(c.NewLock("a"), far.NewLock("b"))
		_, err := m.TryLock(t.Context(), 0)
		if err == nil {
			t.Error("no error from a server that is silent")
		}
		synctest.Wait()
		x.frees("a")
	})
}
