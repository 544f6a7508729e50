// Package rig is shared by the test suites. It has a Redis in virtual time with the processes that use it,
// calls that may have to wait, and assertions about the state of Redis afterwards. It is for tests only.
package rig

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/virtual"
)

// A Lab is one Redis in virtual time, and the clients of one test.
type Lab struct {
	T         *testing.T
	Server    *redistest.Server
	Redis     *redis.Client  // past every link: what an operator sees and does
	Eye       *relock.Client // over Redis
	Began     time.Time
	suspended atomic.Int64 // ns that the machine has slept: only one of its clocks has seen them
}

// Run runs f in a bubble. Whatever f leaves in Redis must have an end.
func Run(t *testing.T, f func(t *testing.T, x *Lab)) {
	t.Helper()
	redistest.Virtual(t)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { virtual.Sleep(10 * time.Second) }) // go-redis' dials outlive its Close
		x := &Lab{T: t, Server: redistest.Start(t), Began: time.Now()}
		x.Redis = x.Server.Client(t)
		x.Eye = x.Client()
		f(t, x)
		synctest.Wait()
		for _, key := range x.Server.Direct().Keys() {
			if x.Server.Direct().TTL(key) <= 0 {
				t.Errorf("%q stays in Redis for ever", key)
			}
		}
	})
}

// Play runs a schedule. Every script is known to the server, so that a verdict on EVALSHA is one on the script.
func Play(t *testing.T, schedule func(t *testing.T, x *Lab)) {
	t.Helper()
	Run(t, func(t *testing.T, x *Lab) {
		LoadScripts(t, x.Redis)
		schedule(t, x)
	})
}

// Now is the virtual time since the lab began.
func (x *Lab) Now() time.Duration { return time.Since(x.Began) }

// Until sleeps to an instant of the schedule, which must not have passed, and waits until every goroutine is blocked.
func (x *Lab) Until(at time.Duration) {
	x.T.Helper()
	if at < x.Now() {
		x.T.Fatalf("the schedule is at %v already, beyond %v", x.Now(), at)
	}
	virtual.Sleep(at - x.Now())
	synctest.Wait()
}

// Suspend puts the machine to sleep: no timer notices.
func (x *Lab) Suspend(d time.Duration) { x.suspended.Add(int64(d)) }

// By is a context of a named owner.
func (x *Lab) By(owner string) context.Context { return relock.WithOwner(x.T.Context(), owner) }

// Client returns a client that is closed at the end.
func (x *Lab) Client(opts ...relock.Option) *relock.Client {
	x.T.Helper()
	return x.ClientOver(x.Redis, opts...)
}

// Linked returns a client of its own link, for what befalls it alone.
func (x *Lab) Linked(opts ...relock.Option) (*relock.Client, *redistest.Link) {
	x.T.Helper()
	link := redistest.NewLink(x.T, x.Server.Dial)
	return x.Through(link, opts...), link
}

// Through returns a client behind the given link.
func (x *Lab) Through(link *redistest.Link, opts ...relock.Option) *relock.Client {
	x.T.Helper()
	return x.ClientOver(x.Server.Client(x.T, func(o *redis.Options) { o.Dialer = link.Dial }), opts...)
}

// ClientOver returns a client of the lab's time over rdb.
func (x *Lab) ClientOver(rdb redis.UniversalClient, opts ...relock.Option) *relock.Client {
	x.T.Helper()
	c := Open(x.T, rdb, opts...)
	base := time.Now()
	SetClock(c, clock.New(time.Now, func() time.Duration {
		return time.Since(base) + time.Duration(x.suspended.Load())
	}))
	return c
}

// Open returns a client over rdb that is closed when t ends.
func Open(t testing.TB, rdb redis.UniversalClient, opts ...relock.Option) *relock.Client {
	t.Helper()
	c, err := relock.New(rdb, opts...)
	Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Lock returns a handle of a client of its own.
func (x *Lab) Lock(name string, opts ...relock.LockOption) *relock.Lock {
	x.T.Helper()
	return x.Client().NewLock(name, opts...)
}
