package schedules_test

import (
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when the head is not told that the lock ends sooner than it knows.
func TestF14WaiterIsToldOfAHolderWithAShorterLease(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, c := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		short := s.Begin(b.NewLock("l", relock.TTL(2*time.Second)))
		s.Until(203 * time.Millisecond)
		waiter := s.Begin(c.NewLock("l")) // is told 30 s
		s.Until(305 * time.Millisecond)
		rig.End(t, held)
		old := short.Holds()
		b.Link.Hole()
		waiter.Returns()
		if waiter.At > 2500*time.Millisecond {
			t.Errorf("holds at %v, want when the dead holder's 2 s are over", waiter.At)
		}
		rig.NotTrusted(t, old)
	})
}

// Fails when force.lua leaves the queue as it is.
func TestF14WaiterIsToldOfAShorterLeaseAfterAForceUnlock(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, c := s.Actor(), s.Actor(), s.Actor()
		s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		short := s.Begin(b.NewLock("l", relock.TTL(2*time.Second)))
		s.Until(203 * time.Millisecond)
		waiter := s.Begin(c.NewLock("l"))
		s.Until(305 * time.Millisecond)
		a.Link.Hole() // it sends no release
		if removed, err := c.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", removed, err)
		}
		short.Holds()
		b.Link.Hole()
		waiter.Returns()
		if waiter.At > 2500*time.Millisecond {
			t.Errorf("holds at %v, want when the dead holder's 2 s are over", waiter.At)
		}
	})
}

// Fails when a release that leaves the lock held tells nobody.
func TestF14WaiterIsToldWhenTheLongerSessionOfAnOwnerEnds(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p1, p2, c := s.Actor(), s.Actor(), s.Actor()
		long := s.Take(p1.NewLock("l", relock.Owner("w")))
		s.Take(p2.NewLock("l", relock.Owner("w"), relock.TTL(2*time.Second)))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(c.NewLock("l"))
		s.Until(203 * time.Millisecond)
		p2.Link.Hole()
		rig.End(t, long)
		waiter.Returns()
		if waiter.At > 2500*time.Millisecond {
			t.Errorf("holds at %v, want when the dead session's 2 s are over", waiter.At)
		}
	})
}

// Fails when a waiter is not told until when the lock is held.
func TestF14WaiterLooksWhenADeadHoldersLeaseIsOver(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l", relock.TTL(2*time.Second)))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l"))
		a.Link.Hole()
		waiter.Returns()
		if waiter.At > 2250*time.Millisecond {
			t.Errorf("holds at %v, want when the dead holder's 2 s are over", waiter.At)
		}
		rig.NotTrusted(t, held)
	})
}

// Fails when releases are not sent again on a new connection.
func TestF16ReleaseThatAFailoverLostIsSentAgain(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		restore := s.Keep("l")
		rig.End(t, held)
		s.Until(203 * time.Millisecond)
		restore()
		if n := s.HoldsOf(b.NewLock("l")); n != 1 {
			t.Fatalf("redis has %d holds, want the one that came back", n)
		}
		waiter := s.Begin(b.NewLock("l"))
		s.Server.KillSubscribers()
		waiter.Returns()
		if waiter.At > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.At)
		}
	})
}

// Fails when an answer that shows an ended nonce has no consequence.
func TestF16HolderThatCameBackIsReleasedWhenItsProcessSeesIt(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		restore := s.Keep("l")
		rig.End(t, held)
		restore()
		s.Until(203 * time.Millisecond)
		again := s.Begin(a.NewLock("l"))
		again.Returns()
		if again.At > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s", again.At)
		}
	})
}

// Fails when a release is sent again for ever.
func TestF16ReleaseIsNotSentAgainAfterItsLease(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		rig.End(t, s.Take(a.NewLock("longer", relock.TTL(time.Minute))))
		rig.End(t, s.Take(a.NewLock("l")))
		s.Until(31 * time.Second)
		before := a.Sent("release")
		s.Server.KillSubscribers()
		s.Until(40 * time.Second)
		if n := a.Sent("release") - before; n != 1 {
			t.Errorf("%d releases were sent again, want one: the other's lease is over", n)
		}
	})
}

// Fails when only the session's first lease counts.
func TestF16ReleaseOfANestedLongerLeaseIsSentAgain(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		outer := s.Take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Second)))
		nested := s.Take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Minute)))
		s.Until(101 * time.Millisecond)
		restore := s.Keep("l")
		rig.End(t, nested)
		rig.End(t, outer)
		s.Until(3 * time.Second)
		restore()
		waiter := s.Begin(b.NewLock("l"))
		s.Server.KillSubscribers()
		waiter.Returns()
		if waiter.At > 8*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.At)
		}
	})
}

// Fails when only the session's first lease counts.
func TestF16ReleaseIsTriedUntilTheLongestLeaseEnds(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		outer := s.Take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Second)))
		nested := s.Take(a.NewLock("l", relock.Owner("w"), relock.TTL(10*time.Minute)))
		rig.End(t, nested)
		waiter := s.Begin(b.NewLock("l"))
		heal := a.Link.Cut()
		if err := outer.Release(); !errors.Is(err, relock.ErrUnconfirmed) {
			t.Errorf("Release: %v, want ErrUnconfirmed", err)
		}
		s.Until(time.Minute)
		heal()
		waiter.Returns()
		if waiter.At > 65*time.Second {
			t.Errorf("holds at %v, want soon after redis is reached again", waiter.At)
		}
	})
}
