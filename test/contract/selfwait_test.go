package contract_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// TestCallUnderItsOwnHoldIsADeadlock: the context descends from a live hold of
// the name, under another owner or none.
func TestCallUnderItsOwnHoldIsADeadlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l, same, another := c.NewLock("a"), c.NewLock("a"), c.NewLock("b")
		for name, outer := range map[string]context.Context{"anonymous": t.Context(), "named": x.By("me")} {
			h := acquire(t, l, outer)
			ctx, cancel := context.WithTimeout(h.Context(outer), time.Hour)
			rig.Must(t, another.Do(ctx, func(ctx context.Context) error {
				inner := relock.WithOwner(ctx, "you")
				if name == "anonymous" {
					inner = ctx
				}
				for _, nested := range []*relock.Lock{l, same} {
					for way, call := range everyWay(nested) {
						began := time.Now()
						err := call(inner)
						if rig.WantIs(t, err, relock.ErrDeadlock); t.Failed() || time.Since(began) != 0 {
							t.Fatalf("%s under a hold that is %s: %v after %v", way, name, err, time.Since(began))
						}
						holder := map[string]string{"anonymous": "an anonymous owner", "named": `owner "me"`}[name]
						if !strings.Contains(err.Error(), "WithOwner") || !strings.Contains(err.Error(), holder) {
							t.Errorf("%v, want it to name WithOwner and %s", err, holder)
						}
					}
				}
				return nil
			}))
			cancel()
			x.Waits(l)
			rig.Must(t, h.Err())
			rig.Must(t, h.Release())
		}
	})
}

func TestCallUnderDoIsADeadlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		rig.Must(t, l.Do(t.Context(), func(ctx context.Context) error {
			rig.WantIs(t, l.Lock(ctx), relock.ErrDeadlock)
			rig.WantIs(t, l.Lock(relock.WithOwner(context.WithoutCancel(ctx), "you")), relock.ErrDeadlock)
			return nil
		}))
	})
}

// TestWhatIsNoDeadlock: the same owner re-enters, another name or another
// client's is free, and a hold that has ended is in nobody's way.
func TestWhatIsNoDeadlock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l, other := c.NewLock("a", relock.NoWatchdog()), c.NewLock("b")
		h := acquire(t, l, x.By("me"))
		ctx := h.Context(x.By("me"))
		rig.Must(t, l.Lock(ctx))
		rig.Must(t, l.Unlock())
		rig.Must(t, other.Lock(relock.WithOwner(ctx, "you")))
		rig.Must(t, other.Unlock())
		if done, err := x.Lock("a").TryLock(relock.WithOwner(ctx, "you"), 0); done || err != nil {
			t.Errorf("another client's TryLock = %v, %v, want false: its server may be another one", done, err)
		}
		free := context.WithoutCancel(ctx)
		virtual.Sleep(time.Minute)
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.Must(t, l.Lock(relock.WithOwner(free, "you")))
		rig.Must(t, l.Unlock())

		h = acquire(t, l, t.Context())
		free = context.WithoutCancel(h.Context(t.Context()))
		rig.Must(t, h.Release())
		rig.Must(t, l.Lock(free))
		rig.Must(t, l.Unlock())
	})
}

// waitForItself nests two calls that lost the name of their owner on the way,
// and returns what the inner one ended in and what was logged after each time.
func waitForItself(t *testing.T, inner func(ctx context.Context, l *relock.Lock) error, look ...time.Duration) (hints []int, err error) {
	t.Helper()
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var out lockedBuffer
		l := x.Client(relock.Logger(slog.New(slog.NewTextHandler(&out, nil)))).NewLock("a")
		rig.Must(t, l.Lock(x.By("me")))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errReason)
		defer cancel()
		result := rig.Beside(func() error { return inner(ctx, l) })
		began := time.Now()
		for _, at := range look {
			virtual.Sleep(time.Until(began.Add(at)))
			synctest.Wait()
			hints = append(hints, strings.Count(out.String(), "WithOwner"))
		}
		err = <-result
		rig.Must(t, l.Unlock())
	})
	return hints, err
}

func TestWaitForTheSameHandleIsHintedAt(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, l *relock.Lock) error{
		"anonymous": func(ctx context.Context, l *relock.Lock) error { return l.Lock(ctx) },
		"named":     func(ctx context.Context, l *relock.Lock) error { return l.Lock(relock.WithOwner(ctx, "you")) },
	} {
		t.Run(name, func(t *testing.T) {
			hints, err := waitForItself(t, call, 10*time.Second-1, 10*time.Second+1, 59*time.Second)
			if hints[0] != 0 || hints[1] != 1 || hints[2] != 1 {
				t.Errorf("%v hints before, at and long after a third of the TTL, want 0, 1, 1", hints)
			}
			rig.WantIs(t, err, context.DeadlineExceeded, errReason)
			if !strings.Contains(err.Error(), "WithOwner") || !strings.Contains(err.Error(), "this handle holds") {
				t.Errorf("%v, want it to say so and to name WithOwner", err)
			}
		})
	}
}

func TestTryAcquireOfTheSameHandleIsHintedAt(t *testing.T) {
	_, err := waitForItself(t, func(ctx context.Context, l *relock.Lock) error {
		_, err := l.TryAcquire(ctx, 20*time.Second)
		return err
	})
	rig.WantIs(t, err, relock.ErrNotAcquired)
	if !strings.Contains(err.Error(), "WithOwner") {
		t.Errorf("%v, want it to name WithOwner", err)
	}
}

func TestShortOrForeignWaitIsNotHintedAt(t *testing.T) {
	_, err := waitForItself(t, func(ctx context.Context, l *relock.Lock) error {
		_, err := l.TryAcquire(ctx, 9*time.Second)
		return err
	})
	if strings.Contains(err.Error(), "WithOwner") {
		t.Errorf("%v after a wait of less than a third of the TTL", err)
	}
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		rig.Must(t, l.Lock(t.Context()))
		_, err := x.Lock("a").TryAcquire(t.Context(), time.Minute)
		if !errors.Is(err, relock.ErrNotAcquired) || strings.Contains(err.Error(), "WithOwner") {
			t.Errorf("%v for a lock that another process holds", err)
		}
		rig.Must(t, l.Unlock())
	})
}

// TestHintIsGivenThoughTheHandleGotTheLockLater: the wait began behind somebody
// else, and went on behind a call of the same handle.
func TestHintIsGivenThoughTheHandleGotTheLockLater(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		other, l := x.Lock("a"), x.Lock("a")
		rig.Must(t, other.Lock(t.Context()))
		first := rig.Beside(func() error { return l.Lock(x.By("me")) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(x.By("you"), time.Minute)
		defer cancel()
		second := rig.Beside(func() error { return l.Lock(ctx) })
		synctest.Wait()
		virtual.Sleep(time.Second)
		rig.Must(t, other.Unlock())
		rig.Must(t, rig.Returned(t, first))
		err := <-second
		if !strings.Contains(err.Error(), "WithOwner") {
			t.Errorf("%v, want it to name WithOwner", err)
		}
		rig.Must(t, l.Unlock())
	})
}
