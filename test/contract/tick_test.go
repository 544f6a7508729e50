package contract_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A ticker calls Once, and counts what has run by the second at which it began.
type ticker struct {
	t    *testing.T
	x    *rig.Lab
	runs []time.Duration
	fail error
}

// tick is one call of a client, and whether it ran.
func (k *ticker) tick(c *relock.Client, every time.Duration, opts ...relock.LockOption) (ran bool) {
	k.t.Helper()
	ran, err := c.Once(k.t.Context(), "l", every, func(context.Context) error {
		k.runs = append(k.runs, k.x.Now())
		return k.fail
	}, opts...)
	if k.fail == nil && err != nil || ran && !errors.Is(err, k.fail) {
		k.t.Errorf("at %v: Once = %v, %v, want the error %v", k.x.Now(), ran, err, k.fail)
	}
	return ran
}

func (k *ticker) wantRuns(want ...time.Duration) {
	k.t.Helper()
	if fmt.Sprint(k.runs) != fmt.Sprint(want) {
		k.t.Errorf("it ran at %v, want %v", k.runs, want)
	}
}

// Three processes call within each minute, at other times of it, and one of them is new
// each time. The lab begins at a full minute.
// Fails when the name rests for a minute after a run, and not until the next minute begins.
func TestOnceRunsOnceInEachInterval(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		k := &ticker{t: t, x: x}
		a, b := x.Client(), x.Client()
		for minute, second := range []int{50, 10, 30} {
			at := time.Duration(minute) * time.Minute
			x.Until(at + time.Duration(second)*time.Second)
			k.tick(a, time.Minute)
			x.Until(at + 55*time.Second)
			if k.tick(b, time.Minute) || k.tick(x.Client(), time.Minute) {
				t.Errorf("it ran twice in minute %d", minute)
			}
			if info := x.Info(x.Eye.NewLock("l")); info.Resting != 5*time.Second {
				t.Errorf("it rests for %v, want 5s", info.Resting)
			}
		}
		k.wantRuns(50*time.Second, 70*time.Second, 150*time.Second)
	})
}

// A run that lasts into the next interval has that one go on when it is over.
func TestOnceThatRunsLongIsAlone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		k := &ticker{t: t, x: x}
		x.Until(30 * time.Second)
		long := rig.Beside(func() error {
			_, err := x.Eye.Once(t.Context(), "l", time.Minute, func(context.Context) error { virtual.Sleep(time.Minute); return nil })
			return err
		})
		c := x.Client()
		for _, at := range []time.Duration{45 * time.Second, 61 * time.Second, 89 * time.Second} {
			x.Until(at)
			if k.tick(c, time.Minute) {
				t.Errorf("at %v it runs beside another", at)
			}
		}
		x.Until(91 * time.Second)
		rig.Must(t, rig.Returned(t, long))
		if !k.tick(c, time.Minute) || k.tick(c, time.Minute) {
			t.Error("the second interval has not been run once")
		}
	})
}

// Fails when a run that failed does not count, and when one counts that says it does not.
func TestOnceThatFailedIsSpentUnlessItsErrorSaysOtherwise(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		k := &ticker{t: t, x: x, fail: fmt.Errorf("no network yet: %w", relock.ErrUnspent)}
		a, b := x.Client(), x.Client()
		if !k.tick(a, time.Minute) || !k.tick(b, time.Minute) {
			t.Error("a run that says that it does not count has spent the interval")
		}
		if k.fail = errWork; !k.tick(a, time.Minute) || k.tick(b, time.Minute) {
			t.Error("a run that failed has not spent the interval")
		}
		x.Until(time.Minute)
		k.fail = nil
		func() {
			defer func() { _ = recover() }()
			_, _ = a.Once(t.Context(), "l", time.Minute, func(context.Context) error { panic(errWork) })
		}()
		if k.tick(b, time.Minute) {
			t.Error("a run that panicked has not spent the interval")
		}
	})
}

// No owner enters what another call holds, and a call within fn would wait for itself.
func TestOnceKnowsNoOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ran, err := x.Eye.Once(x.By("me"), "l", time.Minute, func(ctx context.Context) error {
			if id, _ := relock.OwnerFrom(ctx); id != "me" {
				t.Errorf("the owner in fn is %q", id)
			}
			if h, ok := relock.FromContext(ctx, "l"); !ok || h.Err() != nil {
				t.Error("fn's context does not know the hold")
			}
			again, err := x.Client().Once(x.By("me"), "l", time.Minute, func(context.Context) error { return nil })
			if again || err != nil {
				t.Errorf("beside fn: %v, %v, want false, nil", again, err)
			}
			_, err = x.Eye.Once(ctx, "l", time.Minute, func(context.Context) error { return nil })
			rig.WantIs(t, err, relock.ErrDeadlock)
			return nil
		})
		if !ran || err != nil {
			t.Errorf("Once: %v, %v, want true, nil", ran, err)
		}
		for i, bad := range badOwners {
			ran, err := x.Eye.Once(x.By(bad), fmt.Sprint("by ", i), time.Minute, func(context.Context) error { return nil })
			if !ran || err != nil {
				t.Errorf("Once of an owner %.10q: %v, %v, want true, nil", bad, ran, err)
			}
		}
	})
}

// A runner that is cut off knows it by the end of its trust, and its interval is spent.
func TestOnceThatIsLostIsSpent(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		k := &ticker{t: t, x: x}
		a, c := x.Actor(), x.Client()
		ran, err := a.Once(t.Context(), "l", time.Minute, func(ctx context.Context) error {
			a.Link.Hole()
			<-ctx.Done()
			return relock.ErrUnspent
		}, relock.TTL(10*time.Second))
		if !ran {
			t.Error("it has not run")
		}
		rig.WantIs(t, err, relock.ErrLost, relock.ErrUnspent)
		x.Until(30 * time.Second)
		if k.tick(c, time.Minute) {
			t.Error("the interval is run again")
		}
		x.Until(time.Minute)
		if !k.tick(c, time.Minute) {
			t.Error("the next interval is not run")
		}
	})
}

// The server's clock steps back by one interval: those that come again have been run, and
// are not run again.
// Fails when the name rests for so long, and not until an instant of that clock.
func TestOnceIsNotRunAgainInAnIntervalThatComesAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		k := &ticker{t: t, x: x}
		c := x.Client()
		back := time.Duration(0)
		for second := 5; second < 300; second += 10 {
			x.Until(time.Duration(second) * time.Second)
			if second == 125 {
				back = time.Minute
			}
			x.Server.Direct().SetTime(time.Now().Add(-back))
			k.tick(c, time.Minute)
		}
		k.wantRuns(5*time.Second, 65*time.Second, 185*time.Second, 245*time.Second)
	})
}

// The interval has ended, and somebody whose request comes late has had Redis look at the
// lock, when its clock steps back.
// Fails when a rest that is over is forgotten before the next run.
func TestOnceIsNotRunAgainThoughItsIntervalHadEnded(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		k, c := &ticker{t: t, x: x}, x.Client()
		x.Until(5 * time.Second)
		k.tick(c, time.Minute)
		x.Until(65 * time.Second)
		rig.Raw{T: t, Redis: x.Redis, ID: "gone"}.Release(rig.NonceOf('x'), "~x", 0)
		x.Until(70 * time.Second)
		x.Server.Direct().SetTime(time.Now().Add(-time.Minute))
		k.tick(c, time.Minute)
		x.Until(125 * time.Second)
		x.Server.Direct().SetTime(time.Now().Add(-time.Minute))
		k.tick(c, time.Minute)
		k.wantRuns(5*time.Second, 125*time.Second)
	})
}

func TestOnceThatCannotBeIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		never := func(context.Context) error { t.Error("it runs"); return nil }
		once := func(c *relock.Client, ctx context.Context, name string, every time.Duration, fn func(context.Context) error, opts ...relock.LockOption) error {
			ran, err := c.Once(ctx, name, every, fn, opts...)
			if ran {
				t.Error("it says that it ran")
			}
			return err
		}
		for _, every := range []time.Duration{-time.Minute, 0, time.Microsecond, 367 * 24 * time.Hour} {
			rig.WantIs(t, once(x.Eye, t.Context(), "l", every, never), relock.ErrInvalidOption)
		}
		ctx := t.Context()
		rig.WantIs(t, once(x.Eye, ctx, "l", time.Minute, nil), relock.ErrInvalidOption)
		rig.WantIs(t, once(x.Eye, nil, "l", time.Minute, never), relock.ErrInvalidOption)
		rig.WantIs(t, once(x.Eye, ctx, "", time.Minute, never), relock.ErrInvalidName)
		rig.WantIs(t, once(x.Eye, ctx, "l", time.Minute, never, relock.Owner("me")), relock.ErrInvalidOption)
		rig.WantIs(t, once(x.Eye, ctx, "l", time.Minute, never, relock.AtLeast(time.Second)), relock.ErrInvalidOption)
		rig.WantIs(t, once(x.Eye, ctx, "l", time.Minute, never, nil), relock.ErrInvalidOption)
		rig.WantIs(t, once(nil, ctx, "l", time.Minute, never), relock.ErrInvalidOption)
		done, cancel := context.WithCancel(ctx)
		cancel()
		rig.WantIs(t, once(x.Eye, done, "l", time.Minute, never), context.Canceled)
		c := x.Client()
		rig.Must(t, c.Close())
		rig.WantIs(t, once(c, ctx, "l", time.Minute, never), relock.ErrClosed)
		synctest.Wait()
		if info := x.Info(x.Eye.NewLock("l")); info.Kind != "" {
			t.Errorf("redis has %+v, want nothing", info)
		}
	})
}

// An outage is no interval that has been run.
func TestOnceSaysThatRedisDidNotAnswer(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		a.Link.Hole()
		ran, err := a.Once(t.Context(), "l", time.Minute, func(context.Context) error { return nil })
		if ran || err == nil {
			t.Errorf("Once = %v, %v, want an error", ran, err)
		}
	})
}

// A subtask of a group fails with ErrUnspent, which is then the cause of the group's context. A run that did its work
// returns the error of a lock that it waited for under that context.
// Fails when this is taken for ErrUnspent of the run itself: the next process then runs in the same interval.
func TestACauseThatSaysUnspentIsNotTheRunsOwn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		group, fail := context.WithCancelCause(t.Context())
		runs := 0
		run := func(ctx context.Context, fn func(ctx context.Context) error) error {
			_, err := x.Client().Once(ctx, "job", time.Hour, func(ctx context.Context) error { runs++; return fn(ctx) })
			return err
		}
		err := run(group, func(ctx context.Context) error {
			fail(relock.ErrUnspent)
			return x.Lock("l").Lock(ctx)
		})
		rig.WantIs(t, err, context.Canceled)
		rig.Must(t, run(t.Context(), func(context.Context) error { return nil }))
		if runs != 1 {
			t.Errorf("%d runs in one interval", runs)
		}
	})
}
