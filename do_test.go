package relock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
)

var errWork = errors.New("the work failed")

func TestDoHoldsTheLockWhileFnRuns(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		for _, want := range []error{nil, errWork} {
			err := l.Do(t.Context(), func(context.Context) error {
				x.refuses(x.lock("a"))
				return want
			})
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("Do = %v, want %v", err, want)
			}
			x.frees("a")
		}
	})
}

func TestTryDoSaysWhetherFnRan(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a"), x.lock("a")
		calls := 0
		fn := func(context.Context) error { calls++; return errWork }
		for _, wait := range []time.Duration{-1, 0, time.Second} {
			ran, err := l.TryDo(t.Context(), wait, fn)
			wantIs(t, err, errWork)
			if !ran || calls != 1 {
				t.Errorf("TryDo(%v) of a free lock: ran %v, %d calls", wait, ran, calls)
			}
			noErr(t, other.Lock(t.Context()))
			if ran, err = l.TryDo(t.Context(), wait, fn); ran || err != nil || calls != 1 {
				t.Errorf("TryDo(%v) of a held lock: ran %v, %v, %d calls", wait, ran, err, calls)
			}
			noErr(t, other.Unlock())
			calls = 0
		}
	})
}

// TestDoKeepsTheOwnerAsItIs: a name in ctx, none, and a handle's name, which
// ctx does not get.
func TestDoKeepsTheOwnerAsItIs(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		for _, row := range []struct {
			l    *relock.Lock
			ctx  context.Context
			want string
		}{
			{x.lock("a"), t.Context(), ""},
			{x.lock("a"), x.by("me"), "me"},
			{x.lock("a", relock.Owner("me")), t.Context(), ""},
			{x.lock("a", relock.Owner("me")), x.by("me"), "me"},
		} {
			noErr(t, row.l.Do(row.ctx, func(ctx context.Context) error {
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
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		a, b := c.NewLock("a"), c.NewLock("b")
		noErr(t, a.Do(x.by("me"), func(ctx context.Context) error {
			return b.Do(ctx, func(ctx context.Context) error {
				return a.Do(ctx, func(ctx context.Context) error {
					x.holders(a, "me", 2)
					x.holders(b, "me", 1)
					return ctx.Err()
				})
			})
		}))
		x.frees("a")
		x.frees("b")
	})
}

func TestContextOfDoEndsWithTheHold(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		var kept context.Context
		noErr(t, x.lock("a").Do(t.Context(), func(ctx context.Context) error {
			noErr(t, ctx.Err())
			kept = ctx
			return nil
		}))
		wantIs(t, kept.Err(), context.Canceled)
		wantNot(t, context.Cause(kept), relock.ErrLost)
	})
}

func TestContextOfDoEndsWithItsParent(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := l.Do(ctx, func(ctx context.Context) error {
			cancel(errReason)
			<-ctx.Done()
			wantIs(t, context.Cause(ctx), errReason)
			x.refuses(x.lock("a"))
			return nil
		})
		noErr(t, err)
		x.frees("a")
	})
}

// TestDoIsErrLostAfterALoss: whatever fn returns, and although fn's context told it.
func TestDoIsErrLostAfterALoss(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		for _, of := range []error{nil, errWork} {
			err := x.lock("a", relock.TTL(time.Second), relock.NoWatchdog()).Do(t.Context(), func(ctx context.Context) error {
				began := time.Now()
				<-ctx.Done()
				wantIs(t, context.Cause(ctx), relock.ErrLost)
				wantIs(t, ctx.Err(), context.Canceled)
				if took := time.Since(began); took > time.Second || took < 900*time.Millisecond {
					t.Errorf("lost after %v, want within the lease", took)
				}
				return of
			})
			wantIs(t, err, relock.ErrLost)
			if of != nil {
				wantIs(t, err, of)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestDoJoinsBothErrors(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		err := c.NewLock("a").Do(t.Context(), func(context.Context) error {
			link.Cut()
			return errWork
		})
		wantIs(t, err, errWork, relock.ErrUnconfirmed)
	})
}

func TestDoReleasesOnPanic(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
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
			x.frees("a")
		}
		func() {
			defer func() { _ = recover() }()
			_ = l.Do(t.Context(), nil)
		}()
		x.frees("a")
	})
}

func TestDoReleasesOnGoexit(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		went := make(chan struct{})
		go func() {
			defer close(went)
			_ = l.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
			t.Error("Do returned")
		}()
		<-went
		synctest.Wait()
		x.frees("a")
	})
}

func TestDoDoesNotRunWithoutTheLock(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a"), x.lock("a")
		noErr(t, l.Lock(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantIs(t, other.Do(ctx, func(context.Context) error {
			t.Error("fn ran")
			return nil
		}), context.DeadlineExceeded)
		noErr(t, l.Unlock())
	})
}
