package contract_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A Quorum's token may be larger than the lock's own on a primary, whose counter is raised
// by a hold. Fails when a primary passes its grant on to another call of the process: that
// has the next of the lock's own tokens, which may be smaller than the Quorum's.
func TestQuorumPassesNothingOnWithinAProcess(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		holder := func() string { // on the first, where the calls of one process wait
			return p.all[0].Client(t).HGet(t.Context(), key.For("relock", "a").Hash, "holder").Val()
		}
		q, _ := p.process()
		before := take(t, p.lock("a"))
		held := make(chan *relock.QuorumHold)
		for range 2 {
			go func() {
				h, _ := q.NewLock("a").Acquire(t.Context())
				held <- h
			}()
			x.Until(x.Now() + time.Second)
		}
		rig.Must(t, before.Release())
		first := <-held
		of := holder()
		rig.Must(t, first.Release())
		h := <-held
		if holder() == of {
			t.Error("the next call holds by the grant of the one before")
		}
		rig.WantLater(t, first.Token(), h.Token())
		rig.Must(t, h.Release())
	})
}

// A queue of a fair lock that one process holds: the calls of two others, in order.
type queued struct {
	x     *rig.Lab
	a, b  *rig.Actor
	first *relock.Hold // of a third
	calls []*rig.Call
	order []int // in which they have come to hold
}

// wait has calls wait for the lock l, by turns of the processes: "aab" is two of a, then one of b.
func wait(x *rig.Lab, turns string, opts ...relock.LockOption) *queued {
	x.T.Helper()
	q := &queued{x: x, a: x.Actor(), b: x.Actor(), first: x.Take(x.Lock("l", relock.Fair()))}
	for _, who := range turns {
		c := q.a.Client
		if who == 'b' {
			c = q.b.Client
		}
		q.calls = append(q.calls, x.Begin(c.NewLock("l", append(opts, relock.Fair())...)))
		x.Until(x.Now() + 10*time.Millisecond)
	}
	return q
}

// next is the call that holds, which is the only one.
func (q *queued) next() *relock.Hold {
	q.x.T.Helper()
	var held *relock.Hold
	q.x.Until(q.x.Now() + 10*time.Millisecond)
	for i, c := range q.calls {
		if !c.Settled() || slices.Contains(q.order, i) || c.Err != nil {
			continue
		}
		if held != nil {
			q.x.T.Fatal("two hold")
		}
		held, q.order = c.Hold, append(q.order, i)
	}
	if held == nil {
		q.x.T.Fatalf("nobody holds after %v", q.order)
	}
	return held
}

// through unlocks one after the other, and asserts that they came in this order and left nothing.
func (q *queued) through(want ...int) {
	q.x.T.Helper()
	for h, last := q.first, q.first.Token(); ; last = h.Token() {
		rig.Must(q.x.T, h.Release())
		if len(q.order) == len(want) {
			break
		}
		h = q.next()
		rig.WantLater(q.x.T, last, h.Token())
	}
	if !slices.Equal(q.order, want) {
		q.x.T.Errorf("they held in the order %v, want %v", q.order, want)
	}
	q.x.Until(q.x.Now() + time.Second)
	rig.WantBare(q.x.T, q.x.Redis, "l")
	rig.WantGone(q.x.T, q.a.Client, q.b.Client)
}

// Fails when Redis says nothing of who stands right behind, when the process does not
// believe it, or when another process' call is passed by.
func TestFairPassesOnToThoseOfItsProcessWhoAreNext(t *testing.T) {
	for turns, releases := range map[string][2]int{"aaa": {1, 0}, "aabaa": {2, 1}, "abab": {2, 2}, "aaaaaaaaaaaaaaaaaab": {2, 1}} {
		t.Run(turns, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				q := wait(x, turns)
				before := [2]int{q.a.Sent("release"), q.b.Sent("release")}
				var order []int
				for i := range turns {
					order = append(order, i)
				}
				q.through(order...)
				if got := [2]int{q.a.Sent("release") - before[0], q.b.Sent("release") - before[1]}; got != releases {
					t.Errorf("the processes have sent %v releases, want %v: one for each run of at most 16", got, releases)
				}
			})
		})
	}
}

// Fails when a grant that comes of no release names nobody of those who are next.
func TestAFairLockThatIsFreedByForcePassesOnToThoseOfItsProcessWhoAreNext(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		q := wait(x, "aaa")
		before := q.a.Sent("release")
		if ended, err := x.Eye.NewLock("l", relock.Fair()).ForceUnlock(t.Context()); !ended || err != nil {
			t.Fatalf("%v, %v", ended, err)
		}
		q.first = q.next()
		q.through(0, 1, 2)
		if n := q.a.Sent("release") - before; n != 1 {
			t.Errorf("the process has sent %d releases, want one for the run", n)
		}
	})
}

// Fails when a call that has gone ends the run, or is given the lock.
func TestACallThatHasLeftARunIsPassedBy(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		q := wait(x, "aaa")
		rig.Must(t, q.first.Release())
		q.first = q.next()
		q.calls[1].Stop()
		x.Until(x.Now() + 10*time.Millisecond)
		rig.WantIs(t, q.calls[1].Err, context.Canceled)
		q.through(0, 2)
		if n := len(q.order); n != 2 {
			t.Errorf("%d have held", n)
		}
	})
}

// Fails when what a call was given in the moment in which it left goes to nobody.
func TestACallThatLeavesAsItIsGivenTheLockGivesItToTheNext(t *testing.T) {
	for range 10 {
		rig.Play(t, func(t *testing.T, x *rig.Lab) {
			q := wait(x, "aaa")
			rig.Must(t, q.first.Release())
			first := q.next()
			q.calls[1].Stop()
			rig.Must(t, first.Release()) // beside the call, which leaves
			x.Until(x.Now() + 10*time.Millisecond)
			if q.calls[1].Err == nil {
				rig.End(t, q.calls[1].Hold)
			}
			rig.End(t, q.calls[2].Holds())
			x.Until(x.Now() + time.Second)
			rig.WantBare(t, x.Redis, "l")
			rig.WantGone(t, q.a.Client)
		})
	}
}

// A heartbeat of each has gone unanswered: a copy may come late, and put the call back into
// the queue. Fails when a call is passed on to that Redis has not been told is over.
func TestACallInDoubtIsGivenTheLockByRedis(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		q := wait(x, "aaa")
		q.a.Fate("acquire", 1, redistest.SwallowReply)
		x.Until(x.Now() + 25*time.Second)
		sent := q.a.Sent("release")
		q.through(0, 1, 2)
		if n := q.a.Sent("release") - sent; n != 3 {
			t.Errorf("%d releases, want one for each", n)
		}
	})
}

// Fails when a hold follows on another that was asked for on other terms, or by somebody
// whom others may enter by name.
func TestARunEndsWhereTheTermsChange(t *testing.T) {
	for name, opt := range map[string]relock.LockOption{
		"lease": relock.TTL(time.Minute), "watchdog": relock.NoWatchdog(), "longest hold": relock.MaxHold(time.Hour), "owner": relock.Owner("me"),
	} {
		t.Run(name, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				q := wait(x, "a")
				q.calls = append(q.calls, x.Begin(q.a.NewLock("l", relock.Fair(), opt)))
				sent := q.a.Sent("release")
				q.through(0, 1)
				if n := q.a.Sent("release") - sent; n != 2 {
					t.Errorf("%d releases, want one for each", n)
				}
			})
		})
	}
}

// The one in the middle has asked on other terms. Fails when the run goes on behind it.
func TestARunPassesNobodyByWhereTheTermsChange(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		q := wait(x, "a")
		for _, ttl := range []time.Duration{time.Minute, 30 * time.Second} {
			q.calls = append(q.calls, x.Begin(q.a.NewLock("l", relock.Fair(), relock.TTL(ttl))))
			x.Until(x.Now() + 10*time.Millisecond)
		}
		q.through(0, 1, 2)
	})
}

// A hold in the middle of a run ends in another way than by its release. Fails when who
// held before it in the run stays in the queue, or who comes after it does not hold.
func TestARunThatIsCutShortLeavesNobodyBehind(t *testing.T) {
	ends := map[string]func(t *testing.T, q *queued, h *relock.Hold){
		"lost": func(t *testing.T, q *queued, h *relock.Hold) {
			_, err := q.x.Eye.NewLock("l", relock.Fair()).ForceUnlock(t.Context())
			rig.Must(t, err)
			q.x.Until(q.x.Now() + 10*time.Millisecond)
			rig.WantIs(t, h.Release(), relock.ErrLost)
		},
		"detached": func(t *testing.T, q *queued, h *relock.Hold) {
			ticket, err := h.Detach(t.Context(), time.Minute)
			rig.Must(t, err)
			q.x.Until(q.x.Now() + 10*time.Millisecond)
			got, err := q.b.Resume(t.Context(), ticket)
			rig.Must(t, err)
			rig.End(t, got)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				q := wait(x, "aaaba")
				rig.Must(t, q.first.Release())
				rig.Must(t, q.next().Release())
				h := q.next()
				end(t, q, h)
				q.first = q.next()
				if name == "lost" { // who may have held asks again, under its ticket
					q.through(0, 1, 3, 2, 4)
					return
				}
				q.through(0, 1, 2, 3, 4)
			})
		})
	}
}

// A client closes that holds in the middle of a run. Fails when who held before it in the run stays in the queue.
func TestARunWhoseClientClosesLeavesNobodyInTheQueue(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		q := wait(x, "aaaba")
		rig.Must(t, q.first.Release())
		rig.Must(t, q.next().Release())
		q.next()
		rig.Must(t, q.a.Close())
		rig.Queued(t, x.Eye.NewLock("l", relock.Fair()), 1)
	})
}

// Who held first in a run waits on a condition: the others of it hold, and it after them.
func TestARunGoesOnWhereItsHolderWaitsOnACondition(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		q := wait(x, "aba")
		l := q.a.NewLock("l", relock.Fair())
		waits := rig.Beside(func() error {
			if err := l.Lock(t.Context()); err != nil {
				return fmt.Errorf("lock: %w", err)
			}
			return l.NewCond("c").Wait(t.Context())
		})
		x.Until(x.Now() + 10*time.Millisecond)
		q.calls = append(q.calls, x.Begin(q.a.NewLock("l", relock.Fair())))
		x.Until(x.Now() + 10*time.Millisecond)
		for range 3 {
			rig.Must(t, q.first.Release())
			q.first = q.next()
		}
		rig.Must(t, q.first.Release()) // l holds behind it in the run, and waits
		h := q.next()
		rig.Must(t, h.Release())
		signals := x.Lock("l", relock.Fair())
		rig.Must(t, signals.Lock(t.Context()))
		rig.Must(t, signals.NewCond("c").Signal(t.Context()))
		rig.Must(t, signals.Unlock())
		rig.Must(t, <-waits)
		rig.Must(t, l.Unlock())
		rig.WantBare(t, x.Redis, "l")
		rig.WantGone(t, q.a.Client, q.b.Client)
	})
}

// The lease of a grant ends before its release arrives, and Redis has granted the lock to
// the next of the run since, who has had it. Fails when that grant is left to nobody.
func TestALateReleaseEndsWhatItsRunWasGrantedSince(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		r := rig.Raw{T: t, Redis: x.Redis, ID: rig.ID(x.Actor().Client)}
		ask := func(letter byte, ttl time.Duration) {
			r.Run("acquire", r.Request("fair", rig.NonceOf(letter), "~"+string(letter), "w", ttl, 1, 1, 0)...)
		}
		ask('1', 100*time.Millisecond)
		ask('2', time.Minute)
		virtual.Sleep(200 * time.Millisecond)
		ask('3', time.Minute) // settles: the second holds
		r.Release(rig.NonceOf('1'), "~1", 0, rig.NonceOf('2'))
		if got := x.Info(x.Lock("l", relock.Fair())).Holders; len(got) != 1 || got[0].Owner != "~3" {
			t.Errorf("%+v hold, want the third", got)
		}
	})
}
