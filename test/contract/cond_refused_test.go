package contract_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// refuse has the server refuse a script from now on.
func refuse(x *rig.Lab, script string) {
	x.Server.FailNext(1_000_000, "NOPERM this user may not", func(args []string) bool { return rig.ScriptSent(args) == script })
}

func TestASignalOfALockThatRedisHasLostEndsTheHold(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		h := x.Take(l)
		x.Redis.FlushAll(t.Context())
		rig.WantIs(t, l.NewCond("c").Signal(h.Context(t.Context())), relock.ErrLost)
		rig.WantIs(t, h.Err(), relock.ErrLost)
	})
}

func TestAWaitOfALockThatRedisHasLostIsNoWait(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		h := x.Take(l)
		x.Redis.FlushAll(t.Context())
		s := x.Sleeps(h.Context(t.Context()), l.NewCond("c"), 0)
		if !rig.IsShut(s.Done) {
			t.Fatal("it waits")
		}
		rig.WantIs(t, s.Err, relock.ErrLost)
		rig.WantIs(t, h.Err(), relock.ErrLost)
	})
}

// Redis has executed the wait, so another process may hold the lock. Its answer is lost, and the copy after it is refused.
func TestAWaitThatRedisMayHaveExecutedAndThenRefusesLosesItsHolds(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a := x.Actor()
		a.Fate("await", 1, redistest.CutReply)
		l := a.NewLock("l")
		h := x.Take(l)
		waits := rig.Beside(func() error { return l.NewCond("c").Wait(h.Context(t.Context())) })
		refuse(x, "await")
		rig.WantIs(t, <-waits, relock.ErrLost)
		rig.WantIs(t, h.Err(), relock.ErrLost)
	})
}

// Redis has executed nothing, and the lease has run out meanwhile.
func TestAWaitThatRedisRefusesUntilItsLeaseHasEndedIsLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l", relock.TTL(3*time.Second))
		h := x.Take(l)
		x.Server.FailNext(1_000_000, "LOADING Redis is loading the dataset in memory", func(args []string) bool { return rig.ScriptSent(args) == "await" })
		ctx, cancel := context.WithTimeout(h.Context(t.Context()), 5*time.Second)
		defer cancel()
		rig.WantIs(t, l.NewCond("c").Wait(ctx), relock.ErrLost)
		rig.WantIs(t, h.Err(), relock.ErrLost)
	})
}

// A waiter that was woken waits for the lock without a bound, also while Redis is silent for longer than a lease.
func TestAWokenWaiterOutlastsASilenceOfRedis(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		s := p[0].sleeps(x)
		rig.Must(t, p[1].l.Lock(t.Context()))
		x.Server.KillSubscribers() // a signal may have been lost, so that wakes it
		virtual.Sleep(3 * time.Second)
		s.Waits()
		heal := p[0].Link.Hole()
		virtual.Sleep(2 * time.Minute)
		s.Waits()
		heal()
		rig.Must(t, p[1].l.Unlock())
		s.Woken()
		rig.Must(t, p[0].l.Unlock())
	})
}

// Redis would let the waiter wait for a signal for ever.
func TestAWaiterThatRedisDoesNotLetGoIsLost(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		rig.Must(t, l.Lock(t.Context()))
		s := x.Sleeps(t.Context(), l.NewCond("c"), 10*time.Second)
		refuse(x, "abandon")
		s.Ended(relock.ErrLost)
		wantSays(t, "the wait", s.Err, "NOPERM")
	})
}

// Redis has lost the waiter, and no heartbeat is due for long. The end of the wait finds that out, and has the lock.
func TestAWaiterThatRedisHasForgottenHasTheLockAsItsTimeEnds(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		rig.Must(t, l.Lock(t.Context()))
		began := x.Now()
		s := x.Sleeps(t.Context(), l.NewCond("c"), 12*time.Second)
		virtual.Sleep(11 * time.Second) // a heartbeat has been
		x.Redis.FlushAll(t.Context())
		s.Woken()
		if took := x.Now() - began; took > 13*time.Second {
			t.Errorf("it has the lock after %v, want 12s", took)
		}
	})
}

// A condition is its lock's, whatever else the caller holds.
func TestASignalUnderAHoldOfAnotherLockIsOfItsOwn(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		s := p[0].sleeps(x)
		rig.Must(t, p[1].l.Lock(t.Context()))
		other := acquire(t, p[1].NewLock("other"), t.Context())
		rig.Must(t, p[1].c.Signal(other.Context(t.Context())))
		rig.Must(t, p[1].l.Unlock())
		s.Woken()
	})
}
