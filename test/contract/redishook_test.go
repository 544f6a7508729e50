package contract_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// A dropper is a hook of the redis client that does not return from the next script, if it is to end.
type dropper struct{ end atomic.Pointer[func()] }

func (*dropper) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*dropper) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *dropper) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" { // not for the commands of a new connection
			if end := d.end.Swap(nil); end != nil {
				(*end)()
			}
		}
		return next(ctx, cmd)
	}
}

// dropping runs f with a client whose redis client has such a hook, once for each way to end.
func dropping(t *testing.T, f func(t *testing.T, x *rig.Lab, c *relock.Client, drop func())) {
	t.Helper()
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				rdb, d := x.Server.Client(t), &dropper{}
				rdb.AddHook(d)
				c := x.ClientOver(rdb)
				rig.Must(t, c.NewLock("warm").Do(t.Context(), func(context.Context) error { return nil }))
				f(t, x, c, func() { d.end.Store(&end) })
				x.Until(time.Minute + x.Now())
				if left := rig.Remains(c); left != "" {
					t.Errorf("%s is left", left)
				}
			})
		})
	}
}

func TestAResumptionWhoseRedisHookDoesNotReturnLeavesNothing(t *testing.T) {
	dropping(t, func(t *testing.T, x *rig.Lab, c *relock.Client, drop func()) {
		ticket, err := acquire(t, x.Lock("a"), t.Context()).Detach(t.Context(), 30*time.Second)
		rig.Must(t, err)
		drop()
		survive(func() { _, err := c.Resume(t.Context(), ticket); t.Errorf("it returned %v", err) })
	})
}

func TestAGrantWhoseRedisHookDoesNotReturnIsGivenBack(t *testing.T) {
	dropping(t, func(t *testing.T, x *rig.Lab, c *relock.Client, drop func()) {
		held := x.Take(x.Lock("a"))
		call := rig.Beside(func() error {
			survive(func() { t.Errorf("it returned %v", c.NewLock("a", relock.NoWatchdog()).Lock(t.Context())) })
			return nil
		})
		rig.StillWaits(t, call)
		drop()
		rig.End(t, held)
		rig.Must(t, rig.Returned(t, call))
		synctest.Wait()
		x.Frees("a")
	})
}

func TestADetachWhoseRedisHookDoesNotReturnLeavesNothing(t *testing.T) {
	dropping(t, func(t *testing.T, x *rig.Lab, c *relock.Client, drop func()) {
		h := acquire(t, c.NewLock("a"), t.Context())
		drop()
		survive(func() { _, err := h.Detach(t.Context(), time.Hour); t.Errorf("it returned %v", err) })
	})
}

func TestAReleaseWhoseRedisHookDoesNotReturnGoesOn(t *testing.T) {
	dropping(t, func(t *testing.T, x *rig.Lab, c *relock.Client, drop func()) {
		h := acquire(t, c.NewLock("a"), t.Context())
		drop()
		survive(func() { t.Errorf("it returned %v", h.Release()) })
		synctest.Wait()
		x.Frees("a")
	})
}

// The same of an owner whose count is stated.
func TestAReleaseOfAnOwnerWhoseRedisHookDoesNotReturnGoesOn(t *testing.T) {
	dropping(t, func(t *testing.T, x *rig.Lab, c *relock.Client, drop func()) {
		l := c.NewLock("a")
		outer, inner := acquire(t, l, x.By("me")), acquire(t, l, x.By("me"))
		drop()
		survive(func() { t.Errorf("it returned %v", inner.Release()) })
		synctest.Wait()
		x.Holders(x.Eye.NewLock("a"), "me", 1)
		drop()
		survive(func() { t.Errorf("it returned %v", outer.Release()) })
		synctest.Wait()
		x.Frees("a")
	})
}

func TestAWaitWhoseRedisHookDoesNotReturnKeepsNothing(t *testing.T) {
	dropping(t, func(t *testing.T, x *rig.Lab, c *relock.Client, drop func()) {
		l := c.NewLock("a")
		h := acquire(t, l, t.Context())
		drop()
		survive(func() { t.Errorf("it returned %v", l.NewCond("c").Wait(h.Context(t.Context()))) })
		rig.WantIs(t, h.Release(), relock.ErrNotHeld)
		synctest.Wait()
		x.Frees("a")
	})
}
