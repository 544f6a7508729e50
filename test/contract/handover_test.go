package contract_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// detach hands a hold over.
func detach(t *testing.T, h *relock.Hold, keep time.Duration) relock.Ticket {
	t.Helper()
	ticket, err := h.Detach(t.Context(), keep)
	rig.Must(t, err)
	return ticket
}

// resume takes what a ticket has.
func resume(t *testing.T, c *relock.Client, ticket relock.Ticket) *relock.Hold {
	t.Helper()
	h, err := c.Resume(t.Context(), ticket)
	rig.Must(t, err)
	return h
}

// handedOver are the locks that can be handed over.
var handedOver = map[string]func(c *relock.Client) *relock.Lock{
	"plain": func(c *relock.Client) *relock.Lock { return c.NewLock("l") },
	"named": func(c *relock.Client) *relock.Lock {
		return c.NewLock("l", relock.Owner("me"), relock.TTL(20*time.Second))
	},
	"local": func(c *relock.Client) *relock.Lock {
		return c.NewLock("l", relock.Owner("me"), relock.LocalReentry())
	},
	"fair":      func(c *relock.Client) *relock.Lock { return c.NewLock("l", relock.Fair()) },
	"reading":   func(c *relock.Client) *relock.Lock { return c.NewRWLock("l").RLocker() },
	"semaphore": func(c *relock.Client) *relock.Lock { return c.NewSemaphore("l", 3, relock.Weight(2)) },
	"writing":   func(c *relock.Client) *relock.Lock { return c.NewRWLock("l", relock.Fair()).WLocker() },
}

// For a minute nobody has it, which is less than the ticket lasts; then another process
// has, for longer than any lease.
// Fails when what was detached is released, or renewed, or told as lost, or has another token afterwards.
func TestWhoResumesHoldsUnderTheSameToken(t *testing.T) {
	for kind, lock := range handedOver {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := x.Client()
				h := x.Take(lock(c))
				token, ctx, lost := h.Token(), h.Context(t.Context()), h.Lost()
				ticket := detach(t, h, 2*time.Minute)
				if rig.WantIs(t, h.Err(), relock.ErrNotHeld); rig.IsShut(lost) || rig.IsShut(h.Lost()) {
					t.Error("the hold that was handed over is told as lost")
				}
				rig.WantIs(t, context.Cause(ctx), relock.ErrNotHeld)
				rig.WantNot(t, h.Err(), relock.ErrLost)
				rig.WantIs(t, h.Release(), relock.ErrNotHeld)
				x.Until(time.Minute)
				if rig.IsShut(h.Lost()) {
					t.Error("what was handed over is lost")
				}
				rig.Must(t, c.Shutdown(t.Context()))
				next := x.Client()
				info := x.Info(lock(next))
				if len(info.Holders) != 1 || info.Holders[0].Token != token || info.Holders[0].TTL != time.Minute {
					t.Errorf("redis says %+v, want a hold with token %d for another minute", info, token)
				}
				again := resume(t, next, ticket)
				x.Until(10 * time.Minute)
				rig.Must(t, again.Err())
				if again.Token() != token || again.Name() != "l" || again.Owner() != h.Owner() || x.HoldsOf(lock(next)) != 1 {
					t.Errorf("resumed with token %d of %q by %q, want %d by %q", again.Token(), again.Name(), again.Owner(), token, h.Owner())
				}
				waits := x.Begin(x.Client().NewLock("other"))
				rig.End(t, waits.Holds())
				rig.End(t, again)
				rig.WantIs(t, again.Release(), relock.ErrNotHeld)
				x.Free(lock(next))
				rig.WantBare(t, x.Redis, "l")
			})
		})
	}
}

// A named owner is the same afterwards, and enters what its ticket has as well.
func TestAnOwnerEntersWhatItsTicketHas(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := x.Take(x.Lock("l", relock.Owner("me")))
		ticket := detach(t, h, time.Minute)
		beside := x.BeginAs("me", x.Lock("l")).Holds()
		x.Refuses(x.Lock("l"))
		again := resume(t, x.Client(), ticket)
		if again.Token() != h.Token() || beside.Token() != h.Token() || again.Owner() != "me" {
			t.Errorf("tokens %d, %d and %d, owner %q", h.Token(), beside.Token(), again.Token(), again.Owner())
		}
		x.Holders(x.Eye.NewLock("l"), "me", 2)
		x.Until(10 * time.Minute)
		rig.End(t, beside)
		x.Refuses(x.Lock("l"))
		rig.End(t, again)
		x.Frees("l")
	})
}

// Fails when a ticket has anything after it was resumed.
func TestATicketWorksOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ticket := detach(t, x.Take(x.Lock("l")), time.Minute)
		type result struct {
			h   *relock.Hold
			err error
		}
		results := make(chan result, 5)
		for range cap(results) {
			c := x.Client()
			go func() {
				h, err := c.Resume(t.Context(), ticket)
				results <- result{h, err}
			}()
		}
		held := 0
		for range cap(results) {
			r := <-results
			if r.err == nil {
				held++
				defer rig.End(t, r.h)
				continue
			}
			rig.WantIs(t, r.err, relock.ErrLost)
		}
		if held != 1 {
			t.Errorf("%d resumed it, want one", held)
		}
		_, err := x.Client().Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrLost)
	})
}

// The waiter has been told of the lease that the hold had, which is longer.
// Fails when a ticket's time is the hold's lease, and when nobody tells the waiter.
func TestATicketThatNobodyResumesEnds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := x.Take(x.Lock("l", relock.TTL(time.Hour)))
		waits := x.Begin(x.Lock("l"))
		ticket := detach(t, h, 7*time.Second)
		rig.End(t, waits.Returns())
		if waits.At < 7*time.Second || waits.At > 7100*time.Millisecond {
			t.Errorf("the next holds after %v, want 7s", waits.At)
		}
		_, err := x.Client().Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrLost)
		x.Frees("l")
	})
}

// A hold that a process has passed on within itself has a token of its own.
func TestATicketHasTheTokenOfAHoldThatWasPassedOn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		rig.End(t, x.Take(l)) // the first grant of a name is of one token
		x.Until(time.Second)
		first := x.Take(l)
		second := x.Begin(l)
		third := x.Begin(l)
		rig.End(t, first)
		h := second.Holds()
		again := resume(t, x.Client(), detach(t, h, time.Minute))
		if h.Token() == first.Token() || again.Token() != h.Token() {
			t.Errorf("tokens %d, %d, and %d when it was resumed", first.Token(), h.Token(), again.Token())
		}
		third.Waits()
		rig.End(t, again)
		rig.WantLater(t, h.Token(), third.Returns().Token())
	})
}

// Fails when holds of one session are torn apart.
func TestAHoldBesideOthersOfItsOwnerIsNotHandedOver(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"counted": nil, "local": {relock.LocalReentry()}} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				l := x.Lock("l", opts...)
				outer, inner := x.BeginAs("me", l).Holds(), x.BeginAs("me", l).Holds()
				for _, h := range []*relock.Hold{outer, inner} {
					_, err := h.Detach(t.Context(), time.Minute)
					rig.WantIs(t, err, relock.ErrTooManyHolds)
					rig.Must(t, h.Err())
				}
				rig.End(t, outer)
				rig.End(t, resume(t, x.Client(), detach(t, inner, time.Minute)))
				x.Frees("l")
			})
		})
	}
}

// The name rests after whoever resumes it.
func TestATicketKeepsTheRestOfAName(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := x.Take(x.Lock("l", relock.AtLeast(time.Hour)))
		rig.End(t, resume(t, x.Client(), detach(t, h, time.Minute)))
		x.Refuses(x.Lock("l"))
		x.Until(time.Hour)
		x.Frees("l")
	})
}

func TestForceUnlockEndsWhatATicketHas(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ticket := detach(t, x.Take(x.Lock("l")), time.Minute)
		if removed, err := x.Eye.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Errorf("ForceUnlock: %v, %v", removed, err)
		}
		_, err := x.Client().Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrLost)
	})
}

// Fails when a script that is sent again takes its own effect for another's.
func TestHandOverOutlivesLostReplies(t *testing.T) {
	for name, fate := range map[string]redistest.Verdict{"swallowed": redistest.SwallowReply, "cut": redistest.CutReply, "lost": redistest.Lose} {
		t.Run(name, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				a, b := x.Actor(), x.Actor()
				h := x.Take(a.NewLock("l"))
				a.Fate("detach", 1, fate)
				b.Fate("resume", 1, fate)
				again := resume(t, b.Client, detach(t, h, time.Minute))
				if a.Sent("detach") != 2 || b.Sent("resume") != 2 {
					t.Errorf("%d and %d were sent, want each twice", a.Sent("detach"), b.Sent("resume"))
				}
				if again.Token() != h.Token() {
					t.Errorf("resumed with token %d, want %d", again.Token(), h.Token())
				}
				x.Until(x.Now() + 5*time.Minute)
				rig.End(t, again)
				x.Frees("l")
				rig.WantGone(t, a.Client, b.Client)
			})
		})
	}
}

// Redis has handed it over, and the client does not hear of it.
// Fails when a ticket that nobody has been given keeps the lock.
func TestATicketThatNobodyWasGivenIsReleased(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		h := x.Take(a.NewLock("l"))
		a.Fate("detach", 1, redistest.SwallowReply)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := h.Detach(ctx, time.Hour)
		rig.WantIs(t, err, relock.ErrUnconfirmed)
		x.Until(x.Now() + 10*time.Second)
		x.Frees("l")
	})
}

// cutOff makes a client unreachable while f runs.
func cutOff(a *rig.Actor, f func()) {
	heal := a.Link.Hole()
	defer heal()
	f()
}

func TestDetachThatIsCutShortReleases(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		h := x.Take(a.NewLock("l"))
		waits := x.Begin(x.Lock("l"))
		cutOff(a, func() {
			why := causes["another's"]
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
			defer cancel()
			_, err := h.Detach(ctx, time.Hour)
			rig.WantIs(t, err, relock.ErrUnconfirmed, context.DeadlineExceeded, why)
			rig.WantIs(t, h.Err(), relock.ErrNotHeld)
			waits.Waits()
		})
		rig.End(t, waits.Returns())
		if waits.At > 10*time.Second {
			t.Errorf("the next holds after %v, and the client could have released it before", waits.At)
		}
		x.Until(x.Now() + time.Minute)
		rig.WantGone(t, a.Client)
	})
}

// Fails when the end of the context is not told, because the try before said what was the matter.
func TestDetachThatRedisRefusesUntilItsContextEndsSaysBoth(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := x.Take(x.Lock("l"))
		x.Server.FailNext(1_000_000, "LOADING Redis is loading the dataset in memory", func(args []string) bool { return rig.ScriptSent(args) == "detach" })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.Detach(ctx, time.Hour)
		rig.WantIs(t, err, relock.ErrUnconfirmed, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "LOADING") {
			t.Error(err)
		}
		x.Until(x.Now() + time.Minute) // the client goes on until the lease of its session has ended
		x.Frees("l")
	})
}

// Fails when the ticket of a call that does not return, because its hook panics, has the lock until its time is over.
func TestADetachWhoseHookPanicsLeavesNoTicket(t *testing.T) {
	for ending, end := range endings {
		t.Run(ending, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := x.Client(relock.Trace(relock.Hooks{Released: func(relock.Event) { end() }}))
				l := c.NewLock("l")
				survive(func() {
					_ = l.Do(t.Context(), func(ctx context.Context) error {
						h, _ := relock.FromContext(ctx, "l")
						ticket, err := h.Detach(t.Context(), time.Hour)
						t.Errorf("Detach returned %q, %v", ticket, err)
						return err
					})
				})
				synctest.Wait()
				x.Frees("l")
			})
		})
	}
}
