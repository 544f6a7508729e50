package relock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
)

// Fails when acquire.lua answers a request that holds already with its full TTL.
func TestF03aAcquireSentAgainIsTrustedNoLongerThanItsLease(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		a.fate("acquire", 1, redistest.SwallowReply)
		first := s.begin(a.NewLock("l"))
		held := first.returns()
		a.link.Hole() // no renewal
		if first.at < time.Second {
			t.Fatalf("held at %v, want the first reply to be lost", first.at)
		}
		if until := held.TrustedUntil(); !until.Before(s.began.Add(30 * time.Second)) {
			t.Errorf("trusted for %v, want less than the 30 s from the first copy", until.Sub(s.began))
		}
		waiter := s.begin(b.NewLock("l"))
		endHold(t, waiter.returns())
		notTrusted(t, held)
	})
}

// Fails when hold.lua sets a session's deadline to an earlier one.
func TestF03bNestedShorterLeaseShortensNothing(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		outer := s.take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Minute), relock.NoWatchdog()))
		waiter := s.begin(b.NewLock("l"))
		s.until(101 * time.Millisecond)
		s.take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Second), relock.NoWatchdog()))
		waiter.returns()
		notTrusted(t, outer)
		if waiter.at < 59*time.Second {
			t.Errorf("the next process holds after %v, want the trust in the outer lease of 1 min to pass", waiter.at)
		}
	})
}

// Fails when a waiter sets the queue's TTL to an earlier end.
func TestF03bWaiterWithAShortLeaseLeavesTheOthersInTheQueue(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		long := []relock.Option{relock.TokenKeep(time.Minute), relock.Defaults(relock.TTL(24 * time.Hour))}
		a, b, c := s.actor(long...), s.actor(long...), s.actor(relock.TokenKeep(time.Minute))
		held := s.take(a.NewLock("l"))
		waiter := s.begin(b.NewLock("l"))
		s.until(101 * time.Millisecond)
		if ok, err := c.NewLock("l", relock.TTL(100*time.Millisecond)).TryLock(t.Context(), 50*time.Millisecond); ok || err != nil {
			t.Fatalf("TryLock: %v, %v", ok, err)
		}
		s.until(3 * time.Minute) // nothing refreshes the queue meanwhile
		if !s.srv.Direct().Exists(key.For("relock", "l").Queue) {
			t.Error("the queue is gone")
		}
		endHold(t, held)
		waiter.holds()
	})
}

// Fails when a grant is trusted from when its message was read.
func TestF03cGrantReadLateIsTrustedFromTheLastHeartbeat(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.srv.StepClock(8 * time.Second) // the server's time says nothing here
		a, b, c := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(103 * time.Millisecond)
		queued := s.begin(b.NewLock("l"))
		s.until(205 * time.Millisecond)
		next := s.begin(c.NewLock("l"))
		s.until(2 * time.Second)
		b.link.Latency(5 * time.Second)
		endHold(t, held)
		s.until(7500 * time.Millisecond)
		late := queued.holds()
		if until := late.TrustedUntil(); !until.Before(s.began.Add(103*time.Millisecond + 30*time.Second)) {
			t.Errorf("trusted for %v, want less than 30 s from the request at 103 ms", until.Sub(s.began))
		}
		b.link.Cut()
		next.returns()
		notTrusted(t, late)
	})
}

// Fails when Redis' word that it has no such hold is not a loss.
func TestF03dHoldThatAServerWithALaterClockEndedIsLostAtTheNextRenewal(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, c := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(5 * time.Second)
		s.srv.JumpClock(40 * time.Second) // as when a replica is promoted whose clock is ahead
		s.until(6 * time.Second)
		next := s.take(c.NewLock("l"))
		if next.Token() <= held.Token() {
			t.Errorf("token %d after %d", next.Token(), held.Token())
		}
		s.until(10500 * time.Millisecond) // a renewal is due every 10 s
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
	play(t, func(t *testing.T, s *scene) {
		a, c := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(5 * time.Second)
		s.srv.StepClock(-time.Hour)
		s.until(11 * time.Second) // renewed at 10 s
		if left := time.Until(held.TrustedUntil()); left > 30*time.Second {
			t.Errorf("trusted for another %v of a lease of 30 s", left)
		}
		a.link.Cut()
		s.srv.StepClock(time.Hour) // the lease is that of the acquire again: it ends at 30 s
		s.until(40 * time.Second)
		next := s.take(c.NewLock("l"))
		notTrusted(t, held)
		endHold(t, next)
	})
}

// Fails when hold.lua renews a lease that has passed.
func TestF03dLeaseThatHasPassedIsNotRevived(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		held := s.take(a.NewLock("l"))
		s.until(5 * time.Second)
		s.srv.JumpClock(40 * time.Second)
		s.until(10500 * time.Millisecond)
		if err := held.Err(); !errors.Is(err, relock.ErrLost) {
			t.Errorf("error %v, want ErrLost: anybody could have had the lock since", err)
		}
		s.free(a.NewLock("l"))
	})
}

// Fails when renew.lua renews a lease that has passed.
func TestF03dLeasesThatHavePassedAreNotRevivedTogether(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		holds := s.takeMany(a, 20)
		s.until(5 * time.Second)
		s.srv.JumpClock(40 * time.Second)
		s.until(10500 * time.Millisecond)
		for _, h := range holds {
			if err := h.Err(); !errors.Is(err, relock.ErrLost) {
				t.Fatalf("%s: error %v, want ErrLost: anybody could have had the lock since", h.Name(), err)
			}
		}
	})
}

// Fails when nobody asks what has become of a hold that was not renewed with the others.
func TestF03dOneOfManyHoldsThatIsGoneIsLostAlone(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		holds := s.takeMany(a, 20)
		s.until(5 * time.Second)
		s.srv.Direct().Del(key.For("relock", holds[7].Name()).Hash)
		s.until(10500 * time.Millisecond)
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
func (s *scene) takeMany(a *actor, n int) (holds []*relock.Hold) {
	for i := range n {
		holds = append(holds, s.take(a.NewLock(fmt.Sprint("l", i))))
	}
	return holds
}

// Fails when nothing is taken off a lease before it is trusted.
func TestF03dTrustEndsBeforeTheLeaseOnAClockThatIsOnePercentFast(t *testing.T) {
	for _, ttl := range []time.Duration{100 * time.Millisecond, 30 * time.Second, 24 * time.Hour} {
		play(t, func(t *testing.T, s *scene) {
			a := s.actor()
			var held *relock.Hold
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			held, err := a.NewLock("l", relock.TTL(ttl), relock.NoWatchdog()).Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if least := s.began.Add(ttl - ttl/100 - time.Millisecond); !held.TrustedUntil().Before(least) {
				t.Errorf("of %v trusted for %v, want less than %v", ttl, held.TrustedUntil().Sub(s.began), least.Sub(s.began))
			}
		})
	}
}
