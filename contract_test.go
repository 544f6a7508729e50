package relock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// lab is one Redis in virtual time, and the clients of one test.
type lab struct {
	t         *testing.T
	srv       *redistest.Server
	rdb       *redis.Client
	suspended atomic.Int64 // ns that the machine has slept: only one of its clocks has seen them
}

// inLab runs f in a bubble. Whatever f leaves in Redis must have an end.
func inLab(t *testing.T, f func(t *testing.T, x *lab)) {
	t.Helper()
	redistest.Virtual(t)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(10 * time.Second) }) // go-redis' dials outlive its Close
		x := &lab{t: t, srv: redistest.Start(t)}
		x.rdb = x.srv.Client(t)
		f(t, x)
		synctest.Wait()
		for _, key := range x.srv.Direct().Keys() {
			if x.srv.Direct().TTL(key) <= 0 {
				t.Errorf("%q stays in Redis for ever", key)
			}
		}
	})
}

// client returns a client that is closed at the end.
func (x *lab) client(opts ...relock.Option) *relock.Client {
	x.t.Helper()
	return x.clientOver(x.rdb, opts...)
}

// linked returns a client of its own link, for what befalls it alone.
func (x *lab) linked(opts ...relock.Option) (*relock.Client, *redistest.Link) {
	x.t.Helper()
	link := redistest.NewLink(x.t, x.srv.Dial)
	rdb := x.srv.Client(x.t, func(o *redis.Options) { o.Dialer = link.Dial })
	return x.clientOver(rdb, opts...), link
}

func (x *lab) clientOver(rdb redis.UniversalClient, opts ...relock.Option) *relock.Client {
	x.t.Helper()
	c, err := relock.New(rdb, opts...)
	if err != nil {
		x.t.Fatal(err)
	}
	base := time.Now()
	c.SetClock(clock.New(time.Now, func() time.Duration {
		return time.Since(base) + time.Duration(x.suspended.Load())
	}))
	x.t.Cleanup(func() { _ = c.Close() })
	return c
}

// suspend puts the machine to sleep: no timer notices.
func (x *lab) suspend(d time.Duration) { x.suspended.Add(int64(d)) }

// lock returns a handle of a client of its own.
func (x *lab) lock(name string, opts ...relock.LockOption) *relock.Lock {
	x.t.Helper()
	return x.client().NewLock(name, opts...)
}

// by is a context of a named owner.
func (x *lab) by(owner string) context.Context { return relock.WithOwner(x.t.Context(), owner) }

// waits asserts how many stand in Redis' queue, once everything has come to rest.
func (x *lab) waits(l *relock.Lock, want ...string) {
	x.t.Helper()
	synctest.Wait()
	got := x.waiters(l)
	if len(got) != len(want) {
		x.t.Errorf("%d waiters %v, want %v", len(got), got, want)
		return
	}
	for i, w := range got {
		if w.Owner != want[i] {
			x.t.Errorf("waiter %d is %q, want %q", i, w.Owner, want[i])
		}
	}
}

func (x *lab) waiters(l *relock.Lock) []relock.Waiter {
	x.t.Helper()
	got, err := l.Waiters(x.t.Context())
	noErr(x.t, err)
	return got
}

// holders asserts who holds, and how often.
func (x *lab) holders(l *relock.Lock, owner string, holds int) {
	x.t.Helper()
	info, err := l.Info(x.t.Context())
	noErr(x.t, err)
	switch {
	case holds == 0:
		if len(info.Holders) != 0 {
			x.t.Errorf("held by %v, want a free lock", info.Holders)
		}
	case len(info.Holders) != 1 || info.Holders[0].Owner != owner || info.Holders[0].Holds != holds:
		x.t.Errorf("holders %v, want %q with %d", info.Holders, owner, holds)
	}
}

// refuses asserts that nobody else gets the lock now, and that asking leaves no trace.
func (x *lab) refuses(l *relock.Lock) {
	x.t.Helper()
	before := len(x.waiters(l))
	if got, err := l.TryLock(x.t.Context(), 0); got || err != nil {
		x.t.Errorf("TryLock = %v, %v, want false, nil", got, err)
	}
	if after := len(x.waiters(l)); after != before {
		x.t.Errorf("%d waiters after TryLock, %d before", after, before)
	}
}

// frees asserts that another client gets the lock at once, and gives it back.
func (x *lab) frees(name string) {
	x.t.Helper()
	l := x.lock(name)
	if got, err := l.TryLock(x.t.Context(), 0); !got || err != nil {
		x.t.Errorf("TryLock = %v, %v, want true, nil", got, err)
		return
	}
	noErr(x.t, l.Unlock())
}

// runs says whether a command runs the script of that name.
func runs(cmd redistest.Command, name string) bool {
	s := script.MustLoad(lua.FS, name)
	return len(cmd.Args) > 1 && (cmd.Args[1] == s.SHA || cmd.Args[1] == s.Source)
}

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantIs asserts that err matches every one of targets.
func wantIs(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v, want one that is %v", err, target)
		}
	}
}

// wantNot asserts that err is none of targets.
func wantNot(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Errorf("error %v, want one that is not %v", err, target)
		}
	}
}

// beside runs f beside the test, and returns where its result will be.
func beside(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	return result
}

// stillWaits asserts that f has not returned, with everything at rest.
func stillWaits(t testing.TB, result <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-result:
		t.Fatalf("returned %v, want it to wait", err)
	default:
	}
}

// hasReturned asserts that f has returned without any time passing, and with what.
func hasReturned(t testing.TB, result <-chan error) error {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-result:
		return err
	default:
		t.Fatal("still waits")
		return nil
	}
}

// isShut says whether a channel is closed.
func isShut(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
