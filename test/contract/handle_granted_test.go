package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// exclusives are the handles on which a call waits in Redis while another call of the same
// handle holds.
var exclusives = map[string]func(c *relock.Client) *relock.Lock{
	"fair":       func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Fair()) },
	"write":      func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() },
	"fair write": func(c *relock.Client) *relock.Lock { return c.NewRWLock("a", relock.Fair()).WLocker() },
	"plain":      func(c *relock.Client) *relock.Lock { return c.NewLock("a") }, // with named owners
}

// dataLost has a call hold by lock, and another wait by lock, when Redis loses its data. The
// call that waits asks again, and is granted the lock, before the holder's next renewal.
// It returns after that, and 4 s before the renewal.
func dataLost(x *rig.Lab, holder, waiter func() error) (waits rig.Going) {
	x.T.Helper()
	rig.Must(x.T, holder())
	virtual.Sleep(5 * time.Second)
	waits = rig.Beside(waiter)
	virtual.Sleep(6 * time.Second) // the holder has renewed at 10 s
	rig.Must(x.T, x.Redis.FlushAll(x.T.Context()).Err())
	virtual.Sleep(5 * time.Second)
	return waits
}

// grantedBeside runs f for each exclusive handle l, with anonymous and named callers, after
// dataLost: the first caller has not called Unlock yet, the second waits in Lock.
func grantedBeside(t *testing.T, f func(x *rig.Lab, l, other *relock.Lock, second rig.Going)) {
	t.Helper()
	for kind, handle := range exclusives {
		for _, named := range []bool{false, true} {
			if kind == "plain" && !named {
				continue // anonymous calls wait in the process, for the first one's renewal
			}
			name := kind
			if named {
				name += " named"
			}
			t.Run(name, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					one, two := t.Context(), t.Context()
					if named {
						one, two = x.By("one"), x.By("two")
					}
					l, other := handle(x.Client()), handle(x.Client())
					f(x, l, other, dataLost(x, func() error { return l.Lock(one) }, func() error { return l.Lock(two) }))
				})
			})
		}
	}
}

// Two calls of one handle held: the first had not heard that it had lost the lock. The Unlock
// of the second ended the first one's hold, and its own was renewed for ever.
func TestAHandleHasNoSecondHoldBeforeTheFirstIsUnlocked(t *testing.T) {
	grantedBeside(t, func(x *rig.Lab, l, other *relock.Lock, second rig.Going) {
		second.Pending(x.T, "Lock on a handle whose lost hold is not unlocked")
		if !rig.IsShut(l.Lost()) || l.HoldCount() != 0 {
			x.T.Errorf("Lost is closed: %v, %d live holds: want the first hold to be lost once the lock was granted again",
				rig.IsShut(l.Lost()), l.HoldCount())
		}
		virtual.Sleep(time.Hour) // the first caller hangs
		rig.Must(x.T, other.Lock(x.T.Context()))
		rig.Must(x.T, other.Unlock())
		second.Pending(x.T, "Lock on a handle whose lost hold is not unlocked")

		rig.WantIs(x.T, l.Unlock(), relock.ErrLost)
		rig.Must(x.T, rig.Returned(x.T, second))
		x.Refuses(other)
		rig.Must(x.T, l.Unlock())
		rig.WantIs(x.T, l.Unlock(), relock.ErrNotHeld)
		virtual.Sleep(time.Minute)
		x.Free(other)
	})
}

// The first caller called Unlock, was told that it had held, and ended the hold of the second:
// a third process had the lock beside that.
func TestUnlockOfALostHoldLeavesTheNextHoldOfItsHandle(t *testing.T) {
	grantedBeside(t, func(x *rig.Lab, l, other *relock.Lock, second rig.Going) {
		rig.WantIs(x.T, l.Unlock(), relock.ErrLost)
		rig.Must(x.T, rig.Returned(x.T, second))
		x.Refuses(other)
		virtual.Sleep(time.Minute)
		x.Refuses(other)
		wantHolds(x.T, l, 1)
		rig.Must(x.T, l.Unlock())
		x.Free(other)
	})
}

// The two callers have the holds themselves: each Release ends its own hold.
func TestReleaseOfALostHoldLetsTheNextCallOfItsHandleHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a", relock.Fair()), x.Lock("a", relock.Fair())
		var first, second *relock.Hold
		waits := dataLost(x,
			func() (err error) { first, err = l.Acquire(t.Context()); return err },
			func() (err error) { second, err = l.Acquire(t.Context()); return err })
		waits.Pending(t, "Acquire on a handle whose lost hold is not released")
		rig.WantIs(t, first.Err(), relock.ErrLost)
		rig.WantIs(t, first.Release(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, waits))
		rig.Must(t, second.Err())
		x.Refuses(other)
		rig.Must(t, second.Release())
		x.Free(other)
	})
}

// The function of the first Do went on under a context that had not ended.
func TestDoEndsWhenItsHandleIsGrantedTheLockAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.Fair())
		began, ended := make(chan struct{}), x.Now()
		first := rig.Beside(func() error {
			return l.Do(t.Context(), func(ctx context.Context) error {
				close(began)
				<-ctx.Done()
				ended = x.Now()
				rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
				return nil
			})
		})
		second := dataLost(x, func() error { <-began; return nil }, func() error {
			return l.Do(t.Context(), func(ctx context.Context) error { return ctx.Err() })
		})
		rig.WantIs(t, rig.Returned(t, first), relock.ErrLost)
		rig.Must(t, rig.Returned(t, second))
		if ended >= 20*time.Second {
			t.Errorf("the context ended after %v, want it before the renewal at 20 s", ended)
		}
	})
}

// The call that was granted the lock does not wait for ever, and leaves nothing behind.
func TestACallBehindALostHoldOfItsHandleEndsWithItsContext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a", relock.Fair()), x.Lock("a", relock.Fair())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		second := dataLost(x, func() error { return l.Lock(t.Context()) }, func() error { return l.Lock(ctx) })
		rig.WantIs(t, <-second, context.DeadlineExceeded)
		synctest.Wait()
		x.Free(other)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
	})
}

// A Downgrade by the first caller made the write hold of the second a read hold.
func TestDowngradeOfALostHoldLeavesTheNextHoldOfItsHandle(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, other := x.Client().NewRWLock("a"), x.Client().NewRWLock("a")
		second := dataLost(x, func() error { return rw.Lock(t.Context()) }, func() error { return rw.Lock(t.Context()) })
		rig.WantIs(t, rw.Downgrade(t.Context()), relock.ErrLost)
		rig.WantIs(t, rw.Unlock(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, second))
		x.Refuses(other.RLocker())
		rig.WantIs(t, rw.RUnlock(), relock.ErrNotHeld)
		rig.Must(t, rw.Unlock())
		x.Free(other.WLocker())
	})
}

// The owner enters again before its first hold is known to be lost.
func TestAnOwnerIsToldOfALossThatItsNextGrantShows(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a"), x.Lock("a")
		rig.Must(t, l.Lock(x.By("me")))
		rig.Must(t, x.Redis.FlushAll(t.Context()).Err())
		rig.WantIs(t, l.Lock(x.By("me")), relock.ErrLost)
		synctest.Wait()
		x.Free(other)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrNotHeld)
	})
}

// A call has its grant, and is slow to return. Redis loses its data, and grants the lock to another call of the handle,
// which returns first. Fails when the slow call returns a hold, or takes that of the other call away.
func TestTheGrantWithTheSmallerTokenIsTheLostOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a"), x.Lock("a")
		h, err := rig.AcquireAround(x.By("slow"), l, "slow", func() {
			x.Redis.FlushAll(t.Context())
			virtual.Sleep(time.Millisecond) // tokens are the server's clock
			rig.Must(t, l.Lock(x.By("quick")))
		})
		if err == nil {
			t.Errorf("the slow call has a hold whose state is %v", h.Err())
		}
		wantHolds(t, l, 1)
		x.Refuses(other)
		rig.Must(t, l.Unlock())
		x.Free(other)
	})
}
