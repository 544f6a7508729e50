package real_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// An act is a scenario that a fault befalls. It says after each of its steps
// what Redis must have by then.
type act func(t *testing.T, s *rig.Lab, link *redistest.Link, step func(what, want string))

// nesting locks three deep and unlocks in another order.
func nesting(t *testing.T, s *rig.Lab, link *redistest.Link, step func(what, want string)) {
	c := s.Through(link)
	ctx := relock.WithOwner(t.Context(), "a")
	l, other := c.NewLock("job"), c.NewLock("job")
	rig.Must(t, l.Lock(ctx))
	step("lock", "a x1 waiting 0")
	rig.Must(t, other.Lock(ctx))
	step("second lock", "a x2 waiting 0")
	rig.Must(t, l.Lock(ctx))
	step("third lock", "a x3 waiting 0")
	rig.Must(t, other.Unlock())
	step("unlock", "a x2 waiting 0")
	rig.Must(t, l.Lock(ctx))
	step("lock again", "a x3 waiting 0")
	rig.Must(t, l.Unlock())
	rig.Must(t, l.Unlock())
	step("two unlocks", "a x1 waiting 0")
	rig.Must(t, l.Unlock())
	step("last unlock", "free waiting 0")
	virtual.Sleep(time.Minute) // what is still tried in the background
	rig.WantGone(t, c)
}

// handingOver passes the lock to a waiter of another client, and on to a third.
func handingOver(t *testing.T, s *rig.Lab, link *redistest.Link, step func(what, want string)) {
	clients := []*relock.Client{s.Through(link), s.Through(link), s.Through(link)}
	var locks []*relock.Lock
	for i, c := range clients {
		locks = append(locks, c.NewLock("job", relock.Owner(string(rune('a'+i)))))
	}
	rig.Must(t, locks[0].Lock(t.Context()))
	step("a locks", "a x1 waiting 0")
	b := rig.Beside(func() error { return locks[1].Lock(t.Context()) })
	virtual.Sleep(7 * time.Second)
	step("b waits", "a x1 waiting 1")
	c := rig.Beside(func() error { return locks[2].Lock(t.Context()) })
	virtual.Sleep(7 * time.Second)
	step("c waits", "a x1 waiting 2")
	rig.Must(t, locks[0].Lock(t.Context()))
	step("a again", "a x2 waiting 2")
	rig.Must(t, locks[0].Unlock())
	step("a unlocks one", "a x1 waiting 2")
	rig.Must(t, locks[0].Unlock())
	rig.Must(t, <-b)
	step("a unlocks", "b x1 waiting 1")
	rig.Must(t, locks[1].Lock(t.Context()))
	step("b again", "b x2 waiting 1")
	c.Pending(t, "c's Lock")
	rig.Must(t, locks[1].Unlock())
	rig.Must(t, locks[1].Unlock())
	rig.Must(t, <-c)
	step("b unlocks", "c x1 waiting 0")
	rig.Must(t, locks[2].Unlock())
	step("c unlocks", "free waiting 0")
	virtual.Sleep(time.Minute)
	rig.WantGone(t, clients...)
}

// perform plays an act in which the n-th command that runs the script meets a
// fate, and returns how many there were.
func perform(t *testing.T, play act, name string, nth int, fate redistest.Verdict) (seen int) {
	rig.Run(t, func(t *testing.T, s *rig.Lab) {
		link := redistest.NewLink(t, s.Server.Dial)
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.ScriptOf(cmd) != name {
				return redistest.Pass
			}
			if seen++; seen == nth {
				return fate
			}
			return redistest.Pass
		})
		play(t, s, link, func(what, want string) {
			t.Helper()
			rig.WantState(t, s.Eye.NewLock("job"), what, want)
		})
		rig.WantBare(t, s.Redis, "job")
		link.OnCommand(nil)
	})
	return seen
}

// TestCountsAreExactWhateverReplyIsLost loses the reply of each command once,
// the connection with it or not.
func TestCountsAreExactWhateverReplyIsLost(t *testing.T) {
	plays := map[string]act{"nesting": nesting, "handing over": handingOver}
	fates := map[string]redistest.Verdict{
		"swallowed": redistest.SwallowReply, "cut": redistest.CutReply,
		"lost": redistest.Lose, "cut before": redistest.CutBefore,
	}
	for playName, play := range plays {
		for _, script := range []string{"acquire", "poll", "hold", "release"} {
			n := perform(t, play, script, 0, redistest.Pass)
			if n == 0 && (script != "poll" || playName != "nesting") {
				t.Errorf("%s runs no %s", playName, script)
			}
			for nth := 1; nth <= n; nth++ {
				for fateName, fate := range fates {
					t.Run(fmt.Sprint(playName, "/", script, nth, " ", fateName), func(t *testing.T) {
						perform(t, play, script, nth, fate)
					})
				}
			}
		}
	}
}

// TestContextOfANestedHoldCanDescendFromTheOuterHold: Hold.Context asked its
// parent, a context of a hold of the same lock, while it had the mutex that the
// answer needs.
func TestContextOfANestedHoldCanDescendFromTheOuterHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, s *rig.Lab) {
		l := s.Eye.NewLock("job")
		err := l.Do(relock.WithOwner(t.Context(), "a"), func(ctx context.Context) error {
			return l.Do(ctx, func(ctx context.Context) error {
				rig.WantState(t, l, "nested", "a x2 waiting 0")
				return ctx.Err()
			})
		})
		rig.Must(t, err)
	})
}

// TestReentryJoinsTheSessionThatItsProcessHas: no session was ever found there,
// so that each re-entry was a session of its own, which a Shutdown refused.
func TestReentryJoinsTheSessionThatItsProcessHas(t *testing.T) {
	rig.Run(t, func(t *testing.T, s *rig.Lab) {
		c := s.Through(redistest.NewLink(t, s.Server.Dial))
		l := c.NewLock("job", relock.Owner("a"))
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, c.NewLock("job").Lock(relock.WithOwner(t.Context(), "a")))
		if n := rig.Sessions(c); n != 1 {
			t.Errorf("two holds of one owner are %d sessions, want 1", n)
		}
		rig.WantState(t, l, "re-entered", "a x2 waiting 0")
		closing := rig.Beside(func() error { return c.Shutdown(t.Context()) })
		closing.Pending(t, "Shutdown")
		rig.Must(t, l.Lock(t.Context()))
		rig.WantState(t, s.Eye.NewLock("job"), "re-entered while closing", "a x3 waiting 0")
		rig.Must(t, c.Close())
		rig.Must(t, <-closing)
	})
}
