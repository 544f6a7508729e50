package contract_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// At 10 s the holder releases, and at 50 s the name has rested. Its waiters have kept
// their places.
// Fails when the release hands the lock on, and when nobody wakes the one who waits.
func TestANameRestsUntilSoLongAfterItWasAcquired(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, eye := x.Lock("l", relock.AtLeast(50*time.Second)), x.Eye.NewLock("l")
		h := x.Take(l)
		if got := x.Info(eye).Resting; got != 0 {
			t.Errorf("it rests for %v while it is held", got)
		}
		first, second := x.Begin(x.Lock("l")), x.Begin(x.Lock("l"))
		x.Until(10 * time.Second)
		rig.End(t, h)
		first.Waits()
		x.Until(20 * time.Second)
		info := x.Info(eye)
		if info.Name != "l" || info.Kind != "plain" || len(info.Holders) != 0 || info.Waiters != 2 || info.Resting != 30*time.Second {
			t.Errorf("redis says %+v, want nobody for another 30s, and two who wait", info)
		}
		x.Refuses(x.Lock("l"))
		rig.End(t, first.Returns())
		rig.End(t, second.Returns())
		if first.At < 50*time.Second || first.At > 50*time.Second+10*time.Millisecond || second.At < first.At {
			t.Errorf("held again after %v and %v, want 50s, in their order", first.At, second.At)
		}
		rig.WantBare(t, x.Redis, "l")
	})
}

// A hold that lasts longer than that leaves no rest.
func TestANameThatWasHeldForLongDoesNotRest(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := x.Take(x.Lock("l", relock.AtLeast(50*time.Second)))
		waits := x.Begin(x.Lock("l"))
		x.Until(time.Minute)
		rig.End(t, h)
		rig.End(t, waits.Holds())
		x.Frees("l")
		rig.WantBare(t, x.Redis, "l")
	})
}

// Whoever waits may be the one after whom the name is to rest.
func TestANameRestsAfterAHoldThatWasWaitedFor(t *testing.T) {
	for kind, opts := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}} {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				h := x.Take(x.Lock("l", opts...))
				waits := x.Begin(x.Lock("l", append(opts, relock.AtLeast(50*time.Second))...))
				behind := x.Begin(x.Lock("l", opts...))
				x.Until(5 * time.Second)
				rig.End(t, h)
				rig.End(t, waits.Holds())
				behind.Waits()
				rig.End(t, behind.Returns())
				if behind.At != 55*time.Second {
					t.Errorf("the next holds after %v, want 55s", behind.At)
				}
			})
		})
	}
}

// The holder's lease ends at 10 s, and the name is taken until 50 s all the same.
// Fails when only a release has the name rest.
func TestANameRestsThoughItsHolderDied(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		l := a.NewLock("l", relock.AtLeast(50*time.Second), relock.TTL(10*time.Second))
		rig.MustAcquire(t, l)
		a.Link.Hole()
		waits := x.Begin(x.Lock("l"))
		x.Until(x.Now() + 20*time.Second)
		if info := x.Info(x.Eye.NewLock("l")); len(info.Holders) != 0 || info.Resting < 29*time.Second {
			t.Errorf("redis says %+v, want that nobody holds, and that the name rests", info)
		}
		rig.End(t, waits.Returns())
		if waits.At < 50*time.Second || waits.At > 51*time.Second {
			t.Errorf("the next holds after %v, want 50s", waits.At)
		}
	})
}

// Fails when the hash ends with TokenKeep, and the rest with it: also where the holder
// has died, and no release has had the hash kept.
func TestANameRestsForLongerThanItsHashWould(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.End(t, x.Take(x.Lock("l", relock.AtLeast(24*time.Hour))))
		dies := x.Actor()
		x.Take(dies.NewLock("dead", relock.AtLeast(24*time.Hour)))
		dies.Link.Cut()
		x.Until(23 * time.Hour)
		x.Refuses(x.Lock("l"))
		x.Refuses(x.Lock("dead"))
		x.Until(24 * time.Hour)
		x.Frees("l")
		x.Frees("dead")
	})
}

// An operator ends a rest as he ends a hold, and what would come after that.
func TestForceUnlockEndsTheRestOfAName(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, eye := x.Lock("l", relock.AtLeast(50*time.Second)), x.Eye.NewLock("l")
		for _, while := range []string{"it rests", "it is held"} {
			h := x.Take(l)
			if while == "it rests" {
				rig.End(t, h)
			}
			waits := x.Begin(x.Lock("l"))
			if removed, err := eye.ForceUnlock(t.Context()); !removed || err != nil {
				t.Errorf("ForceUnlock while %s: %v, %v, want true, nil", while, removed, err)
			}
			rig.End(t, waits.Holds())
			if while == "it is held" {
				rig.WantIs(t, h.Release(), relock.ErrLost)
			}
		}
		if removed, err := eye.ForceUnlock(t.Context()); removed || err != nil {
			t.Errorf("ForceUnlock of a free lock: %v, %v, want false, nil", removed, err)
		}
		rig.WantBare(t, x.Redis, "l")
	})
}

// Fails when a request that comes late says that it has ended a rest which was over.
func TestForceUnlockEndsNoRestThatIsOver(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		rig.End(t, x.Take(x.Lock("l", relock.AtLeast(10*time.Second))))
		operator, link := x.Linked()
		asked, late := make(chan struct{}), make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "force") {
				close(asked)
				return redistest.Hold(late)
			}
			return redistest.Pass
		})
		x.Until(9900 * time.Millisecond)
		go func() {
			<-asked
			x.Until(10 * time.Second)
			close(late)
		}()
		if removed, err := operator.NewLock("l").ForceUnlock(t.Context()); removed || err != nil {
			t.Errorf("ForceUnlock: %v, %v, want false, nil", removed, err)
		}
	})
}

// Redis is an hour ahead of the operator's machine, or behind it.
// Fails when the rest to end is named by the operator's own clock.
func TestForceUnlockEndsARestByTheClockOfRedis(t *testing.T) {
	for _, apart := range []time.Duration{-time.Hour, time.Hour} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			x.Server.StepClock(apart)
			rig.End(t, x.Take(x.Lock("l", relock.AtLeast(50*time.Second))))
			x.Refuses(x.Lock("l"))
			if removed, err := x.Eye.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
				t.Errorf("ForceUnlock, with Redis %v ahead: %v, %v, want true, nil", apart, removed, err)
			}
			x.Frees("l")
		})
	}
}

// A goroutine of the same process waits as anybody else does.
// Fails when a hold is passed on within the process.
func TestAHoldAfterWhichANameRestsIsNotPassedOn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.End(t, x.Take(x.Lock("l"))) // the first grant has a block of one: it is never passed on
		x.Until(time.Second)
		l := x.Lock("l", relock.AtLeast(50*time.Second))
		h := x.Take(l)
		next := x.Begin(l)
		rig.End(t, h) // before its turn is over, in which it could be passed on
		next.Waits()
		rig.End(t, next.Returns())
		if next.At < 51*time.Second {
			t.Errorf("it holds after %v, want 51s", next.At)
		}
	})
}

// Fails when a grant counts as undone unless exactly one hold was had of it.
func TestANameRestsAlsoAfterALocalReentry(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l", relock.AtLeast(50*time.Second), relock.LocalReentry())
		outer, inner := x.BeginAs("o", l).Holds(), x.BeginAs("o", l).Holds()
		rig.End(t, inner)
		rig.End(t, outer)
		next := x.Begin(x.Lock("l"))
		next.Waits()
		rig.End(t, next.Returns())
		if next.At < 50*time.Second {
			t.Errorf("it holds after %v, want 50s", next.At)
		}
	})
}

// An owner re-enters what it holds; the rest is counted from the first.
func TestAnOwnerDoesNotEnterANameThatRests(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("l", relock.AtLeast(50*time.Second)), x.Lock("l", relock.AtLeast(50*time.Second))
		h := x.BeginAs("o", l).Holds()
		x.Until(20 * time.Second)
		again, elsewhere := x.BeginAs("o", l).Holds(), x.BeginAs("o", other).Holds()
		rig.End(t, h)
		rig.End(t, elsewhere)
		rig.End(t, again)
		late := x.BeginAs("o", l)
		late.Waits()
		rig.End(t, late.Returns())
		if late.At != 50*time.Second {
			t.Errorf("the owner holds again after %v, want 50s", late.At)
		}
	})
}

var errUnheard = errors.New("unheard")

// A call that has failed has not acquired: the name does not rest after it.
// Fails when a grant that no call returned has the name rest.
func TestAGrantThatNoCallHadLeavesNoRest(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) { cancel(errUnheard); panic(errUnheard) }}))
		func() {
			defer func() { _ = recover() }()
			_ = c.NewLock("l", relock.AtLeast(time.Hour)).Lock(ctx)
		}()
		rig.WantIs(t, context.Cause(ctx), errUnheard)
		x.Begin(x.Lock("l")).Holds()
	})
}

// Several locks that are not all to be had leave no rest behind.
func TestAMultiThatGivesUpLeavesNoRest(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		taken := x.Take(x.Lock("b"))
		c := x.Client()
		all := relock.NewMulti(c.NewLock("a", relock.AtLeast(time.Hour)), c.NewLock("b"), c.NewLock("c", relock.AtLeast(time.Hour)))
		if got, err := all.TryLock(t.Context(), time.Second); got || err != nil {
			t.Fatalf("TryLock: %v, %v, want false, nil", got, err)
		}
		x.Frees("a")
		x.Frees("c")
		rig.End(t, taken)
		rig.Must(t, all.Lock(t.Context()))
		rig.Must(t, all.Unlock())
		x.Refuses(x.Lock("a"))
		x.Frees("b")
	})
}

func TestWhatCannotRestIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, d := range []time.Duration{-1, 0, time.Microsecond, 1500 * time.Microsecond, 367 * 24 * time.Hour} {
			rig.WantIs(t, x.Lock("l", relock.AtLeast(d)).Lock(t.Context()), relock.ErrInvalidOption)
		}
		rw := x.Client().NewRWLock("l", relock.AtLeast(time.Second))
		rig.WantIs(t, rw.Lock(t.Context()), relock.ErrInvalidOption)
		rig.WantIs(t, rw.RLock(t.Context()), relock.ErrInvalidOption)
		rig.WantIs(t, x.Client().NewSemaphore("l", 2, relock.AtLeast(time.Second)).Lock(t.Context()), relock.ErrInvalidOption)
		_, err := relock.New(x.Redis, relock.Defaults(relock.AtLeast(time.Second)))
		rig.WantIs(t, err, relock.ErrInvalidOption)
		h := x.Take(x.Lock("l", relock.AtLeast(366*24*time.Hour)))
		rig.End(t, h)
		rig.WantIs(t, x.Client().NewRWLock("l").Lock(t.Context()), relock.ErrKind)
		if removed, err := x.Eye.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Errorf("ForceUnlock: %v, %v", removed, err)
		}
	})
}
