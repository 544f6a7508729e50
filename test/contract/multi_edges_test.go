package contract_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Each Unlock ends one success, and what was lost comes first.
func TestMultiUnlocksWhatWasLostFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		m := relock.NewMulti(c.NewRWLock("a").RLocker(), c.NewRWLock("b").RLocker())
		rig.Must(t, m.Lock(t.Context()))
		synctest.Wait() // its inbox hears
		_, err := x.Client().NewRWLock("a").WLocker().ForceUnlock(t.Context())
		rig.Must(t, err)
		synctest.Wait()
		rig.Must(t, m.Lock(t.Context()))
		rig.WantIs(t, m.Unlock(), relock.ErrLost)
		rig.Must(t, m.Unlock())
		rig.WantIs(t, m.Unlock(), relock.ErrNotHeld)
	})
}

func TestMultiGivesBackWhatAHookPanicsIn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client(relock.Trace(relock.Hooks{Waiting: func(context.Context, relock.Event) { panic("hook") }}))
		b := x.Lock("b")
		rig.Must(t, b.Lock(t.Context()))
		func() {
			defer func() {
				if p := recover(); p != "hook" {
					t.Errorf("recovered %v", p)
				}
			}()
			_ = relock.NewMulti(c.NewLock("a"), c.NewLock("b")).Lock(t.Context())
		}()
		synctest.Wait()
		x.Frees("a")
		rig.Must(t, b.Unlock())
	})
}

func TestPanicOfAReleasedHookReachesTheCallerOfAMulti(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client(relock.Trace(relock.Hooks{Released: func(relock.Event) { panic("hook") }}))
		m := relock.NewMulti(c.NewLock("a"), c.NewLock("b"))
		rig.Must(t, m.Lock(t.Context()))
		defer func() {
			if p := recover(); p != "hook" {
				t.Errorf("recovered %v", p)
			}
			x.Frees("a")
			x.Frees("b")
		}()
		_ = m.Unlock()
	})
}

func TestMultiOfANamedOwnerReenters(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		a, b := c.NewLock("a"), c.NewLock("b")
		m := relock.NewMulti(b, a)
		rig.Must(t, m.Do(x.By("me"), func(ctx context.Context) error {
			ran, err := m.TryDo(ctx, 0, func(context.Context) error { return nil })
			if !ran {
				t.Error("the nested Multi waits for its own owner")
			}
			return err
		}))
		rig.WantIs(t, m.Do(t.Context(), func(ctx context.Context) error { return m.Lock(ctx) }), relock.ErrDeadlock)
		x.Frees("a")
	})
}

func TestMultiOfLocksThatDoNotGoTogetherIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		for name, m := range map[string]*relock.Multi{
			"no lock":         relock.NewMulti(),
			"a zero value":    {},
			"nil":             relock.NewMulti(c.NewLock("a"), nil),
			"a zero lock":     relock.NewMulti(new(relock.Lock)),
			"a bad option":    relock.NewMulti(c.NewLock("a", relock.TTL(-1))),
			"one name twice":  relock.NewMulti(c.NewLock("a"), x.Lock("a")),
			"both sides":      relock.NewMulti(c.NewRWLock("a").RLocker(), c.NewRWLock("a").WLocker()),
			"another prefix'": relock.NewMulti(c.NewLock("a"), x.Client(relock.KeyPrefix("p")).NewLock("a")),
		} {
			_, try := m.TryLock(t.Context(), 0)
			runs := func(context.Context) error { t.Errorf("%s: fn ran", name); return nil }
			_, tryDo := m.TryDo(t.Context(), 0, runs)
			for call, err := range map[string]error{
				"Lock": m.Lock(t.Context()), "TryLock": try, "Do": m.Do(t.Context(), runs), "TryDo": tryDo, "Unlock": m.Unlock(),
			} {
				if !errors.Is(err, relock.ErrInvalidOption) {
					t.Errorf("%s of %s: %v, want ErrInvalidOption", call, name, err)
				}
			}
		}
		unnamed := relock.NewMulti(c.NewLock("a"), c.NewLock("b\n"))
		for _, err := range []error{unnamed.Lock(t.Context()), second(unnamed.TryLock(t.Context(), 0)), unnamed.Unlock()} {
			rig.WantIs(t, err, relock.ErrInvalidName)
		}
		if keys := x.Server.Direct().Keys(); len(keys) != 0 {
			t.Errorf("they leave %q in Redis", keys)
		}
		rig.WantIs(t, new(relock.MultiHold).Err(), relock.ErrNotHeld)
	})
}

// One of its locks is on a server that goes silent: the other server's are given
// back, and nothing is taken without the rest.
func TestMultiOverTwoServersTakesNothingWhereOneIsSilent(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		far, link := x.Linked()
		link.OnCommand(func(redistest.Command) redistest.Verdict { return redistest.Lose })
		m := relock.NewMulti(c.NewLock("a"), far.NewLock("b"))
		_, err := m.TryLock(t.Context(), 0)
		if err == nil {
			t.Error("no error from a server that is silent")
		}
		synctest.Wait()
		x.Frees("a")
	})
}

// Fails when a try stays until what it gives back is confirmed, and when the least wait
// becomes the longest.
func TestMultiTriesForNoLongerThanItsWait(t *testing.T) {
	for what, wait := range map[string]time.Duration{"no wait": math.MinInt64, "a wait": 300 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				far, link := x.Linked()
				near := x.Client()
				rig.Must(t, x.Lock("b").Lock(t.Context()))
				link.Latency(time.Millisecond)
				link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					if rig.Runs(cmd, "release") {
						return redistest.Lose
					}
					return redistest.Pass
				})
				began := x.Now()
				got, err := relock.NewMulti(far.NewLock("a"), near.NewLock("b")).TryLock(t.Context(), wait)
				if took := x.Now() - began; got || err != nil || took > max(wait, 0)+150*time.Millisecond {
					t.Errorf("TryLock = %v, %v after %v, for a wait of %v", got, err, took, wait)
				}
			})
		})
	}
}

// Each of the locks takes one round trip of 80 ms. Fails when one attempt for each has to end within a tenth of a second:
// nobody far from Redis could try for several locks.
func TestMultiIsTriedForByWhoIsFarFromRedis(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		far, link := x.Linked()
		link.Latency(40 * time.Millisecond)
		m := relock.NewMulti(far.NewLock("a"), far.NewLock("b"), far.NewLock("c"))
		got, err := m.TryLock(t.Context(), 0)
		if rig.Must(t, err); !got {
			t.Fatal("free locks were not had")
		}
		rig.Must(t, m.Unlock())
	})
}

// Fails when a try whose locks are lost before it has them all goes on without an end.
func TestMultiTriesForNoLongerThoughItsLocksAreLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		far, link := x.Linked()
		link.Latency(150 * time.Millisecond)
		m := relock.NewMulti(x.Lock("a", relock.TTL(100*time.Millisecond), relock.NoWatchdog()), far.NewLock("b"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, wait := range []time.Duration{0, time.Second} {
			began := x.Now()
			got, err := m.TryLock(ctx, wait)
			if took := x.Now() - began; got || err != nil || took > wait+2*time.Second {
				t.Errorf("TryLock = %v, %v after %v, for a wait of %v", got, err, took, wait)
			}
		}
	})
}

// The first Lost of a MultiHold finds that a lease has ended while the machine slept. The hook that is told calls Lost,
// too. Fails when the hook runs while the first call makes the channel: then both wait for ever.
func TestALostHookMayAskForTheChannelOfItsHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var held *relock.MultiHold
		told := make(chan struct{}, 2)
		c := x.Client(relock.Trace(relock.Hooks{Lost: func(relock.Event) {
			<-held.Lost()
			told <- struct{}{}
		}}))
		held, err := relock.NewMulti(c.NewLock("a", relock.TTL(time.Minute)), c.NewLock("b", relock.TTL(time.Minute))).Acquire(t.Context())
		rig.Must(t, err)
		x.Suspend(2 * time.Minute)
		<-held.Lost()
		<-told
		rig.WantIs(t, held.Release(), relock.ErrLost)
	})
}

// The first lock's lease ends while the second is waited for, so the Multi begins again.
// Fails when it then waits for the rest of a name that no call has had.
func TestAMultiWaitsForNoRestOfItsOwn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		second := acquire(t, x.Lock("b"), t.Context())
		m := relock.NewMulti(c.NewLock("a", relock.AtLeast(time.Hour), relock.NoWatchdog(), relock.TTL(5*time.Second)), c.NewLock("b"))
		all := rig.Beside(func() error { return m.Lock(t.Context()) })
		virtual.Sleep(20 * time.Second)
		rig.End(t, second)
		virtual.Sleep(time.Second)
		rig.Must(t, rig.Returned(t, all))
		rig.Must(t, m.Unlock())
		if got, err := x.Lock("a").TryLock(t.Context(), 0); got || err != nil { // a call has had it: now it rests
			t.Errorf("TryLock = %v, %v; want that the name rests", got, err)
		}
	})
}

// The wait of a Multi has passed by the time it comes to its next lock, whose server is silent.
func TestAMultiTriesNothingOnceItsWaitIsOver(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		slow := 60 * time.Millisecond
		near := x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) { virtual.Sleep(slow) }}))
		far, link := x.Linked()
		rig.Must(t, far.NewLock("warm").Do(t.Context(), func(context.Context) error { return nil }))
		link.OnCommand(func(redistest.Command) redistest.Verdict { return redistest.Lose })
		wait := 50 * time.Millisecond
		began := x.Now()
		got, _ := relock.NewMulti(near.NewLock("a"), far.NewLock("b")).TryLock(t.Context(), wait)
		if took := x.Now() - began; got || took > wait+slow+100*time.Millisecond {
			t.Errorf("TryLock(%v) = %v after %v", wait, got, took)
		}
	})
}

// A slowContext takes a millisecond to say its deadline, as if the process had been suspended meanwhile.
type slowContext struct{ context.Context }

func (c slowContext) Deadline() (time.Time, bool) {
	virtual.Sleep(time.Millisecond)
	return c.Context.Deadline()
}

// Fails when a call says that a lock was taken of which it could not ask in time: TryLock would return no error.
func TestAMultiWhoseWaitEndsBeforeItAsksIsNoContention(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		m := relock.NewMulti(x.Lock("a"), x.Lock("b"))
		if got, err := m.TryLock(slowContext{t.Context()}, time.Microsecond); got || err == nil {
			t.Errorf("TryLock = %v, %v, though nobody has the locks", got, err)
		} else {
			rig.WantNot(t, err, relock.ErrNotAcquired)
		}
	})
}

// The first lock was had when the wait ended: it was taken by nobody that the call knows of, and Redis has answered.
func TestAMultiWhoseWaitEndsBetweenTwoLocksIsNotAcquired(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		near := x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) { virtual.Sleep(60 * time.Millisecond) }}))
		got, err := relock.NewMulti(near.NewLock("a"), near.NewLock("b")).TryLock(t.Context(), 50*time.Millisecond)
		if got || err != nil {
			t.Errorf("TryLock = %v, %v, want false, nil", got, err)
		}
	})
}
