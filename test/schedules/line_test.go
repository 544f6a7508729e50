package schedules_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when named owners stand in the process' line.
func TestF13aNamedOwnerDoesNotStandBehindAnonymousWaitersOfItsProcess(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p1, p2 := s.Actor(), s.Actor()
		outer := s.Take(p2.NewLock("l", relock.Owner("w")))
		s.Until(101 * time.Millisecond)
		g0 := s.Begin(p1.NewLock("l"))
		s.Until(203 * time.Millisecond)
		inner := s.BeginAs("w", p1.NewLock("l")).Holds() // as in the handler of a call that p2 makes
		g0.Waits()
		rig.End(t, inner)
		rig.End(t, outer)
		g0.Holds()
	})
}

// Fails when the grant to an owner does not wake its other requests.
func TestF13bGrantToAnOwnerServesAllItsRequests(t *testing.T) {
	for _, processes := range []int{1, 2} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			x, y, p := s.Actor(), s.Actor(), []*rig.Actor{s.Actor(), s.Actor()}
			held := s.Take(x.NewLock("l"))
			s.Until(101 * time.Millisecond)
			g1 := s.BeginAs("w", p[0].NewLock("l"))
			s.Until(203 * time.Millisecond)
			between := s.Begin(y.NewLock("l"))
			s.Until(305 * time.Millisecond)
			g2 := s.BeginAs("w", p[processes-1].NewLock("l"))
			rig.End(t, held)
			h1, h2 := g1.Holds(), g2.Holds() // g1 may be waiting for g2
			rig.End(t, h1)
			between.Waits()
			rig.End(t, h2)
			between.Holds()
		})
	}
}

// Fails when the place of a waiter that gives up is not handed to the next in line.
func TestF13dCancelledFrontHandsItsPlaceOn(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, p, b := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		front := s.Begin(p.NewLock("l"))
		s.Until(203 * time.Millisecond)
		other := s.Begin(b.NewLock("l"))
		s.Until(305 * time.Millisecond)
		second, third := s.Begin(p.NewLock("l")), s.Begin(p.NewLock("l"))
		before := p.Sent("release")
		front.Stop()
		<-front.Done
		s.Until(407 * time.Millisecond)
		second.Stop()
		<-second.Done
		if n := p.Sent("release") - before; n != 0 {
			t.Errorf("%d releases, want none while somebody of the process waits", n)
		}
		s.Until(509 * time.Millisecond)
		rig.End(t, held)
		rig.End(t, third.Holds())
		other.Holds()
	})
}

// Fails when the place of a waiter that gives up is not handed to the next in line.
func TestF13dPlaceIsKeptByANextInLineOfOtherTerms(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, p, b := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		front := s.Begin(p.NewLock("l"))
		s.Until(203 * time.Millisecond)
		other := s.Begin(b.NewLock("l"))
		s.Until(305 * time.Millisecond)
		next := s.Begin(p.NewLock("l", relock.TTL(time.Second), relock.NoWatchdog()))
		front.Stop()
		<-front.Done
		s.Until(407 * time.Millisecond)
		rig.End(t, held)
		got := next.Holds()
		if until := got.TrustedUntil(); until.After(s.Began.Add(1407 * time.Millisecond)) {
			t.Errorf("trusted for %v, want the terms of the next in line, 1 s", until.Sub(s.Began))
		}
		other.Waits()
		rig.End(t, got)
		other.Holds()
	})
}

// Fails when the place of a waiter that gives up is not handed to the next in line.
func TestF13dProcessOfShortTriesGetsToTheHead(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, p, b := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		var tries []*rig.Call
		for i := range 10 {
			// Terms differ, so that each has to ask anew.
			tries = append(tries, s.Begin(p.NewLock("l", relock.TTL(30*time.Second+time.Duration(i)*time.Second))))
		}
		s.Until(203 * time.Millisecond)
		other := s.Begin(b.NewLock("l"))
		for i, try := range tries[:9] {
			s.Until(time.Duration(3+i) * 101 * time.Millisecond)
			try.Stop()
			<-try.Done
		}
		s.Until(2 * time.Second)
		rig.End(t, held)
		rig.End(t, tries[9].Holds())
		other.Holds()
	})
}
