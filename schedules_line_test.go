package relock_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// Fails when named owners stand in the process' line.
func TestF13aNamedOwnerDoesNotStandBehindAnonymousWaitersOfItsProcess(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		p1, p2 := s.actor(), s.actor()
		outer := s.take(p2.NewLock("l", relock.Owner("w")))
		s.until(101 * time.Millisecond)
		g0 := s.begin(p1.NewLock("l"))
		s.until(203 * time.Millisecond)
		inner := s.beginAs("w", p1.NewLock("l")).holds() // as in the handler of a call that p2 makes
		g0.waits()
		endHold(t, inner)
		endHold(t, outer)
		g0.holds()
	})
}

// Fails when the grant to an owner does not wake its other requests.
func TestF13bGrantToAnOwnerServesAllItsRequests(t *testing.T) {
	for _, processes := range []int{1, 2} {
		play(t, func(t *testing.T, s *scene) {
			x, y, p := s.actor(), s.actor(), []*actor{s.actor(), s.actor()}
			held := s.take(x.NewLock("l"))
			s.until(101 * time.Millisecond)
			g1 := s.beginAs("w", p[0].NewLock("l"))
			s.until(203 * time.Millisecond)
			between := s.begin(y.NewLock("l"))
			s.until(305 * time.Millisecond)
			g2 := s.beginAs("w", p[processes-1].NewLock("l"))
			endHold(t, held)
			h1, h2 := g1.holds(), g2.holds() // g1 may be waiting for g2
			endHold(t, h1)
			between.waits()
			endHold(t, h2)
			between.holds()
		})
	}
}

// Fails when the place of a waiter that gives up is not handed to the next in line.
func TestF13dCancelledFrontHandsItsPlaceOn(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, p, b := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		front := s.begin(p.NewLock("l"))
		s.until(203 * time.Millisecond)
		other := s.begin(b.NewLock("l"))
		s.until(305 * time.Millisecond)
		second, third := s.begin(p.NewLock("l")), s.begin(p.NewLock("l"))
		before := p.sent("release")
		front.stop()
		<-front.done
		s.until(407 * time.Millisecond)
		second.stop()
		<-second.done
		if n := p.sent("release") - before; n != 0 {
			t.Errorf("%d releases, want none while somebody of the process waits", n)
		}
		s.until(509 * time.Millisecond)
		endHold(t, held)
		endHold(t, third.holds())
		other.holds()
	})
}

// Fails when the ticket of a waiter that gives up is not handed to the next in line.
func TestF13dPlaceIsKeptByANextInLineOfOtherTerms(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, p, b := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		front := s.begin(p.NewLock("l"))
		s.until(203 * time.Millisecond)
		other := s.begin(b.NewLock("l"))
		s.until(305 * time.Millisecond)
		next := s.begin(p.NewLock("l", relock.TTL(time.Second), relock.NoWatchdog()))
		front.stop()
		<-front.done
		s.until(407 * time.Millisecond)
		endHold(t, held)
		got := next.holds()
		if until := got.TrustedUntil(); until.After(s.began.Add(1407 * time.Millisecond)) {
			t.Errorf("trusted for %v, want the terms of the next in line, 1 s", until.Sub(s.began))
		}
		other.waits()
		endHold(t, got)
		other.holds()
	})
}

// Fails when the ticket of a waiter that gives up is not handed to the next in line.
func TestF13dProcessOfShortTriesGetsToTheHead(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, p, b := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		var tries []*call
		for i := range 10 {
			// Terms differ, so that each has to ask anew.
			tries = append(tries, s.begin(p.NewLock("l", relock.TTL(30*time.Second+time.Duration(i)*time.Second))))
		}
		s.until(203 * time.Millisecond)
		other := s.begin(b.NewLock("l"))
		for i, try := range tries[:9] {
			s.until(time.Duration(3+i) * 101 * time.Millisecond)
			try.stop()
			<-try.done
		}
		s.until(2 * time.Second)
		endHold(t, held)
		endHold(t, tries[9].holds())
		other.holds()
	})
}
