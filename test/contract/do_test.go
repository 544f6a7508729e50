package contract_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

var errWork = errors.New("the work failed")

func TestDoHoldsTheLockWhileFnRuns(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		for _, want := range []error{nil, errWork} {
			err := l.Do(t.Context(), func(context.Context) error {
				x.Refuses(x.Lock("a"))
				return want
			})
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("Do = %v, want %v", err, want)
			}
			x.Frees("a")
		}
	})
}

func TestTryDoSaysWhetherFnRan(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a"), x.Lock("a")
		calls := 0
		fn := func(context.Context) error { calls++; return errWork }
		for _, wait := range []time.Duration{-1, 0, time.Second} {
			ran, err := l.TryDo(t.Context(), wait, fn)
			rig.WantIs(t, err, errWork)
			if !ran || calls != 1 {
				t.Errorf("TryDo(%v) of a free lock: ran %v, %d calls", wait, ran, calls)
			}
			rig.Must(t, other.Lock(t.Context()))
			if ran, err = l.TryDo(t.Context(), wait, fn); ran || err != nil || calls != 1 {
				t.Errorf("TryDo(%v) of a held lock: ran %v, %v, %d calls", wait, ran, err, calls)
			}
			rig.Must(t, other.Unlock())
			calls = 0
		}
	})
}

// TestDoKeepsTheOwnerAsItIs: a name in ctx, none, and a handle's name, which
// ctx does not get.
func TestDoKeepsTheOwnerAsItIs(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, row := range []struct {
			l    *relock.Lock
			ctx  context.Context
			want string
		}{
			{x.Lock("a"), t.Context(), ""},
			{x.Lock("a"), x.By("me"), "me"},
			{x.Lock("a", relock.Owner("me")), t.Context(), ""},
			{x.Lock("a", relock.Owner("me")), x.By("me"), "me"},
		} {
			rig.Must(t, row.l.Do(row.ctx, func(ctx context.Context) error {
				if id, ok := relock.OwnerFrom(ctx); id != row.want || ok != (row.want != "") {
					t.Errorf("owner %q, %v, want %q", id, ok, row.want)
				}
				return nil
			}))
		}
	})
}

// TestDoNests is the defect that a context made from a context of the same
// hold had: making it waited for a mutex that it held itself.
func TestDoNests(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		a, b := c.NewLock("a"), c.NewLock("b")
		rig.Must(t, a.Do(x.By("me"), func(ctx context.Context) error {
			return b.Do(ctx, func(ctx context.Context) error {
				return a.Do(ctx, func(ctx context.Context) error {
					x.Holders(a, "me", 2)
					x.Holders(b, "me", 1)
					return ctx.Err()
				})
			})
		}))
		x.Frees("a")
		x.Frees("b")
	})
}

func TestContextOfDoEndsWithTheHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var kept context.Context
		rig.Must(t, x.Lock("a").Do(t.Context(), func(ctx context.Context) error {
			rig.Must(t, ctx.Err())
			kept = ctx
			return nil
		}))
		rig.WantIs(t, kept.Err(), context.Canceled)
		rig.WantNot(t, context.Cause(kept), relock.ErrLost)
	})
}

func TestContextOfDoEndsWithItsParent(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := l.Do(ctx, func(ctx context.Context) error {
			cancel(errReason)
			<-ctx.Done()
			rig.WantIs(t, context.Cause(ctx), errReason)
			x.Refuses(x.Lock("a"))
			return nil
		})
		rig.Must(t, err)
		x.Frees("a")
	})
}

// TestDoIsErrLostAfterALoss: whatever fn returns, and although fn's context told it.
func TestDoIsErrLostAfterALoss(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, of := range []error{nil, errWork} {
			err := x.Lock("a", relock.TTL(time.Second), relock.NoWatchdog()).Do(t.Context(), func(ctx context.Context) error {
				began := time.Now()
				<-ctx.Done()
				rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
				rig.WantIs(t, ctx.Err(), context.Canceled)
				if took := time.Since(began); took > time.Second || took < 900*time.Millisecond {
					t.Errorf("lost after %v, want within the lease", took)
				}
				return of
			})
			rig.WantIs(t, err, relock.ErrLost)
			if of != nil {
				rig.WantIs(t, err, of)
			}
			virtual.Sleep(time.Second)
		}
	})
}

func TestDoJoinsBothErrors(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		err := c.NewLock("a").Do(t.Context(), func(context.Context) error {
			link.Cut()
			return errWork
		})
		rig.WantIs(t, err, errWork, relock.ErrUnconfirmed)
	})
}

// Fails when a function that succeeded hides that others may not get the lock for the rest of its lease.
func TestDoIsUnconfirmedThoughItsFunctionSucceeded(t *testing.T) {
	for what, do := range map[string]func(ctx context.Context, l *relock.Lock, fn func(context.Context) error) error{
		"Do": func(ctx context.Context, l *relock.Lock, fn func(context.Context) error) error { return l.Do(ctx, fn) },
		"TryDo": func(ctx context.Context, l *relock.Lock, fn func(context.Context) error) error {
			return second(l.TryDo(ctx, 0, fn))
		},
		"Multi.Do": func(ctx context.Context, l *relock.Lock, fn func(context.Context) error) error {
			return relock.NewMulti(l).Do(ctx, fn)
		},
	} {
		t.Run(what, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				err := do(t.Context(), c.NewLock("a"), func(context.Context) error { link.Cut(); return nil })
				rig.WantIs(t, err, relock.ErrUnconfirmed)
			})
		})
	}
}

func TestDoReleasesOnPanic(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		for _, run := range []func(fn func(context.Context) error){
			func(fn func(context.Context) error) { _ = l.Do(t.Context(), fn) },
			func(fn func(context.Context) error) { _, _ = l.TryDo(t.Context(), 0, fn) },
		} {
			func() {
				defer func() {
					if r := recover(); r != "out" {
						t.Errorf("recovered %v, want the panic of fn", r)
					}
				}()
				run(func(context.Context) error { panic("out") })
			}()
			x.Frees("a")
		}
		func() {
			defer func() { _ = recover() }()
			_ = l.Do(t.Context(), nil)
		}()
		x.Frees("a")
	})
}

func TestDoReleasesOnGoexit(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		went := make(chan struct{})
		go func() {
			defer close(went)
			_ = l.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
			t.Error("Do returned")
		}()
		<-went
		synctest.Wait()
		x.Frees("a")
	})
}

func TestDoDoesNotRunWithoutTheLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a"), x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rig.WantIs(t, other.Do(ctx, func(context.Context) error {
			t.Error("fn ran")
			return nil
		}), context.DeadlineExceeded)
		rig.Must(t, l.Unlock())
	})
}
