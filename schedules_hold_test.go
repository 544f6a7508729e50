package relock_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// Fails when acquire.lua takes the process for the holder.
func TestF01AcquireThatOvertakesTheReleaseOfItsOwnProcessWaits(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		p, b := s.actor(), s.actor()
		lock, other := p.NewLock("l"), b.NewLock("l")
		first := s.take(lock)
		s.until(101 * time.Millisecond)
		queued := s.begin(other)

		arrive := make(chan struct{})
		p.fate("release", 1, redistest.Hold(arrive))
		released := make(chan error)
		go func() { released <- first.Release() }()
		s.until(203 * time.Millisecond)
		next := s.begin(p.NewLock("l")) // on another connection: it overtakes
		next.waits()
		queued.waits()

		close(arrive)
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		h := queued.holds()
		next.waits()
		endHold(t, h)
		endHold(t, next.holds())
	})
}

// Fails when a session is found by its client alone.
func TestF01ReleaseSentAgainDoesNotEndTheNextHoldOfItsOwner(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		p, b := s.actor(), s.actor()
		lock := p.NewLock("l", relock.Owner("w"))
		first := s.take(lock)
		p.fate("release", 1, redistest.SwallowReply)
		released := make(chan error)
		go func() { released <- first.Release() }()
		s.until(101 * time.Millisecond)
		second := s.take(p.NewLock("l", relock.Owner("w")))
		waiter := s.begin(b.NewLock("l"))

		if err := <-released; err != nil {
			t.Fatal(err)
		}
		if n := p.sent("release"); n < 3 { // one of them was to warm up
			t.Fatalf("release was sent %d times, want it to be sent again", n)
		}
		waiter.waits()
		endHold(t, second)
		endHold(t, waiter.holds())
	})
}

// Fails when a release of one of an owner's sessions drops the owner's grant.
func TestF02HoldsOfOneOwnerInTwoProcessesEndOneByOne(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		p1, p2, b := s.actor(), s.actor(), s.actor()
		h1 := s.take(p1.NewLock("l", relock.Owner("w")))
		h2 := s.take(p2.NewLock("l", relock.Owner("w")))
		if h1.Token() != h2.Token() {
			t.Errorf("tokens %d and %d of one grant differ", h1.Token(), h2.Token())
		}
		waiter := s.begin(b.NewLock("l"))
		if n := s.holdsOf(b.NewLock("l")); n != 2 {
			t.Errorf("redis counts %d holds, want 2", n)
		}
		endHold(t, h2)
		waiter.waits()
		if err := h1.Err(); err != nil {
			t.Fatal(err)
		}
		endHold(t, h1)
		waiter.holds()
	})
}

// Fails when hold.lua takes a statement whose number is not larger.
func TestF02LateCopyOfACountChangesNothing(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		p := s.actor()
		lock := p.NewLock("l", relock.Owner("w"))
		outer := s.take(lock)
		arrive := make(chan struct{})
		p.fate("hold", 1, redistest.Duplicate(arrive)) // of "two holds"
		inner := s.take(lock)
		endHold(t, inner)
		if n := s.holdsOf(lock); n != 1 {
			t.Fatalf("redis counts %d holds, want 1", n)
		}
		close(arrive)
		if err := p.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.holdsOf(lock); n != 1 {
			t.Errorf("a late copy made it %d holds, want 1", n)
		}
		endHold(t, outer)
		s.free(lock)
	})
}

// Fails when hold.lua takes a statement whose number is not larger.
func TestF02StatementsThatArriveInTheWrongOrderCountTheLastOne(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		p := s.actor()
		lock := p.NewLock("l", relock.Owner("w"))
		outer := s.take(lock)
		arrive := make(chan struct{})
		p.fate("hold", 1, redistest.Hold(arrive))
		second := s.begin(lock) // sent again after 2 s, with a larger number
		h2 := second.returns()
		h3 := s.take(lock)
		close(arrive)
		if err := p.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.holdsOf(lock); n != 3 {
			t.Errorf("redis counts %d holds, want 3", n)
		}
		for _, h := range []*relock.Hold{outer, h2, h3} {
			endHold(t, h)
		}
		s.free(lock)
	})
}

// Fails when sessions past their deadline are kept on reading.
func TestF02HoldsOfADeadProcessEndThoughAnotherRenews(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		p1, p2, b := s.actor(), s.actor(), s.actor()
		h1 := s.take(p1.NewLock("l", relock.Owner("w"), relock.TTL(3*time.Second)))
		s.take(p2.NewLock("l", relock.Owner("w"), relock.TTL(3*time.Second)))
		p2.link.Hole()
		s.until(5 * time.Second)
		if n := s.holdsOf(b.NewLock("l")); n != 1 {
			t.Errorf("redis counts %d holds, want that of the living process alone", n)
		}
		if err := h1.Err(); err != nil {
			t.Fatal(err)
		}
		waiter := s.begin(b.NewLock("l"))
		waiter.waits()
		endHold(t, h1)
		waiter.holds()
	})
}
