package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// A grant whose answer comes while the client is closed is of nobody: the lock was taken
// until its lease ended, and the name rested for an hour after a call that had failed.
// Fails when Close loses what no call has had; and the try says that the lock is taken when
// what is gone by the end of the client is told as what is gone by itself.
func TestGrantThatComesAsTheClientClosesIsGivenBack(t *testing.T) {
	for name := range everyWay(nil) {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				rig.Must(t, c.NewLock("other").Do(t.Context(), func(context.Context) error { return nil }))
				free := make(chan struct{})
				link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					if rig.Runs(cmd, "acquire") {
						return redistest.Hold(free)
					}
					return redistest.Pass
				})
				lock := everyWay(c.NewLock("a", relock.AtLeast(time.Hour)))[name]
				call := rig.Beside(func() error { return lock(t.Context()) })
				synctest.Wait()
				closed := rig.Beside(c.Close)
				synctest.Wait()
				time.Sleep(time.Millisecond)
				close(free)
				rig.Must(t, <-closed)
				rig.WantIs(t, rig.Returned(t, call), relock.ErrClosed)
				x.Frees("a")
			})
		})
	}
}

// The next in line was passed the lock by an Unlock that returned nil, and had not run yet
// when the client was closed.
// Fails when Close loses what no call has had.
func TestHoldThatWasPassedOnAsTheClientClosedIsGivenBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		held := make(chan struct{})
		c := x.Client(relock.Trace(relock.Hooks{Waiting: func(context.Context, relock.Event) { <-held }}))
		first := c.NewLock("a")
		rig.End(t, x.Take(first))
		time.Sleep(101 * time.Millisecond) // there are tokens to pass on
		rig.Must(t, first.Lock(t.Context()))
		next := rig.Beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		synctest.Wait()
		rig.Must(t, first.Unlock())
		rig.Must(t, c.Close())
		x.Frees("a")
		close(held)
		rig.WantIs(t, rig.Returned(t, next), relock.ErrClosed)
	})
}

// The machine is suspended for longer than the lease while the answer is on its way: Redis
// has granted, so nobody else has run, and the call said that somebody had.
// Fails when a lock that was had too late to be used counts as one that is taken.
func TestOnceWhoseGrantOutlivesItsLeaseSaysSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		rig.Must(t, c.NewLock("other").Do(t.Context(), func(context.Context) error { return nil }))
		asked := false
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "acquire") && !asked {
				asked = true
				x.Suspend(11 * time.Second)
			}
			return redistest.Pass
		})
		fn := func(context.Context) error { return nil }
		if ran, err := c.Once(t.Context(), "job", time.Hour, fn, relock.TTL(10*time.Second)); ran || err == nil {
			t.Errorf("Once = %v, %v, want an error: nobody has run it", ran, err)
		}
		time.Sleep(time.Second)
		if ran, err := c.Once(t.Context(), "job", time.Hour, fn, relock.TTL(10*time.Second)); !ran || err != nil {
			t.Errorf("Once again = %v, %v, want true, nil", ran, err)
		}
	})
}

// A reader who signals has nothing to signal under, and goes on reading.
// Fails when Redis is asked, and what it says is taken for the loss of the read hold.
func TestSignalByAReaderLeavesItsHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw := x.Client().NewRWLock("a")
		cond := rw.WLocker().NewCond("c")
		h := x.Take(rw.RLocker())
		rig.WantIs(t, cond.Signal(h.Context(t.Context())), relock.ErrNotHeld)
		rig.Must(t, h.Err())
		rig.End(t, h)
		h = x.Take(rw.WLocker())
		ctx := h.Context(t.Context())
		rig.Must(t, rw.Downgrade(ctx))
		rig.WantIs(t, cond.Broadcast(ctx), relock.ErrNotHeld)
		rig.Must(t, h.Err())
		rig.End(t, h)
	})
}
