package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Messages and answers travel on two connections, so a message that a grant has ended may come before the answer that
// tells of that grant.

// early runs call by a client behind link. Redis executes the request of call, then between runs, its messages arrive,
// and the answer to the request arrives 10 ms later.
func early(link *redistest.Link, call func() error, between func()) rig.Going {
	synctest.Wait()
	link.Latency(20 * time.Millisecond)
	going := rig.Beside(call)
	virtual.Sleep(30 * time.Millisecond)
	link.Latency(0)
	between()
	virtual.Sleep(20 * time.Millisecond)
	return going
}

// warm has the client load its scripts and subscribe.
func warm(t *testing.T, c *relock.Client) {
	t.Helper()
	rig.End(t, rig.MustAcquire(t, c.NewLock("warm")))
	synctest.Wait()
}

// Fails when the answer makes a hold: two owners hold then.
func TestAGrantThatWasForcedBeforeItsAnswerCameIsNoHold(t *testing.T) {
	for what, lock := range map[string]func(c *relock.Client, opts ...relock.LockOption) *relock.Lock{
		"lock": func(c *relock.Client, opts ...relock.LockOption) *relock.Lock { return c.NewLock("a", opts...) },
		"fair": func(c *relock.Client, opts ...relock.LockOption) *relock.Lock {
			return c.NewLock("a", append(opts, relock.Fair())...)
		},
		"write": func(c *relock.Client, opts ...relock.LockOption) *relock.Lock {
			return c.NewRWLock("a", opts...).WLocker()
		},
		"semaphore": func(c *relock.Client, opts ...relock.LockOption) *relock.Lock {
			return c.NewSemaphore("a", 1, opts...)
		},
	} {
		for terms, opts := range map[string][]relock.LockOption{"renewed": nil, "NoWatchdog": {relock.NoWatchdog()}} {
			t.Run(what+" "+terms, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					c, link := x.Linked()
					warm(t, c)
					other := lock(x.Client())
					waits := early(link, func() error { return lock(c, opts...).Lock(t.Context()) }, func() {
						rig.Must(t, force(t, other))
						rig.Must(t, other.Lock(t.Context()))
					})
					rig.StillWaits(t, waits)
					rig.Must(t, other.Unlock())
					rig.Must(t, rig.Returned(t, waits))
				})
			})
		}
	}
}

func force(t *testing.T, l *relock.Lock) error {
	t.Helper()
	removed, err := l.ForceUnlock(t.Context())
	if !removed {
		t.Error("ForceUnlock found no holder")
	}
	return err
}

// The grant came with the ancestor's hold, and ended with it.
// Fails when the answer makes a hold: the branch has the token of a hold that has ended, until its next renewal.
func TestABranchIsNotGrantedWhatItsAncestorHasEndedMeanwhile(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		flow := relock.WithNewOwner(t.Context())
		held, err := x.Lock("a").Acquire(flow)
		rig.Must(t, err)
		branch := relock.WithChildOwner(flow)
		c, link := x.Linked()
		warm(t, c)
		var got *relock.Hold
		rig.Must(t, rig.Returned(t, early(link, func() error {
			h, err := c.NewLock("a", relock.NoWatchdog()).Acquire(branch)
			got = h
			return err
		}, func() { rig.Must(t, held.Release()) })))
		rig.WantLater(t, held.Token(), got.Token())
		x.Refuses(x.Lock("a"))
		rig.Must(t, got.Release())
		rig.End(t, rig.MustAcquire(t, x.Lock("a")))
	})
}

// Redis refuses a wait, which therefore gives up nothing, and before the refusal arrives the holds are removed.
// Fails when the holds come back: nobody tells their holder before the next renewal.
func TestARefusedWaitWhoseHoldWasForcedMeanwhileIsLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		me := x.By("me")
		c, link := x.Linked()
		l := c.NewLock("a")
		_, err := c.NewLock("b").Acquire(me)
		rig.Must(t, err)
		_, err = c.NewLock("b").NewCond("c").WaitFor(me, 0) // so that Redis knows the script
		rig.Must(t, err)
		held, err := l.Acquire(me)
		rig.Must(t, err)
		_, err = x.Lock("a").Acquire(me)
		rig.Must(t, err)
		rig.WantIs(t, rig.Returned(t, early(link, func() error { return l.NewCond("c").Wait(me) },
			func() { rig.Must(t, force(t, x.Lock("a"))) })), relock.ErrLost)
		rig.WantIs(t, held.Err(), relock.ErrLost)
		rig.WantIs(t, held.Release(), relock.ErrLost)
	})
}

// Fails when the refusal is returned: it says that the owner keeps what it holds.
func TestARefusedWaitWhoseLeaseHasEndedMeanwhileIsLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		me := x.By("me")
		_, err := x.Lock("a").Acquire(me)
		rig.Must(t, err)
		c, link := x.Linked()
		l := c.NewLock("a", relock.TTL(time.Second), relock.NoWatchdog())
		_, err = c.NewLock("b").Acquire(me)
		rig.Must(t, err)
		_, err = c.NewLock("b").NewCond("c").WaitFor(me, 0) // so that Redis knows the script
		rig.Must(t, err)
		held, err := l.Acquire(me)
		rig.Must(t, err)
		virtual.Sleep(900 * time.Millisecond)
		link.Latency(60 * time.Millisecond)
		rig.WantIs(t, l.NewCond("c").Wait(me), relock.ErrLost)
		rig.WantIs(t, held.Release(), relock.ErrLost)
	})
}

// A message that a grant has ended may be late, and about an earlier grant of the same request.
// Fails when Redis is not told of the loss: nobody gets the lock for the lease of a holder that does not exist.
func TestALateMessageOfALossLeavesNothingInRedis(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		warm(t, c)
		held := rig.MustAcquire(t, c.NewLock("a"))
		tellAll(t, x, "lost "+rig.Nonce(held))
		synctest.Wait()
		rig.WantIs(t, held.Err(), relock.ErrLost)
		rig.End(t, rig.MustAcquire(t, x.Lock("a")))
		if x.Now() > time.Second {
			t.Errorf("another client holds after %v, want at once", x.Now())
		}
		rig.WantIs(t, held.Release(), relock.ErrLost)
	})
}

// A message that a grant has ended may be late, and about an earlier grant than the next one.
// Fails when a mark of the message stays: the waiter believes no grant any more.
func TestAWaiterBelievesTheGrantAfterALateMessageOfALoss(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		held := rig.MustAcquire(t, x.Lock("a"))
		c := x.Client()
		waits := rig.Beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		rig.Queued(t, x.Lock("a"), 1)
		nonce := x.Redis.ZRange(t.Context(), key.For("relock", "a").Queue, -1, -1).Val()[0]
		tellAll(t, x, "lost "+nonce)
		synctest.Wait()
		rig.End(t, held)
		rig.Must(t, rig.Returned(t, waits))
		if x.Now() > time.Second {
			t.Errorf("holds after %v, want at once", x.Now())
		}
	})
}

// A Downgrade and a Wait of one owner stand in line to tell Redis something.
// Fails when the wait gives up the read hold, of which Redis has not heard yet: Downgrade says then that it did nothing.
func TestAWaitRightAfterADowngradeIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		me := x.By("me")
		c, link := x.Linked()
		rw := c.NewRWLock("a")
		for range 2 {
			rig.Must(t, rw.Lock(me))
		}
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "hold") {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		third := rig.Beside(func() error { return rw.Lock(me) })
		synctest.Wait()
		downgrade := rig.Beside(func() error { return rw.Downgrade(me) })
		synctest.Wait()
		wait := rig.Beside(func() error { return rw.WLocker().NewCond("c").Wait(context.WithoutCancel(me)) })
		synctest.Wait()
		link.OnCommand(nil)
		close(gate)
		rig.Must(t, rig.Returned(t, third))
		rig.WantIs(t, rig.Returned(t, wait), relock.ErrUpgrade)
		rig.Must(t, rig.Returned(t, downgrade))
		rig.Must(t, rw.RUnlock())
		for range 2 {
			rig.Must(t, rw.Unlock())
		}
	})
}

// The hold of a branch ends with its ancestor's while Shutdown waits for it. Its contexts are many, so that the loss takes
// a moment between its first effect and its last.
// Fails when Shutdown sees that nothing is left before the release of that hold has begun: it stays in everybody's way.
func TestShutdownWaitsForTheReleaseOfAHoldThatItsAncestorEnds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		flow := relock.WithNewOwner(t.Context())
		outer, err := x.Lock("a").Acquire(flow)
		rig.Must(t, err)
		c := x.Client()
		held, err := c.NewLock("a").Acquire(relock.WithChildOwner(flow))
		rig.Must(t, err)
		for range 20_000 {
			held.Context(t.Context())
		}
		shutdown := rig.Beside(func() error { return c.Shutdown(context.WithoutCancel(t.Context())) })
		rig.StillWaits(t, shutdown)
		rig.Must(t, outer.Release())
		rig.Must(t, rig.Returned(t, shutdown))
		got, err := x.Lock("a").TryLock(t.Context(), 0)
		rig.Must(t, err)
		if !got {
			t.Error("the lock is taken after Shutdown, want it free")
		}
	})
}

// A read hold has ended here, and Redis has not heard of that.
// Fails when Redis refuses the wait because it still counts that hold.
func TestAWaitIsNotRefusedForAReadHoldThatHasEnded(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		me := x.By("me")
		c, link := x.Linked()
		rw := c.NewRWLock("a")
		rig.Must(t, rw.Lock(me))
		rig.Must(t, rw.RLock(me))
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "hold") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		rig.WantIs(t, rw.RUnlock(), relock.ErrUnconfirmed)
		_, err := rw.WLocker().NewCond("c").WaitFor(me, 0)
		rig.Must(t, err)
		link.OnCommand(nil)
		rig.Must(t, rw.Unlock())
	})
}
