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

var errReason = errors.New("the reason")

// everyWay is each call that acquires, as one that returns an error.
func everyWay(l *relock.Lock) map[string]func(context.Context) error {
	never := func(context.Context) error { return errors.New("fn ran") }
	return map[string]func(context.Context) error{
		"Lock":    l.Lock,
		"Acquire": func(ctx context.Context) error { _, err := l.Acquire(ctx); return err },
		"Do":      func(ctx context.Context) error { return l.Do(ctx, never) },
		"TryLock(0)": func(ctx context.Context) error {
			_, err := l.TryLock(ctx, 0)
			return err
		},
		"TryLock": func(ctx context.Context) error {
			_, err := l.TryLock(ctx, time.Hour)
			return err
		},
		"TryAcquire": func(ctx context.Context) error { _, err := l.TryAcquire(ctx, time.Hour); return err },
		"TryDo":      func(ctx context.Context) error { _, err := l.TryDo(ctx, time.Hour, never); return err },
	}
}

func TestDoneContextFailsFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		free := x.Lock("free")
		mine := x.Lock("mine", relock.Owner("me"))
		rig.Must(t, mine.Lock(t.Context()))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errReason)
		for _, l := range []*relock.Lock{free, mine} {
			for way, call := range everyWay(l) {
				err := call(ctx)
				rig.WantIs(t, err, context.Canceled, errReason)
				rig.WantNot(t, err, relock.ErrNotAcquired)
				if t.Failed() {
					t.Fatalf("%s of lock %q", way, l.Name())
				}
			}
		}
		// Also before all else that is wrong with the call.
		rig.WantIs(t, mine.Lock(relock.WithOwner(ctx, "you")), context.Canceled)
		rig.WantIs(t, mine.Lock(relock.WithOwner(ctx, "")), context.Canceled)
		x.Holders(free, "", 0)
		x.Holders(mine, "me", 1)
		rig.Must(t, mine.Unlock())
	})
}

const waitsFor = 3_141_592_653 * time.Nanosecond

// An end makes a context that ends after waitsFor, and says what a call returns then.
type end struct {
	name string
	ctx  func(context.Context) (context.Context, context.CancelFunc)
	want []error
}

var ends = []end{
	{"timeout", func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, waitsFor)
	}, []error{context.DeadlineExceeded}},
	{"timeout with cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, waitsFor, errReason)
	}, []error{context.DeadlineExceeded, errReason}},
	{"cancel", func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(waitsFor, cancel)
		return ctx, cancel
	}, []error{context.Canceled}},
	{"cancel with cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(waitsFor, func() { cancel(errReason) })
		return ctx, func() { cancel(nil) }
	}, []error{context.Canceled, errReason}},
}

// TestEndOfTheContextEndsTheWait: by cancel and by deadline, with a cause and
// without, in Redis' queue and in the process' own line.
func TestEndOfTheContextEndsTheWait(t *testing.T) {
	for _, row := range ends {
		t.Run(row.name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				holder, other := x.Lock("a"), x.Lock("a")
				rig.Must(t, holder.Lock(t.Context()))
				for _, l := range []*relock.Lock{holder, other} {
					for way, call := range everyWay(l) {
						if way == "TryLock(0)" {
							continue
						}
						began := time.Now()
						ctx, cancel := row.ctx(t.Context())
						rig.WantIs(t, call(ctx), row.want...)
						cancel()
						if took := time.Since(began); took != waitsFor {
							t.Errorf("%s took %v, want %v", way, took, waitsFor)
						}
						x.Waits(holder)
					}
				}
				rig.Must(t, holder.Unlock())
			})
		})
	}
}

func TestCancelledWaiterLeavesTheQueueAtOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, next := x.Lock("a"), x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		ctx, cancel := context.WithCancel(x.By("first"))
		first := rig.Beside(func() error { return next.Lock(ctx) })
		x.Waits(l, "first")
		second := rig.Beside(func() error { return next.Lock(x.By("second")) })
		x.Waits(l, "first", "second")
		cancel()
		rig.WantIs(t, rig.Returned(t, first), context.Canceled)
		x.Waits(l, "second")
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, second))
		rig.Must(t, next.Unlock())
	})
}

// TestCancelledFrontOfTheLineLeavesItsPlaceToTheNext: anonymous calls of one
// process stand in Redis' queue as one.
func TestCancelledFrontOfTheLineLeavesItsPlaceToTheNext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, here := x.Lock("a"), x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		front := rig.Beside(func() error { return here.Lock(ctx) })
		synctest.Wait()
		next := rig.Beside(func() error { return here.Lock(t.Context()) })
		synctest.Wait()
		virtual.Sleep(time.Second)
		before := x.Waiters(l)
		cancel()
		rig.WantIs(t, rig.Returned(t, front), context.Canceled)
		if now := x.Waiters(l); len(before) != 1 || len(now) != 1 || now[0].Age != before[0].Age {
			t.Errorf("waiters %v before, %v after: want the same place", before, now)
		}
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, next))
		rig.Must(t, here.Unlock())
		x.Frees("a")
	})
}

// TestGrantThatMeetsACancelIsPassedOn: the holder unlocks at the very instant
// at which the waiter's context ends, in every order that chance allows.
func TestGrantThatMeetsACancelIsPassedOn(t *testing.T) {
	for range 50 {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			l, other, third := x.Lock("a"), x.Lock("a"), x.Lock("a")
			rig.Must(t, l.Lock(t.Context()))
			ctx, cancel := context.WithCancel(t.Context())
			waiter := rig.Beside(func() error { return other.Lock(ctx) })
			synctest.Wait()
			last := rig.Beside(func() error { return third.Lock(t.Context()) })
			synctest.Wait()
			go cancel()
			rig.Must(t, l.Unlock())
			if err := rig.Returned(t, waiter); err == nil {
				rig.Must(t, other.Unlock())
			} else {
				rig.WantIs(t, err, context.Canceled)
				rig.WantIs(t, other.Unlock(), relock.ErrNotHeld)
			}
			rig.Must(t, rig.Returned(t, last))
			rig.Must(t, third.Unlock())
		})
	}
}

func TestTryLockOfZeroOrLessIsOneAttempt(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l, other := x.Lock("a"), c.NewLock("a")
		for _, wait := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
			rig.Must(t, l.Lock(t.Context()))
			began := time.Now()
			before := link.Commands()
			if got, err := other.TryLock(t.Context(), wait); got || err != nil {
				t.Errorf("TryLock(%v) = %v, %v, want false, nil", wait, got, err)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("TryLock(%v) took %v", wait, took)
			}
			if wait != 0 {
				if n := link.Commands()["evalsha"] - before["evalsha"]; n != 1 {
					t.Errorf("TryLock(%v) asked %d times, want once", wait, n)
				}
			}
			x.Waits(l)
			_, err := other.TryAcquire(t.Context(), wait)
			rig.WantIs(t, err, relock.ErrNotAcquired)
			rig.Must(t, l.Unlock())
			if got, err := other.TryLock(t.Context(), wait); !got || err != nil {
				t.Errorf("TryLock(%v) of a free lock = %v, %v, want true, nil", wait, got, err)
				continue
			}
			rig.Must(t, other.Unlock())
		}
	})
}

func TestTryLockWaitsExactlyAsLongAsItWasTold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a"), x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		for _, wait := range []time.Duration{1, time.Millisecond + 1, 777 * time.Millisecond, 95 * time.Second} {
			for _, by := range []context.Context{t.Context(), x.By("me")} {
				began := time.Now()
				if got, err := other.TryLock(by, wait); got || err != nil {
					t.Errorf("TryLock(%v) = %v, %v, want false, nil", wait, got, err)
				}
				if took := time.Since(began); took != wait {
					t.Errorf("TryLock(%v) took %v", wait, took)
				}
				x.Waits(l)
			}
		}
		long := rig.Beside(func() error { _, err := other.TryAcquire(t.Context(), math.MaxInt64); return err })
		rig.StillWaits(t, long)
		virtual.Sleep(1234 * time.Millisecond)
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, long))
		rig.Must(t, other.Unlock())
	})
}

// TestTryLockTellsARedisThatDoesNotAnswerFromATakenLock: (false, nil) is an
// answer, and there was none.
func TestTryLockTellsARedisThatDoesNotAnswerFromATakenLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		heal := link.Cut()
		for _, wait := range []time.Duration{0, 2 * time.Second} {
			got, err := c.NewLock("a").TryLock(t.Context(), wait)
			if got || err == nil {
				t.Errorf("TryLock(%v) = %v, %v, want false and an error", wait, got, err)
			}
			rig.WantNot(t, err, context.DeadlineExceeded)
			ran, err := c.NewLock("a").TryDo(t.Context(), wait, func(context.Context) error { return nil })
			if ran || err == nil {
				t.Errorf("TryDo(%v) = %v, %v, want false and an error", wait, ran, err)
			}
		}
		heal()
		virtual.Sleep(time.Minute)
		x.Frees("a")
	})
}

// TestTryLockWhoseAnswerOutlivesTheLease: the lock was had, and lost again on
// the way back.
func TestTryLockWhoseAnswerOutlivesTheLease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a", relock.TTL(100*time.Millisecond))
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "acquire") {
				link.Latency(49*time.Millisecond + 700*time.Microsecond)
			}
			return redistest.Pass
		})
		if got, err := l.TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock = %v, %v, want false, nil", got, err)
		}
		link.OnCommand(nil)
		link.Latency(0)
		virtual.Sleep(time.Second)
		x.Frees("a")
	})
}
