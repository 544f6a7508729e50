package relock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// Fails when the head is not told that the lock ends sooner than it knows.
func TestF14WaiterIsToldOfAHolderWithAShorterLease(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		short := s.begin(b.NewLock("l", relock.TTL(2*time.Second)))
		s.until(203 * time.Millisecond)
		waiter := s.begin(c.NewLock("l")) // is told 30 s
		s.until(305 * time.Millisecond)
		endHold(t, held)
		old := short.holds()
		b.link.Hole()
		waiter.returns()
		if waiter.at > 2500*time.Millisecond {
			t.Errorf("holds at %v, want when the dead holder's 2 s are over", waiter.at)
		}
		notTrusted(t, old)
	})
}

// Fails when force.lua leaves the queue as it is.
func TestF14WaiterIsToldOfAShorterLeaseAfterAForceUnlock(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor(), s.actor(), s.actor()
		s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		short := s.begin(b.NewLock("l", relock.TTL(2*time.Second)))
		s.until(203 * time.Millisecond)
		waiter := s.begin(c.NewLock("l"))
		s.until(305 * time.Millisecond)
		if removed, err := c.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", removed, err)
		}
		short.holds()
		b.link.Hole()
		waiter.returns()
		if waiter.at > 2500*time.Millisecond {
			t.Errorf("holds at %v, want when the dead holder's 2 s are over", waiter.at)
		}
	})
}

// Fails when a release that leaves the lock held tells nobody.
func TestF14WaiterIsToldWhenTheLongerSessionOfAnOwnerEnds(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		p1, p2, c := s.actor(), s.actor(), s.actor()
		long := s.take(p1.NewLock("l", relock.Owner("w")))
		s.take(p2.NewLock("l", relock.Owner("w"), relock.TTL(2*time.Second)))
		s.until(101 * time.Millisecond)
		waiter := s.begin(c.NewLock("l"))
		s.until(203 * time.Millisecond)
		p2.link.Hole()
		endHold(t, long)
		waiter.returns()
		if waiter.at > 2500*time.Millisecond {
			t.Errorf("holds at %v, want when the dead session's 2 s are over", waiter.at)
		}
	})
}

// Fails when a waiter is not told until when the lock is held.
func TestF14WaiterLooksWhenADeadHoldersLeaseIsOver(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l", relock.TTL(2*time.Second)))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l"))
		a.link.Hole()
		waiter.returns()
		if waiter.at > 2250*time.Millisecond {
			t.Errorf("holds at %v, want when the dead holder's 2 s are over", waiter.at)
		}
		notTrusted(t, held)
	})
}

// Fails when releases are not sent again on a new connection.
func TestF16ReleaseThatAFailoverLostIsSentAgain(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		restore := s.keep("l")
		endHold(t, held)
		s.until(203 * time.Millisecond)
		restore()
		if n := s.holdsOf(b.NewLock("l")); n != 1 {
			t.Fatalf("redis has %d holds, want the one that came back", n)
		}
		waiter := s.begin(b.NewLock("l"))
		s.srv.KillSubscribers()
		waiter.returns()
		if waiter.at > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.at)
		}
	})
}

// Fails when an answer that shows an ended nonce has no consequence.
func TestF16HolderThatCameBackIsReleasedWhenItsProcessSeesIt(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		restore := s.keep("l")
		endHold(t, held)
		restore()
		s.until(203 * time.Millisecond)
		again := s.begin(a.NewLock("l"))
		again.returns()
		if again.at > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s", again.at)
		}
	})
}

// Fails when a release is sent again for ever.
func TestF16ReleaseIsNotSentAgainAfterItsLease(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		endHold(t, s.take(a.NewLock("longer", relock.TTL(time.Minute))))
		endHold(t, s.take(a.NewLock("l")))
		s.until(31 * time.Second)
		before := a.sent("release")
		s.srv.KillSubscribers()
		s.until(40 * time.Second)
		if n := a.sent("release") - before; n != 1 {
			t.Errorf("%d releases were sent again, want one: the other's lease is over", n)
		}
	})
}

// Fails when only the session's first lease counts.
func TestF16ReleaseOfANestedLongerLeaseIsSentAgain(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		outer := s.take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Second)))
		nested := s.take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Minute)))
		s.until(101 * time.Millisecond)
		restore := s.keep("l")
		endHold(t, nested)
		endHold(t, outer)
		s.until(3 * time.Second)
		restore()
		waiter := s.begin(b.NewLock("l"))
		s.srv.KillSubscribers()
		waiter.returns()
		if waiter.at > 8*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.at)
		}
	})
}

// Fails when only the session's first lease counts.
func TestF16ReleaseIsTriedUntilTheLongestLeaseEnds(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		outer := s.take(a.NewLock("l", relock.Owner("w"), relock.TTL(time.Second)))
		nested := s.take(a.NewLock("l", relock.Owner("w"), relock.TTL(10*time.Minute)))
		endHold(t, nested)
		waiter := s.begin(b.NewLock("l"))
		heal := a.link.Cut()
		if err := outer.Release(); !errors.Is(err, relock.ErrUnconfirmed) {
			t.Errorf("Release: %v, want ErrUnconfirmed", err)
		}
		s.until(time.Minute)
		heal()
		waiter.returns()
		if waiter.at > 65*time.Second {
			t.Errorf("holds at %v, want soon after redis is reached again", waiter.at)
		}
	})
}
