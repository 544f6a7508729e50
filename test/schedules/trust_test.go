package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when acquire.lua answers a request that holds already with its full TTL.
func TestF03aAcquireSentAgainIsTrustedNoLongerThanItsLease(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		a.Fate("acquire", 1, redistest.SwallowReply)
		first := s.Begin(a.NewLock("l"))
		held := first.Returns()
		a.Link.Hole() // no renewal
		if first.At < time.Second {
			t.Fatalf("held at %v, want the first reply to be lost", first.At)
		}
		if until := held.TrustedUntil(); !until.Before(s.Began.Add(30 * time.Second)) {
			t.Errorf("trusted for %v, want less than the 30 s from the first copy", until.Sub(s.Began))
		}
		waiter := s.Begin(b.NewLock("l"))
		rig.End(t, waiter.Returns())
		rig.NotTrusted(t, held)
	})
}

// Fails when hold.lua sets a session's deadline to an earlier one.
func TestF03bNestedShorterLeaseShortensNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		outer := s.Take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Minute), relock.NoWatchdog()))
		waiter := s.Begin(b.NewLock("l"))
		s.Until(101 * time.Millisecond)
		s.Take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Second), relock.NoWatchdog()))
		waiter.Returns()
		rig.NotTrusted(t, outer)
		if waiter.At < 59*time.Second {
			t.Errorf("the next process holds after %v, want the trust in the outer lease of 1 min to pass", waiter.At)
		}
	})
}

// Fails when a grant is trusted from when its message was read.
func TestF03cGrantReadLateIsTrustedFromTheLastHeartbeat(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		s.Server.StepClock(8 * time.Second) // the server's time says nothing here
		a, b, c := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(103 * time.Millisecond)
		queued := s.Begin(b.NewLock("l"))
		s.Until(205 * time.Millisecond)
		next := s.Begin(c.NewLock("l"))
		s.Until(2 * time.Second)
		b.Link.Latency(5 * time.Second)
		rig.End(t, held)
		s.Until(7500 * time.Millisecond)
		late := queued.Holds()
		if until := late.TrustedUntil(); !until.Before(s.Began.Add(103*time.Millisecond + 30*time.Second)) {
			t.Errorf("trusted for %v, want less than 30 s from the request at 103 ms", until.Sub(s.Began))
		}
		b.Link.Cut()
		next.Returns()
		rig.NotTrusted(t, late)
	})
}

// Fails when Redis' word that it has no such hold is not a loss.
func TestF03dHoldThatAServerWithALaterClockEndedIsLostAtTheNextRenewal(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, c := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(5 * time.Second)
		s.Server.JumpClock(40 * time.Second) // as when a replica is promoted whose clock is ahead
		s.Until(6 * time.Second)
		next := s.Take(c.NewLock("l"))
		if next.Token() <= held.Token() {
			t.Errorf("token %d after %d", next.Token(), held.Token())
		}
		s.Until(10500 * time.Millisecond) // a renewal is due every 10 s
		if err := held.Err(); !errors.Is(err, relock.ErrLost) {
			t.Errorf("error %v after the renewal, want ErrLost", err)
		}
		if err := next.Err(); err != nil {
			t.Error(err)
		}
	})
}

// Fails when a lease that looks longer than it was asked for, since the server's
// clock was set back, is trusted for longer: the clock may be put right.
func TestF03dTrustDoesNotOutliveAClockThatStepsBackAndReturns(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, c := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(5 * time.Second)
		s.Server.StepClock(-time.Hour)
		s.Until(11 * time.Second) // renewed at 10 s
		if left := time.Until(held.TrustedUntil()); left > 30*time.Second {
			t.Errorf("trusted for another %v of a lease of 30 s", left)
		}
		a.Link.Cut()
		s.Server.StepClock(time.Hour) // the lease is that of the acquire again: it ends at 30 s
		s.Until(40 * time.Second)
		next := s.Take(c.NewLock("l"))
		rig.NotTrusted(t, held)
		rig.End(t, next)
	})
}

// Fails when hold.lua renews a lease that has passed.
func TestF03dLeaseThatHasPassedIsNotRevived(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(5 * time.Second)
		s.Server.JumpClock(40 * time.Second)
		s.Until(10500 * time.Millisecond)
		if err := held.Err(); !errors.Is(err, relock.ErrLost) {
			t.Errorf("error %v, want ErrLost: anybody could have had the lock since", err)
		}
		s.Free(a.NewLock("l"))
	})
}

// Fails when renew.lua renews a lease that has passed.
func TestF03dLeasesThatHavePassedAreNotRevivedTogether(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		holds := takeMany(s, a, 20)
		s.Until(5 * time.Second)
		s.Server.JumpClock(40 * time.Second)
		s.Until(10500 * time.Millisecond)
		for _, h := range holds {
			if err := h.Err(); !errors.Is(err, relock.ErrLost) {
				t.Fatalf("%s: error %v, want ErrLost: anybody could have had the lock since", h.Name(), err)
			}
		}
	})
}

// Fails when nobody asks what has become of a hold that was not renewed with the others.
func TestF03dOneOfManyHoldsThatIsGoneIsLostAlone(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		holds := takeMany(s, a, 20)
		s.Until(5 * time.Second)
		s.Server.Direct().Del(key.For("relock", holds[7].Name()).Hash)
		s.Until(10500 * time.Millisecond)
		for i, h := range holds {
			switch err := h.Err(); {
			case i == 7 && !errors.Is(err, relock.ErrLost):
				t.Errorf("error %v of the hold that is gone, want ErrLost", err)
			case i != 7 && err != nil:
				t.Error(err)
			case i != 7 && time.Until(h.TrustedUntil()) < 25*time.Second:
				t.Errorf("%s was not renewed", h.Name())
			}
		}
	})
}

// takeMany acquires so many locks, which are then renewed together.
func takeMany(s *rig.Lab, a *rig.Actor, n int) (holds []*relock.Hold) {
	for i := range n {
		holds = append(holds, s.Take(a.NewLock(fmt.Sprint("l", i))))
	}
	return holds
}

// Fails when nothing is taken off a lease before it is trusted.
func TestF03dTrustEndsBeforeTheLeaseOnAClockThatIsOnePercentFast(t *testing.T) {
	for _, ttl := range []time.Duration{100 * time.Millisecond, 30 * time.Second, 24 * time.Hour} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			a := s.Actor()
			var held *relock.Hold
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			held, err := a.NewLock("l", relock.TTL(ttl), relock.NoWatchdog()).Acquire(ctx)
			rig.Must(t, err)
			if least := s.Began.Add(ttl - ttl/100 - time.Millisecond); !held.TrustedUntil().Before(least) {
				t.Errorf("of %v trusted for %v, want less than %v", ttl, held.TrustedUntil().Sub(s.Began), least.Sub(s.Began))
			}
		})
	}
}
