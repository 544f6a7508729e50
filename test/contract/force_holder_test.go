package contract_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/internal/wire"
)

// A forcible is a way to lock a name, and how many may hold it so at a time.
type forcible struct {
	name string
	of   func(c *relock.Client) *relock.Lock
	many bool
}

var forcibles = []forcible{
	{"plain", func(c *relock.Client) *relock.Lock { return c.NewLock("a") }, false},
	{"fair", func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Fair()) }, false},
	{"writer", func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() }, false},
	{"fair writer", func(c *relock.Client) *relock.Lock { return c.NewRWLock("a", relock.Fair()).WLocker() }, false},
	{"reader", func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").RLocker() }, true},
	{"permit", func(c *relock.Client) *relock.Lock { return c.NewSemaphore("a", 3) }, true},
}

// selectors are the parts of a holder by which it can be named.
var selectors = map[string]func(h relock.Holder) relock.Holder{
	"token":                func(h relock.Holder) relock.Holder { return relock.Holder{Token: h.Token} },
	"owner":                func(h relock.Holder) relock.Holder { return relock.Holder{Owner: h.Owner} },
	"token and owner":      func(h relock.Holder) relock.Holder { return relock.Holder{Token: h.Token, Owner: h.Owner} },
	"all that Info showed": func(h relock.Holder) relock.Holder { return h },
}

// seenHolder is what Info shows of the holder with that owner.
func seenHolder(x *rig.Lab, owner string) relock.Holder {
	x.T.Helper()
	for _, h := range x.Info(x.Eye.NewLock("a")).Holders {
		if h.Owner == owner {
			return h
		}
	}
	x.T.Fatalf("%q holds nothing", owner)
	return relock.Holder{}
}

// Only the named holder loses its grant, and is told. The others keep theirs, and the waiter
// at the head of the queue gets the lock when it is free for it.
func TestForceUnlockHolderEndsThatGrantAndNoOther(t *testing.T) {
	for _, kind := range forcibles {
		for how, by := range selectors {
			t.Run(kind.name+" by "+how, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					var others []*relock.Hold
					if kind.many {
						others = append(others, acquire(t, kind.of(x.Client()), x.By("o1")), acquire(t, kind.of(x.Client()), x.By("o2")))
					}
					victim := acquire(t, kind.of(x.Client()), x.By("victim"))
					seen := seenHolder(x, "victim")
					removed, err := x.Eye.NewLock("a").ForceUnlockHolder(t.Context(), by(seen))
					if !removed || err != nil {
						t.Errorf("ForceUnlockHolder = %v, %v, want true", removed, err)
					}
					if got := len(x.Info(x.Eye.NewLock("a")).Holders); got != len(others) {
						t.Errorf("%d holders are left, want %d", got, len(others))
					}
					if removed, err = x.Eye.NewLock("a").ForceUnlockHolder(t.Context(), by(seen)); removed || err != nil {
						t.Errorf("once more: %v, %v, want false, nil", removed, err)
					}
					<-victim.Lost()
					rig.WantIs(t, victim.Release(), relock.ErrLost)
					virtual.Sleep(time.Minute) // beyond some renewals
					for _, h := range others {
						rig.Must(t, h.Err())
						rig.Must(t, h.Release())
					}
				})
			})
		}
	}
}

// A grant that began after the one that was seen is safe, also if its owner is the same.
func TestForceUnlockHolderSparesALaterGrant(t *testing.T) {
	for _, kind := range forcibles {
		for _, later := range []string{"other", "victim"} {
			t.Run(kind.name+", then "+later, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					first := acquire(t, kind.of(x.Client()), x.By("victim"))
					seen := seenHolder(x, "victim")
					rig.Must(t, first.Release())
					second := acquire(t, kind.of(x.Client()), x.By(later))
					for _, h := range []relock.Holder{seen, {Token: seen.Token}, {Owner: "nobody"}, {Owner: "nobody", Token: second.Token()}} {
						if removed, err := x.Eye.NewLock("a").ForceUnlockHolder(t.Context(), h); removed || err != nil {
							t.Errorf("%+v: %v, %v, want false, nil", h, removed, err)
						}
					}
					virtual.Sleep(time.Minute)
					rig.Must(t, second.Err())
					rig.Must(t, second.Release())
				})
			})
		}
	}
}

// The waiters keep their order, and the first of them gets the lock at once.
func TestForceUnlockHolderWakesTheNextAndLeavesTheQueue(t *testing.T) {
	for _, kind := range forcibles {
		if kind.name == "reader" {
			continue // readers wait for writers alone: see the test below
		}
		t.Run(kind.name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				held := []*relock.Hold{acquire(t, kind.of(x.Client()), x.By("victim"))}
				for len(held) < 3 && kind.many {
					held = append(held, acquire(t, kind.of(x.Client()), x.By(string(rune('a'+len(held))))))
				}
				next, last := x.Begin(kind.of(x.Client())), x.Begin(kind.of(x.Client()))
				next.Waits()
				last.Waits()
				before := x.Waiters(x.Eye.NewLock("a"))
				removed, err := x.Eye.NewLock("a").ForceUnlockHolder(t.Context(), relock.Holder{Owner: "victim"})
				if !removed || err != nil {
					t.Fatalf("ForceUnlockHolder = %v, %v, want true", removed, err)
				}
				got := next.Holds()
				last.Waits()
				if after := x.Waiters(x.Eye.NewLock("a")); len(after) != 1 || after[0].Owner != before[1].Owner {
					t.Errorf("%v waits, want %q", after, before[1].Owner)
				}
				rig.WantIs(t, held[0].Release(), relock.ErrLost)
				rig.Must(t, got.Release())
				rig.Must(t, last.Holds().Release())
				for _, h := range held[1:] {
					rig.Must(t, h.Release())
				}
			})
		})
	}
}

// A writer that waits for two readers gets the lock with the end of the second.
func TestForceUnlockHolderOfReadersLetsTheWriterInAfterTheLast(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		one := acquire(t, x.Client().NewRWLock("a").RLocker(), x.By("one"))
		two := acquire(t, x.Client().NewRWLock("a").RLocker(), x.By("two"))
		writer := x.Begin(x.Client().NewRWLock("a").WLocker())
		writer.Waits()
		force := func(h relock.Holder) {
			removed, err := x.Eye.NewLock("a").ForceUnlockHolder(t.Context(), h)
			if !removed || err != nil {
				t.Errorf("ForceUnlockHolder(%+v) = %v, %v, want true", h, removed, err)
			}
		}
		force(relock.Holder{Owner: "one"})
		writer.Waits()
		force(relock.Holder{Token: seenHolder(x, "two").Token})
		rig.Must(t, writer.Holds().Release())
		rig.WantIs(t, one.Release(), relock.ErrLost)
		rig.WantIs(t, two.Release(), relock.ErrLost)
	})
}

// The sessions of a lock are read in pages. That of the branch has the shortest lease, and is renewed while the second page
// is on its way: it must not be passed over.
func TestForceUnlockHolderEndsABranchThatIsRenewedBetweenTwoPages(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		ctx := x.By("A")
		acquire(t, x.Client().NewRWLock("a").RLocker(), ctx)
		branch := relock.WithChildOwner(ctx)
		victim := acquire(t, x.Client().NewRWLock("a").RLocker(), branch)
		x.Until(time.Second)
		others := x.Client()
		for i := range 260 {
			acquire(t, others.NewRWLock("a").RLocker(), x.By(fmt.Sprint("other", i)))
		}
		operator, link := x.Linked()
		x.Info(operator.NewLock("a"))
		x.Until(9500 * time.Millisecond) // the branch is renewed after 10 s, and all others after 11
		link.Latency(300 * time.Millisecond)
		owner, _ := relock.OwnerFrom(branch)
		removed, err := operator.NewLock("a").ForceUnlockHolder(t.Context(), relock.Holder{Owner: owner, Token: victim.Token()})
		if !removed || err != nil {
			t.Errorf("ForceUnlockHolder = %v, %v, want true", removed, err)
		}
		rig.WantIs(t, victim.Release(), relock.ErrLost)
	})
}

// It ends a grant and never a rest.
func TestForceUnlockHolderLeavesTheRestOfAName(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := acquire(t, x.Client().NewLock("a", relock.AtLeast(time.Hour)), x.By("victim"))
		seen := seenHolder(x, "victim")
		rig.Must(t, h.Release())
		for _, h := range []relock.Holder{seen, {Token: seen.Token}, {Owner: seen.Owner}} {
			if removed, err := x.Eye.NewLock("a").ForceUnlockHolder(t.Context(), h); removed || err != nil {
				t.Errorf("%+v: %v, %v, want false, nil", h, removed, err)
			}
		}
		if x.Info(x.Eye.NewLock("a")).Resting == 0 {
			t.Error("the name rests no more")
		}
	})
}

// Redis refuses to end the second of two grants.
// Fails when the caller is not told of it, or not that the first has ended.
func TestForceUnlockThatIsRefusedHalfwaySaysBoth(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		x.Take(x.Client().NewRWLock("a").RLocker())
		x.Take(x.Client().NewRWLock("a").RLocker())
		operator := x.Client().NewRWLock("a").WLocker()
		ends := 0
		x.Server.FailNext(1, "NOPERM this user has no permissions", func(args []string) bool {
			if rig.Runs(redistest.Command{Args: args}, "force") {
				ends++
			}
			return ends == 3 // the first is sent as EVALSHA and as EVAL
		})
		if ended, err := operator.ForceUnlock(t.Context()); !ended || err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("%t, %v, want that one has ended, and an error", ended, err)
		}
	})
}

// Redis says who holds, and then no more.
// Fails when the error is a text only, and the caller cannot tell an outage by it.
func TestForceUnlockThatIsCutShortHalfwayHasTheErrorsOfInfo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		x.Take(x.Lock("a"))
		c, link := x.Linked()
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "force") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		l := c.NewLock("a")
		ended := func(ctx context.Context) error { return second(l.ForceUnlock(ctx)) }
		rig.WantIs(t, ended(t.Context()), relock.ErrUnavailable)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		rig.WantIs(t, ended(ctx), relock.ErrUnavailable, context.DeadlineExceeded)
		call := rig.Beside(func() error { return ended(t.Context()) })
		call.Pending(t, "ForceUnlock")
		rig.Must(t, c.Close())
		rig.WantIs(t, <-call, relock.ErrClosed)
	})
}

func TestForceUnlockHolderOfNobodyIsAnInvalidOption(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := acquire(t, x.Client().NewLock("a"), t.Context())
		removed, err := x.Eye.NewLock("a").ForceUnlockHolder(t.Context(), relock.Holder{Label: "x", Holds: 1})
		if removed {
			t.Error("it has removed somebody")
		}
		rig.WantIs(t, err, relock.ErrInvalidOption)
		rig.Must(t, h.Release())
	})
}

// The first request ends the grant, and its answer is lost. The next waiter holds when the
// second request arrives.
func TestForceUnlockHolderThatIsSentAgainSparesTheNextGrant(t *testing.T) {
	for how, by := range selectors {
		t.Run(how, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				a, b, operator := x.Actor(), x.Actor(), x.Actor()
				held := x.Take(a.NewLock("a"))
				x.Until(101 * time.Millisecond)
				waiter := x.Begin(b.NewLock("a"))
				waiter.Waits()
				seen := seenHolder(x, held.Owner())
				operator.Fate("force", 1, redistest.CutReply)
				removed, err := operator.NewLock("a").ForceUnlockHolder(t.Context(), by(seen))
				if !removed || err != nil {
					t.Errorf("ForceUnlockHolder = %v, %v, want true: the first request may have removed it", removed, err)
				}
				if n := operator.Sent("force"); n != 2 {
					t.Fatalf("force was sent %d times, want twice", n)
				}
				next := waiter.Holds()
				rig.NotTrusted(t, held)
				x.Until(11 * time.Second) // beyond a renewal
				rig.Must(t, next.Err())
				rig.End(t, next)
			})
		})
	}
}

// On a server of its own, with holders and the operator in clients of their own.
func TestForceUnlockHolderOnARealServer(t *testing.T) {
	for _, kind := range forcibles {
		t.Run(kind.name, func(t *testing.T) {
			srv := redistest.Real(t)
			c := rig.Open(t, srv.Client(t))
			ctx := func(owner string) context.Context { return relock.WithOwner(t.Context(), owner) }
			victim := acquire(t, kind.of(c), ctx("victim"))
			var other *relock.Hold
			if kind.many {
				other = acquire(t, kind.of(rig.Open(t, srv.Client(t))), ctx("other"))
			}
			eye := rig.Open(t, srv.Client(t)).NewLock("a")
			if removed, err := eye.ForceUnlockHolder(t.Context(), relock.Holder{Owner: "victim", Token: victim.Token() - 1}); removed || err != nil {
				t.Errorf("with another token: %v, %v, want false, nil", removed, err)
			}
			rig.Must(t, victim.Err())
			if removed, err := eye.ForceUnlockHolder(t.Context(), relock.Holder{Token: victim.Token()}); !removed || err != nil {
				t.Errorf("ForceUnlockHolder = %v, %v, want true", removed, err)
			}
			<-victim.Lost()
			rig.WantIs(t, victim.Release(), relock.ErrLost)
			if other != nil {
				rig.Must(t, other.Release())
			}
		})
	}
}

// Redis does not know the digits that an owner's name adds to its tokens. Those of the first owner are also those of no
// name, and those of the second are zeros, as a Token has them that is left out.
// Fails when such an owner is not found by its Token or its name alone.
func TestForceUnlockHolderFindsOwnersWhateverTheirDigitsAre(t *testing.T) {
	for what, digits := range map[string]int64{"those of no name": wire.Token(0, ""), "zeros": 0} {
		owner := "victim"
		for i := 0; wire.Token(0, owner) != digits; i++ {
			owner = fmt.Sprint("victim ", i)
		}
		for _, how := range []string{"token", "owner"} {
			t.Run(what+" by "+how, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					victim := acquire(t, x.Lock("a"), x.By(owner))
					removed, err := x.Eye.NewLock("a").ForceUnlockHolder(t.Context(), selectors[how](seenHolder(x, owner)))
					if !removed || err != nil {
						t.Errorf("ForceUnlockHolder = %v, %v, want true", removed, err)
					}
					synctest.Wait()
					rig.WantIs(t, victim.Release(), relock.ErrLost)
					x.Frees("a")
				})
			})
		}
	}
}

// Fails when a call of the forced holder's process loses its place, though that process cannot have passed the lock to
// it: named owners ask Redis.
func TestForceUnlockHolderLeavesANamedWaiterOfItsProcessInTheQueue(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Fair()) }
		rig.End(t, x.Take(l(c))) // the counter is there now: the next grant has many tokens, which others can follow on
		virtual.Sleep(time.Second)
		held := x.Take(l(c))
		next, last := x.BeginAs("me", l(c)), x.Begin(l(x.Client()))
		next.Waits()
		last.Waits()
		removed, err := l(x.Eye).ForceUnlockHolder(t.Context(), relock.Holder{Owner: held.Owner()})
		if !removed || err != nil {
			t.Fatalf("ForceUnlockHolder = %v, %v, want true", removed, err)
		}
		got := next.Holds()
		last.Waits()
		rig.WantIs(t, held.Release(), relock.ErrLost)
		rig.Must(t, got.Release())
		rig.Must(t, last.Holds().Release())
	})
}
