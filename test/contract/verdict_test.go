package contract_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Two holds of an owner are unlocked. The first unlock's statement goes unanswered, and the
// second, which was waiting for that, ends the session and sends its release: the first had
// nothing left to say when it came to its next try, and returned nil.

// twoHolds holds the lock twice for one owner.
func twoHolds(t *testing.T, x *rig.Lab, c *relock.Client) *relock.Lock {
	t.Helper()
	l := c.NewLock("a")
	rig.Must(t, l.Lock(x.By("me")))
	rig.Must(t, l.Lock(x.By("me")))
	return l
}

// unlocks begins two unlocks, one after the other.
func unlocks(l *relock.Lock) (first, second rig.Going) {
	first = rig.Beside(l.Unlock)
	synctest.Wait()
	second = rig.Beside(l.Unlock)
	synctest.Wait()
	return first, second
}

// loseNext has the next statement of holds lost.
func loseNext(link *redistest.Link) {
	lost := false
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if !lost && rig.Runs(cmd, "hold") {
			lost = true
			return redistest.Lose
		}
		return redistest.Pass
	})
}

// Fails without the fix: an unlock returns what comes of the release that ends its session.
func TestTwoUnlocksAreUnconfirmedWhileRedisIsSilent(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := twoHolds(t, x, c)
		defer link.Hole()()
		first, second := unlocks(l)
		virtual.Sleep(5*time.Second - 1)
		first.Pending(t, "the first unlock")
		second.Pending(t, "the second unlock")
		virtual.Sleep(1)
		rig.WantIs(t, rig.Returned(t, first), relock.ErrUnconfirmed)
		rig.WantIs(t, rig.Returned(t, second), relock.ErrUnconfirmed)
	})
}

// Fails without the fix: an unlock waits for the answer to the release that ends its session.
func TestTwoUnlocksAreConfirmedByOneRelease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := twoHolds(t, x, c)
		heal := link.Hole()
		first, second := unlocks(l)
		virtual.Sleep(3 * time.Second)
		first.Pending(t, "the first unlock")
		second.Pending(t, "the second unlock")
		heal()
		rig.Must(t, <-first)
		rig.Must(t, <-second)
		x.Frees("a")
	})
}

// Redis has lost its data, and somebody else holds.
// Fails without the fix: what the release finds is told to both.
func TestTwoUnlocksAfterALossAreBothLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := twoHolds(t, x, c)
		loseNext(link)
		ctx, cancel := context.WithTimeout(x.By("me"), 100*time.Millisecond)
		defer cancel()
		third := rig.Beside(func() error { return l.Lock(ctx) }) // it has the turn until its time has passed
		synctest.Wait()
		x.Server.FlushAll()
		rig.Must(t, x.Lock("a").Lock(t.Context()))
		link.Latency(time.Millisecond) // so that the first looks before the release of the second is answered
		first, second := unlocks(l)
		rig.WantIs(t, <-third, context.DeadlineExceeded)
		rig.WantIs(t, <-first, relock.ErrLost)
		rig.WantIs(t, <-second, relock.ErrLost)
	})
}

// Fails without the fix: a release that is refused confirms no other unlock.
func TestTwoUnlocksAreUnconfirmedByARefusedRelease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := twoHolds(t, x, c)
		loseNext(link)
		first, second := unlocks(l)
		x.Server.FailNext(1_000_000, "NOPERM this user may not", func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
		for _, unlock := range []rig.Going{second, first} {
			err := <-unlock
			rig.WantIs(t, err, relock.ErrUnconfirmed)
			if !mentions(err, "NOPERM") {
				t.Errorf("a refused release: %v", err)
			}
		}
	})
}

// Fails without the fix: who ends with the client has not been confirmed.
func TestTwoUnlocksAreUnconfirmedWhenTheClientCloses(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := twoHolds(t, x, c)
		defer link.Hole()()
		first, second := unlocks(l)
		virtual.Sleep(3500 * time.Millisecond)
		rig.Must(t, c.Close())
		rig.WantIs(t, <-first, relock.ErrUnconfirmed, relock.ErrClosed)
		rig.WantIs(t, <-second, relock.ErrUnconfirmed)
	})
}

// An unlock's time has passed, and the client goes on telling Redis: it ends the session,
// whose last holds have been unlocked meanwhile, and nobody waits for that release.
// Fails without the fix: what comes of such a release is told as well.
func TestUnlocksAreToldOfAReleaseThatNobodyWaitsFor(t *testing.T) {
	for _, answered := range []bool{false, true} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := x.Linked()
			l := twoHolds(t, x, c)
			rig.Must(t, l.Lock(x.By("me")))
			answer := make(chan struct{})
			link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				switch {
				case rig.Runs(cmd, "hold"):
					return redistest.Lose
				case rig.Runs(cmd, "release"):
					return redistest.Hold(answer)
				}
				return redistest.Pass
			})
			rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
			virtual.Sleep(100 * time.Millisecond)
			second := rig.Beside(l.Unlock) // it has the turn from 7 s to 9 s
			virtual.Sleep(3 * time.Second)
			third := rig.Beside(l.Unlock) // who comes before it in line is nobody's
			virtual.Sleep(1500 * time.Millisecond)
			second.Pending(t, "the second unlock")
			third.Pending(t, "the third unlock")
			if answered {
				close(answer)
				rig.Must(t, rig.Returned(t, second))
				rig.Must(t, rig.Returned(t, third))
				x.Frees("a")
				return
			}
			defer close(answer)
			rig.WantIs(t, <-second, relock.ErrUnconfirmed)
			rig.WantIs(t, <-third, relock.ErrUnconfirmed)
		})
	}
}

// The last hold is handed over while the unlock of another one has yet to be answered.
// Fails without the fix: what comes of the handover is told to the unlock.
func TestUnlockBesideADetachReturnsWhatComesOfIt(t *testing.T) {
	for _, c := range []struct {
		what              string
		within            time.Duration // of the handover: what it has not done by then, it undoes
		befalls           func(x *rig.Lab, heal func())
		detached, returns error
	}{
		{"silence", 6 * time.Second, func(*rig.Lab, func()) {}, relock.ErrUnconfirmed, relock.ErrUnconfirmed},
		{"a loss", 6 * time.Second, func(x *rig.Lab, heal func()) { x.Server.FlushAll(); heal() }, relock.ErrLost, relock.ErrLost},
		{"an answer", 6 * time.Second, func(_ *rig.Lab, heal func()) { heal() }, nil, nil},
		{"an end too soon", 2 * time.Second, func(_ *rig.Lab, heal func()) { heal() }, relock.ErrUnconfirmed, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				client, link := x.Linked()
				l := client.NewLock("a", relock.Owner("me"))
				outer, inner := acquire(t, l, t.Context()), acquire(t, l, t.Context())
				heal := link.Hole()
				defer heal()
				unlock := rig.Beside(inner.Release)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), c.within)
				defer cancel()
				detach := rig.Beside(func() error { _, err := outer.Detach(ctx, time.Minute); return err })
				virtual.Sleep(3 * time.Second)
				unlock.Pending(t, "the unlock")
				c.befalls(x, heal)
				if err := <-unlock; !errors.Is(err, c.returns) {
					t.Errorf("the unlock: %v, want %v", err, c.returns)
				}
				if err := <-detach; !errors.Is(err, c.detached) {
					t.Errorf("the handover: %v, want %v", err, c.detached)
				}
			})
		})
	}
}
