package contract_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A ticket of a fixed lease, whose resumption is not answered at first: asked again, Redis
// has less left of the lease than it promises.
func TestAFixedLeaseIsResumedThoughTheReplyIsLost(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a, b := x.Actor(), x.Actor()
		h := x.Take(a.NewLock("l", relock.NoWatchdog(), relock.TTL(10*time.Second)))
		b.Fate("resume", 1, redistest.SwallowReply)
		began := x.Now()
		again := resume(t, b.Client, detach(t, h, time.Minute))
		if again.Token() != h.Token() {
			t.Errorf("resumed with token %d, want %d", again.Token(), h.Token())
		}
		if x.Now() == began {
			t.Fatal("it was answered at once")
		}
		resumed := x.Now()
		x.Until(resumed + 9500*time.Millisecond) // the full lease
		rig.Must(t, again.Err())
		rig.End(t, again)
		x.Frees("l")
		rig.WantGone(t, a.Client, b.Client)
	})
}

// Fails when the made name that it keeps is taken for a given one.
func TestAnAnonymousHoldIsAnonymousOnceItIsResumed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		again := resume(t, c, detach(t, x.Take(x.Lock("l")), time.Minute))
		l := c.NewLock("l")
		err := l.Lock(again.Context(t.Context()))
		rig.WantIs(t, err, relock.ErrDeadlock)
		if !strings.Contains(err.Error(), "an anonymous owner") {
			t.Errorf("the error is %v, want it to name nobody", err)
		}
		rig.WantIs(t, l.Lock(relock.WithOwner(t.Context(), again.Owner())), relock.ErrInvalidOption)
		rig.End(t, again)
	})
}

// Fails when the ticket says that its hold writes, as it did before: who resumes it would write
// beside readers, until its renewal finds that out.
func TestATicketOfADowngradedHoldReads(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		rw := c.NewRWLock("l")
		h := x.Take(rw.WLocker())
		rig.Must(t, rw.Downgrade(t.Context()))
		again := resume(t, c, detach(t, h, time.Minute))
		virtual.Sleep(time.Minute)
		rig.End(t, again)
	})
}

// The server hears of it too late: the lease has ended, another has held since, and then
// a late copy of the request that had got it was granted the lock.
// Fails when that grant is handed over in the place of the one that was lost.
func TestAHoldThatWasLostBeforeItIsHandedOverIsLost(t *testing.T) {
	for kind, lock := range map[string]func(c *relock.Client) *relock.Lock{
		"plain": func(c *relock.Client) *relock.Lock {
			return c.NewLock("l", relock.TTL(2*time.Second), relock.NoWatchdog())
		},
		"reading": func(c *relock.Client) *relock.Lock {
			return c.NewRWLock("l", relock.TTL(2*time.Second), relock.NoWatchdog()).RLocker()
		},
	} {
		t.Run(kind, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				a, b := x.Actor(), x.Actor()
				late, gate := make(chan struct{}), make(chan struct{})
				a.LateThen(late, "detach", gate)
				h := x.Take(lock(a.Client))
				x.Until(1500 * time.Millisecond)
				detached := rig.Beside(func() error {
					_, err := h.Detach(t.Context(), time.Minute)
					return err
				})
				x.Until(2500 * time.Millisecond)
				rig.End(t, x.Take(lock(b.Client)))
				close(late)
				synctest.Wait()
				close(gate)
				rig.WantIs(t, <-detached, relock.ErrLost)
				x.Frees("l")
			})
		})
	}
}

// Fails when it gives up its hold twice: Redis is told that there are four billion.
func TestAResumptionThatIsNotConfirmedIsGivenUpOnce(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		b, never, cut := x.Actor(), make(chan struct{}), false
		defer close(never)
		h, err := x.Lock("l", relock.NoWatchdog()).Acquire(x.By("me"))
		rig.Must(t, err)
		ticket := detach(t, h, 20*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		b.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			switch name := rig.ScriptSent(cmd.Args); {
			case name == "resume" && !cut:
				cut = true
				return redistest.CutReply
			case name == "hold" && ctx.Err() == nil:
				return redistest.Hold(never)
			}
			return redistest.Pass
		})
		_, err = b.Resume(ctx, ticket)
		rig.WantIs(t, err, context.DeadlineExceeded)
		virtual.Sleep(time.Second)
		x.Free(x.Lock("l"))
	})
}

// Fails when a label lasts as long as the leases of locks alone, and not of what was resumed.
func TestLabelLastsAsLongAsTheLeaseOfAResumedHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, _ := labelled(x, relock.Label("A"))
		b, link := labelled(x, relock.Label("B"))
		rig.End(t, x.Take(b.NewLock("x")))
		ticket := detach(t, x.Take(a.NewLock("l", relock.TTL(4*time.Hour))), time.Minute)
		resume(t, b, ticket)
		synctest.Wait() // nobody waits for the label to be stored
		link.Hole()     // as of a process that dies: its lease goes on
		virtual.Sleep(20 * time.Minute)
		if h := holder(x, "l"); h.Label != "B" {
			t.Errorf("holder %+v, want the label B", h)
		}
	})
}

// Fails when a hold is resumed whose renewals this redis client cannot wait for, or the ticket
// is used up by who may not have it.
func TestATicketWhoseReplicasTakeAsLongAsAReadIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _, _ := follow(x, 1)
		ticket := detach(t, x.Take(c.NewLock("l", relock.Replicas(1, time.Second))), time.Minute)
		hasty := x.ClientOver(x.Server.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Second }))
		_, err := hasty.Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrInvalidOption)
		rig.End(t, resume(t, c, ticket))
	})
}

// Fails when a Resume that has no hold is not told as each other call is that has none.
func TestGaveUpHookIsToldOfAResumeWithoutItsHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var told []relock.Event
		c, ctx := giver(x, &told), context.WithValue(t.Context(), callKey{}, 1)
		ticket := detach(t, x.Take(x.Lock("a", relock.Owner("me"))), time.Minute)
		rig.End(t, resume(t, x.Client(), ticket))
		givesUp(t, "a used ticket", &told, 0, relock.ErrLost, func() error {
			_, err := c.Resume(ctx, ticket)
			return err
		})
	})
}

// A ticket that nobody was given outlives its hold's lease, and the client could not say so
// until long after that.
// Fails without the fix: a ticket that may be there is released for as long as it may be.
func TestATicketThatNobodyWasGivenIsReleasedAfterALongOutage(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		c, link := x.Linked()
		h := acquire(t, c.NewLock("l"), t.Context())
		down := false
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			switch {
			case down:
				return redistest.Lose
			case rig.Runs(cmd, "detach"):
				down = true
				return redistest.SwallowReply
			}
			return redistest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.Detach(ctx, time.Hour)
		rig.WantIs(t, err, relock.ErrUnconfirmed)
		virtual.Sleep(30 * time.Minute)
		x.Refuses(x.Lock("l"))
		link.OnCommand(nil)
		virtual.Sleep(2 * time.Second)
		x.Frees("l")
	})
}

// Fails when Shutdown waits for a ticket that it cannot release until that ends.
func TestShutdownWaitsNoLongerForATicketThanForALease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		h := acquire(t, c.NewLock("l"), t.Context())
		defer link.Cut()()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.Detach(ctx, time.Hour)
		rig.WantIs(t, err, relock.ErrUnconfirmed)
		began := x.Now()
		rig.Must(t, c.Shutdown(t.Context()))
		if took := x.Now() - began; took > time.Minute {
			t.Errorf("Shutdown took %v", took)
		}
	})
}

// As above, of a ticket that nobody gets because the hook of its Detach does not return.
func TestShutdownWaitsNoLongerForATicketWhoseHookDoesNotReturn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var link *redistest.Link
		var c *relock.Client
		c, link = x.Linked(relock.Trace(relock.Hooks{Released: func(relock.Event) {
			link.Cut()
			runtime.Goexit()
		}}))
		h := acquire(t, c.NewLock("l"), t.Context())
		survive(func() { _, _ = h.Detach(t.Context(), time.Hour) })
		began := x.Now()
		rig.Must(t, c.Shutdown(t.Context()))
		if took := x.Now() - began; took > time.Minute {
			t.Errorf("Shutdown took %v", took)
		}
	})
}

// Fails when a hold that came while the client closed, and went back at once, is told as one
// that somebody else has resumed.
func TestAResumptionThatMeetsCloseSaysSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		rig.Must(t, c.NewLock("other").Do(t.Context(), func(context.Context) error { return nil }))
		ticket := detach(t, x.Take(x.Lock("a")), time.Hour)
		free := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "resume") {
				return redistest.Hold(free)
			}
			return redistest.Pass
		})
		call := rig.Beside(func() error { _, err := c.Resume(t.Context(), ticket); return err })
		synctest.Wait()
		closed := rig.Beside(c.Close)
		synctest.Wait()
		virtual.Sleep(time.Millisecond)
		close(free)
		rig.Must(t, <-closed)
		err := rig.Returned(t, call)
		if rig.WantIs(t, err, relock.ErrClosed); errors.Is(err, relock.ErrLost) {
			t.Errorf("%v; want no word of a ticket that is gone", err)
		}
	})
}

// The hold is 15 s old when it is handed over, and the ticket is used 30 s later.
// Fails when who resumes it holds without that bound, or for what was left of it.
func TestTheMaxHoldOfATicketBeginsAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := x.Take(x.Lock("l", relock.TTL(3*time.Second), relock.MaxHold(20*time.Second)))
		virtual.Sleep(15 * time.Second)
		ticket := detach(t, h, time.Minute)
		virtual.Sleep(30 * time.Second)
		lastsFor(t, resume(t, x.Client(), ticket), 20*time.Second, 23*time.Second)
	})
}

// Fails when who resumes holds what no replica has, or the lock stays taken.
func TestATicketOfReplicasThatDoNotAcknowledgeIsReleased(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _, f := follow(x, 1)
		ticket := detach(t, x.Take(c.NewLock("l", relock.Replicas(1, 100*time.Millisecond))), time.Minute)
		f.set(0, false)
		_, err := c.Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrReplicas)
		synctest.Wait()
		x.Frees("l")
	})
}
