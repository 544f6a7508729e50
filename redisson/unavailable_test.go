package redisson_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// Fails when code cannot tell a lock that was taken until the deadline from a Redis that was silent until then.
func TestDeadlineTellsAnOutageFromATakenLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder, err := redisson.New(x.Server.Client(t))
		rig.Must(t, err)
		rig.Must(t, holder.NewLock("l").Lock(t.Context()))
		link := redistest.NewLink(t, x.Server.Dial)
		c, err := redisson.New(x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }))
		rig.Must(t, err)
		for name, begin := range map[string]func() (heal func()){
			"redis answers": func() func() { return func() {} }, "silent": link.Hole, "refused": link.Cut,
		} {
			heal := begin()
			for _, wait := range []time.Duration{0, 200 * time.Millisecond, time.Minute} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				got, err := c.NewLock("l").TryLock(ctx, wait)
				cancel()
				if got || errors.Is(err, relock.ErrUnavailable) != (name != "redis answers") {
					t.Errorf("%s, wait %v: %v, %v", name, wait, got, err)
				}
			}
			heal()
			virtual.Sleep(10 * time.Second)
		}
		rig.Must(t, c.Close())
		rig.Must(t, holder.Close())
	})
}

// Redis has said that the lock is taken, and then falls out of reach. The context ends in a pause or in a later try.
// Fails when the end of the wait is told as an outage.
func TestTheEndOfAWaitForATakenLockIsNoOutage(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder, err := redisson.New(x.Server.Client(t))
		rig.Must(t, err)
		rig.Must(t, holder.NewLock("l", redisson.TTL(time.Minute)).Lock(t.Context()))
		link := redistest.NewLink(t, x.Server.Dial)
		c, err := redisson.New(x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }))
		rig.Must(t, err)
		for after := 70 * time.Second; after < 75*time.Second; after += 333 * time.Millisecond {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			call := rig.Beside(func() error { return c.NewLock("l").Lock(ctx) })
			synctest.Wait()
			heal := link.Cut()
			err := <-call
			if rig.WantIs(t, err, context.DeadlineExceeded); errors.Is(err, relock.ErrUnavailable) {
				t.Errorf("after %v: %v", after, err)
			}
			cancel()
			heal()
			virtual.Sleep(10 * time.Second)
		}
		rig.Must(t, c.Close())
		rig.Must(t, holder.Close())
	})
}
