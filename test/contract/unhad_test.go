package contract_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
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
				virtual.Sleep(time.Millisecond)
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
		virtual.Sleep(101 * time.Millisecond) // there are tokens to pass on
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

// An askedContext is a context that says when it is asked whether it has ended.
type askedContext struct {
	context.Context
	by func()
}

func (a askedContext) Err() error { a.by(); return a.Context.Err() }

// The client is closed between the answer that makes the hold and the end of the call: where the call asks its context,
// here the nth time since it has asked Redis.
// Fails when Close loses the hold as if the call had it: the lock was taken until its lease ended, and the name rested.
func TestHoldThatItsCallDoesNotHaveYetIsGivenBackByClose(t *testing.T) {
	for n := range 2 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				rig.Must(t, c.NewLock("other").Do(t.Context(), func(context.Context) error { return nil }))
				var sent, times atomic.Int32
				link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					if rig.Runs(cmd, "acquire") {
						sent.Store(1)
					}
					return redistest.Pass
				})
				closed := make(chan error, 1)
				ctx := askedContext{t.Context(), func() {
					if sent.Load() == 1 && times.Add(1) == int32(n)+1 {
						go func() { closed <- c.Close() }()
						virtual.Sleep(time.Millisecond)
					}
				}}
				err := c.NewLock("a", relock.AtLeast(time.Hour)).Lock(ctx)
				if times.Load() <= int32(n) {
					t.Fatalf("the call has asked its context %d times since it asked Redis", times.Load())
				}
				rig.Must(t, <-closed)
				rig.WantIs(t, err, relock.ErrClosed)
				x.Frees("a")
			})
		})
	}
}

// Waiters that were granted the lock, and have not run yet when their client is closed.
// Fails when Close loses what no call has had.
func TestGrantThatItsWaiterHasNotSeenIsGivenBackByClose(t *testing.T) {
	type handle func(c *relock.Client) *relock.Lock
	plain := func(c *relock.Client) *relock.Lock { return c.NewLock("a") }
	fair := func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Fair()) }
	for name, of := range map[string]struct{ before, waits handle }{
		"plain": {plain, plain},
		"named": {plain, func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Owner("me")) }},
		"fair":  {fair, fair},
		"reads": {
			func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() },
			func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").RLocker() },
		},
	} {
		t.Run(name, func(t *testing.T) { grantIsGivenBackByClose(t, of.before, of.waits) })
	}
}

func grantIsGivenBackByClose(t *testing.T, before, waits func(c *relock.Client) *relock.Lock) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		goOn, arrives := make(chan struct{}), make(chan struct{})
		c, link := x.Linked(relock.Trace(relock.Hooks{Waiting: func(context.Context, relock.Event) { <-goOn }}))
		held := x.Take(before(x.Client()))
		call := rig.Beside(func() error { return waits(c).Lock(t.Context()) })
		rig.StillWaits(t, call)
		behind := rig.Beside(func() error { return waits(c).Lock(t.Context()) })
		rig.StillWaits(t, behind)
		rig.End(t, held)
		synctest.Wait() // the grant is here
		link.OnCommand(func(redistest.Command) redistest.Verdict { return redistest.Hold(arrives) })
		closed := rig.Beside(c.Close)
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		close(arrives)
		rig.Must(t, <-closed)
		rig.WantIs(t, rig.Returned(t, call), relock.ErrClosed)
		rig.WantIs(t, rig.Returned(t, behind), relock.ErrClosed)
		if info := x.Info(x.Eye.NewLock("a")); len(info.Holders) != 0 {
			t.Errorf("held by %+v after Close", info.Holders)
		}
	})
}

// A call joins its owner's hold, which is unlocked before the call has run; then the client
// is closed.
// Fails when Close loses what no call has had.
func TestHoldThatACallWasAboutToJoinIsGivenBackByClose(t *testing.T) {
	type last struct{}
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		goOn := make(chan struct{})
		c, link := x.Linked(relock.Trace(relock.Hooks{Waiting: func(ctx context.Context, _ relock.Event) {
			if ctx.Value(last{}) != nil {
				<-goOn
			}
		}}))
		other := x.Take(x.Lock("a"))
		l := c.NewLock("a")
		first := rig.Beside(func() error { return l.Lock(x.By("me")) })
		synctest.Wait()
		joins := rig.Beside(func() error { return c.NewLock("a").Lock(context.WithValue(x.By("me"), last{}, true)) })
		synctest.Wait()
		rig.End(t, other)
		rig.Must(t, rig.Returned(t, first))
		rig.Must(t, l.Unlock())
		synctest.Wait()
		arrives := make(chan struct{})
		link.OnCommand(func(redistest.Command) redistest.Verdict { return redistest.Hold(arrives) })
		closed := rig.Beside(c.Close)
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		close(arrives)
		rig.Must(t, <-closed)
		rig.WantIs(t, rig.Returned(t, joins), relock.ErrClosed)
		x.Frees("a")
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
		if ran, err := c.Once(t.Context(), "job", time.Hour, fn, relock.TTL(10*time.Second)); ran || err == nil || errors.Is(err, relock.ErrNotAcquired) {
			t.Errorf("Once = %v, %v, want an error that does not say it is taken: nobody has run it", ran, err)
		}
		virtual.Sleep(time.Second)
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

// Redis grants the lock, the reply is lost, and the network is gone for longer than the lease. No call has had the hold.
func TestALockWaitsForNoRestOfItsOwn(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		rig.Must(t, c.NewLock("warm").Do(t.Context(), func(context.Context) error { return nil }))
		heal := outageAfter(link, "acquire")
		call := x.Begin(c.NewLock("l", relock.AtLeast(30*time.Minute), relock.TTL(10*time.Second)))
		virtual.Sleep(30 * time.Second)
		heal()
		rig.End(t, call.Returns())
		if call.At > time.Minute {
			t.Errorf("it holds after %v: it has waited for the rest of a grant that no call had", call.At)
		}
		x.Refuses(x.Lock("l")) // now a call has had it
	})
}

// A waiter is cut off when the lock is handed to it, for a moment longer than its entry lasts.
func TestAWaiterWaitsForNoRestOfItsOwn(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		rig.Must(t, c.NewLock("warm").Do(t.Context(), func(context.Context) error { return nil }))
		holder := x.Take(x.Lock("l"))
		call := x.Begin(c.NewLock("l", relock.AtLeast(30*time.Minute), relock.TTL(3*time.Second)))
		virtual.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		heal := link.Hole() // the server goes on counting it as subscribed
		rig.End(t, holder)
		virtual.Sleep(5 * time.Second)
		heal()
		rig.End(t, call.Returns())
		if call.At > time.Minute {
			t.Errorf("it holds after %v: it has waited for the rest of a grant that no call had", call.At)
		}
	})
}

// One owner in two processes. The call that was granted the lock fails before it hears of that, after a call in the other
// process has joined the grant.
func TestARestStaysForWhoJoinedTheGrantOfACallThatFailed(t *testing.T) {
	for _, away := range []time.Duration{0, 8 * time.Second} { // the release of the first comes then after its lease
		rig.Play(t, func(t *testing.T, x *rig.Lab) { restsForTheSecond(t, x, away) })
	}
}

func restsForTheSecond(t *testing.T, x *rig.Lab, away time.Duration) {
	t.Helper()
	c, link := x.Linked()
	rig.Must(t, c.NewLock("warm").Do(t.Context(), func(context.Context) error { return nil }))
	first := true
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if first && rig.Runs(cmd, "acquire") {
			first = false
			return redistest.SwallowReply
		}
		return redistest.Pass
	})
	ctx, cancel := context.WithCancel(x.By("o"))
	defer cancel()
	fails := rig.Beside(func() error {
		return c.NewLock("l", relock.AtLeast(10*time.Minute), relock.TTL(5*time.Second)).Lock(ctx)
	})
	fails.Pending(t, "the call")
	joins := x.BeginAs("o", x.Lock("l", relock.AtLeast(10*time.Minute))).Holds()
	heal := link.Hole()
	cancel()
	rig.WantIs(t, rig.Returned(t, fails), context.Canceled)
	virtual.Sleep(away)
	heal()
	virtual.Sleep(20 * time.Second) // its release
	synctest.Wait()
	rig.Must(t, joins.Err())
	rig.End(t, joins)
	x.Refuses(x.Lock("l"))
}
