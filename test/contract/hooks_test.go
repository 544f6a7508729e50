package contract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// record is what the hooks of one client were told.
type record struct {
	mu     sync.Mutex // guards the following field
	events []string
	each   func() // called from every hook
}

// callKey marks the context of the calls whose hooks must get it.
type callKey struct{}

func (r *record) trace() relock.Option {
	told := func(what string) func(relock.Event) {
		return func(e relock.Event) { r.note(what, e) }
	}
	called := func(what string) func(context.Context, relock.Event) {
		return func(ctx context.Context, e relock.Event) {
			if ctx.Value(callKey{}) == nil {
				what += " without the call's context"
			}
			r.note(what, e)
		}
	}
	return relock.Trace(relock.Hooks{
		Waiting: called("waiting"), Acquired: called("acquired"),
		Renewed: told("renewed"), Released: told("released"), Lost: told("lost"),
	})
}

func (r *record) note(what string, e relock.Event) {
	r.mu.Lock()
	r.events = append(r.events, fmt.Sprintf("%s %s %s token=%v waited=%v held=%v err=%v",
		what, e.Name, e.Owner, e.Token > 0, e.Waited, e.Held, e.Err))
	r.mu.Unlock()
	if r.each != nil {
		r.each()
	}
}

// saw asserts which events have come since it was last asked.
func (r *record) saw(t testing.TB, want ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.events, want) {
		t.Errorf("events\n\t%s\nwant\n\t%s", strings.Join(r.events, "\n\t"), strings.Join(want, "\n\t"))
	}
	r.events = nil
}

func called(t testing.TB, owner string) context.Context {
	return relock.WithOwner(context.WithValue(t.Context(), callKey{}, 1), owner)
}

func TestHooksFollowALockThroughItsLife(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var r record
		l, other := x.Client(r.trace()).NewLock("a"), x.Lock("a")
		me := called(t, "me")
		rig.Must(t, l.Lock(me))
		r.saw(t, "acquired a me token=true waited=0s held=0s err=<nil>")
		rig.Must(t, l.Lock(me))
		r.saw(t, "acquired a me token=true waited=0s held=0s err=<nil>")
		virtual.Sleep(10*time.Second + 1)
		r.saw(t, "renewed a me token=true waited=0s held=0s err=<nil>")
		rig.Must(t, l.Unlock())
		rig.Must(t, l.Unlock())
		r.saw(t, "released a me token=true waited=0s held=10.000000001s err=<nil>",
			"released a me token=true waited=0s held=10.000000001s err=<nil>")

		rig.Must(t, other.Lock(t.Context()))
		waiter := rig.Beside(func() error { return l.Lock(called(t, "you")) })
		rig.StillWaits(t, waiter)
		r.saw(t, "waiting a you token=false waited=0s held=0s err=<nil>")
		virtual.Sleep(25 * time.Second)
		r.saw(t)
		rig.Must(t, other.Unlock())
		rig.Must(t, rig.Returned(t, waiter))
		r.saw(t, "acquired a you token=true waited=25s held=0s err=<nil>")
		rig.Must(t, l.Unlock())
		r.saw(t, "released a you token=true waited=0s held=0s err=<nil>")
	})
}

// TestWaitingHookIsCalledOnceForEachCall: also for the first of a client, which
// waits for its inbox before the lock, and for one that moves up in the line.
func TestWaitingHookIsCalledOnceForEachCall(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var r record
		l, other := x.Client(r.trace()).NewLock("a"), x.Lock("a", relock.TTL(time.Second))
		rig.Must(t, other.Lock(t.Context()))
		ctx := context.WithValue(t.Context(), callKey{}, 1)
		first, cancel := context.WithCancel(ctx)
		for _, ctx := range []context.Context{first, ctx} {
			go func() { _ = l.Lock(ctx) }()
			r.saw(t, "waiting a  token=false waited=0s held=0s err=<nil>")
		}
		cancel()
		r.saw(t)
		virtual.Sleep(time.Minute)
		r.saw(t)
		rig.Must(t, other.Unlock())
		synctest.Wait()
		wantHolds(t, l, 1)
	})
}

func TestLostHookIsCalledOnceForEachHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var r record
		l := x.Client(r.trace()).NewLock("a", relock.NoWatchdog())
		rig.Must(t, l.Lock(called(t, "me")))
		rig.Must(t, l.Lock(called(t, "me")))
		r.saw(t, "acquired a me token=true waited=0s held=0s err=<nil>", "acquired a me token=true waited=0s held=0s err=<nil>")
		virtual.Sleep(time.Minute)
		lost := "lost a me token=true waited=0s held=29.698s err=lost: its lease of 30s has ended (NoWatchdog)"
		r.saw(t, lost, lost)
		for range 2 {
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
		}
		r.saw(t)
	})
}

func TestReleasedHookHasTheErrorOfTheRelease(t *testing.T) {
	for how, end := range map[string]func(ctx context.Context, l *relock.Lock, h *relock.Hold) error{
		"Unlock": func(_ context.Context, l *relock.Lock, _ *relock.Hold) error { return l.Unlock() },
		"Detach": func(ctx context.Context, _ *relock.Lock, h *relock.Hold) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := h.Detach(ctx, time.Minute)
			return err
		},
	} {
		t.Run(how, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				var r record
				c, link := x.Linked(r.trace(), relock.ReleaseTimeout(time.Second))
				l := c.NewLock("a")
				h := acquire(t, l, called(t, "me"))
				r.saw(t, "acquired a me token=true waited=0s held=0s err=<nil>")
				link.Cut()
				err := end(t.Context(), l, h)
				rig.WantIs(t, err, relock.ErrUnconfirmed)
				text := strings.TrimPrefix(err.Error(), `relock: lock "a": `)
				r.saw(t, "released a me token=true waited=0s held=0s err="+text)
			})
		})
	}
}

// TestHooksMayCallTheLibrary: none is called under a mutex that these calls need.
func TestHooksMayCallTheLibrary(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var r record
		c := x.Client(r.trace())
		l, fixed := c.NewLock("a"), c.NewLock("b", relock.NoWatchdog())
		var calling sync.Mutex
		r.each = func() {
			if !calling.TryLock() {
				return // a hook of a call that a hook makes
			}
			defer calling.Unlock()
			for _, l := range []*relock.Lock{l, fixed} {
				_, _, _ = l.HoldCount(), l.Token(), l.Lost()
				if got, err := l.TryLock(relock.WithNewOwner(t.Context()), 0); got {
					_ = l.Unlock()
				} else if err != nil && !errors.Is(err, relock.ErrLost) { // b is, and is not unlocked yet
					t.Error(err)
				}
			}
		}
		for range 3 {
			h, b := acquire(t, l, t.Context()), acquire(t, fixed, t.Context())
			waiter := rig.Beside(func() error { return l.Lock(t.Context()) })
			virtual.Sleep(time.Minute)
			rig.Must(t, h.Err())
			rig.Must(t, h.Release())
			rig.Must(t, <-waiter)
			rig.Must(t, l.Unlock())
			rig.WantIs(t, b.Release(), relock.ErrLost)
		}
	})
}

// TestNothingIsLoggedByDefault: not by the program's default logger either, and
// although things go wrong.
func TestNothingIsLoggedByDefault(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	goWrong(t)
	if out.Len() > 0 {
		t.Errorf("logged %s", out.String())
	}
}

func TestLoggerIsToldWhatGoesWrong(t *testing.T) {
	var out lockedBuffer
	goWrong(t, relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))
	for _, want := range []string{"renewal failed", "lock lost", "level=ERROR", "lock=a", "owner=me"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("log without %q:\n%s", want, out.String())
		}
	}
}

// Redis has lost the lock, and the release is the first to find that: it hears no messages.
func TestALossIsLoggedOnceWhoeverFindsIt(t *testing.T) {
	for who, find := range map[string]func(h *relock.Hold){
		"the clock":   func(*relock.Hold) { virtual.Sleep(time.Minute) },
		"the holder":  func(h *relock.Hold) { virtual.Sleep(time.Minute); _ = h.Err() },
		"the release": func(*relock.Hold) {},
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			var out lockedBuffer
			c, link := x.Linked(relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))
			h := rig.MustAcquire(t, c.NewLock("a", relock.Owner("me")))
			synctest.Wait() // until it has subscribed
			link.HoleSubscribers()
			_, err := x.Eye.NewLock("a").ForceUnlock(t.Context())
			rig.Must(t, err)
			find(h)
			rig.WantIs(t, h.Release(), relock.ErrLost)
			rig.WantIs(t, h.Release(), relock.ErrNotHeld)
			synctest.Wait() // the handler of the log has a goroutine of its own
			if n := strings.Count(out.String(), "level=ERROR msg=\"lock lost\" lock=a owner=me"); n != 1 {
				t.Errorf("found by %s: told %d times, want once:\n%s", who, n, out.String())
			}
		})
	}
}

// lockedBuffer is written by the handler of one client, and read afterwards.
type lockedBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// goWrong has renewals fail, a hold lost and a wait for itself.
func goWrong(t *testing.T, opts ...relock.Option) {
	t.Helper()
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked(opts...)
		l := c.NewLock("a")
		rig.Must(t, l.Lock(x.By("me")))
		if got, err := l.TryLock(t.Context(), time.Minute); got || err != nil {
			t.Errorf("TryLock = %v, %v, want false, nil", got, err)
		}
		// The link falls silent: go-redis itself reports a refused dial.
		heal := link.Hole()
		virtual.Sleep(time.Minute)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		heal()
	})
}
