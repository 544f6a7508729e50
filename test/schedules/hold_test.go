package schedules_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when acquire.lua takes the process for the holder.
func TestF01AcquireThatOvertakesTheReleaseOfItsOwnProcessWaits(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p, b := s.Actor(), s.Actor()
		s.WaitOnce(p, b)
		lock, other := p.NewLock("l"), b.NewLock("l")
		first := s.Take(lock)
		s.Until(101 * time.Millisecond)
		queued := s.Begin(other)

		arrive := make(chan struct{})
		p.Fate("release", 1, redistest.Hold(arrive))
		released := make(chan error)
		go func() { released <- first.Release() }()
		s.Until(203 * time.Millisecond)
		next := s.Begin(p.NewLock("l")) // on another connection: it overtakes
		next.Waits()
		queued.Waits()

		close(arrive)
		rig.Must(t, <-released)
		h := queued.Holds()
		next.Waits()
		rig.End(t, h)
		rig.End(t, next.Holds())
	})
}

// Fails when a session is found by its client alone.
func TestF01ReleaseSentAgainDoesNotEndTheNextHoldOfItsOwner(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p, b := s.Actor(), s.Actor()
		lock := p.NewLock("l", relock.Owner("w"))
		first := s.Take(lock)
		p.Fate("release", 1, redistest.SwallowReply)
		released := make(chan error)
		go func() { released <- first.Release() }()
		s.Until(101 * time.Millisecond)
		second := s.Take(p.NewLock("l", relock.Owner("w")))
		waiter := s.Begin(b.NewLock("l"))

		rig.Must(t, <-released)
		if n := p.Sent("release"); n < 3 { // one of them was to warm up
			t.Fatalf("release was sent %d times, want it to be sent again", n)
		}
		waiter.Waits()
		rig.End(t, second)
		rig.End(t, waiter.Holds())
	})
}

// Fails when a release of one of an owner's sessions drops the owner's grant.
func TestF02HoldsOfOneOwnerInTwoProcessesEndOneByOne(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p1, p2, b := s.Actor(), s.Actor(), s.Actor()
		h1 := s.Take(p1.NewLock("l", relock.Owner("w")))
		h2 := s.Take(p2.NewLock("l", relock.Owner("w")))
		if h1.Token() != h2.Token() {
			t.Errorf("tokens %d and %d of one grant differ", h1.Token(), h2.Token())
		}
		waiter := s.Begin(b.NewLock("l"))
		if n := s.HoldsOf(b.NewLock("l")); n != 2 {
			t.Errorf("redis counts %d holds, want 2", n)
		}
		rig.End(t, h2)
		waiter.Waits()
		rig.Must(t, h1.Err())
		rig.End(t, h1)
		waiter.Holds()
	})
}

// Fails when hold.lua takes a statement whose number is not larger.
func TestF02LateCopyOfACountChangesNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p := s.Actor()
		lock := p.NewLock("l", relock.Owner("w"))
		outer := s.Take(lock)
		arrive := make(chan struct{})
		p.Fate("hold", 1, redistest.Duplicate(arrive)) // of "two holds"
		inner := s.Take(lock)
		rig.End(t, inner)
		if n := s.HoldsOf(lock); n != 1 {
			t.Fatalf("redis counts %d holds, want 1", n)
		}
		close(arrive)
		rig.Must(t, p.Link.Settle(t.Context()))
		if n := s.HoldsOf(lock); n != 1 {
			t.Errorf("a late copy made it %d holds, want 1", n)
		}
		rig.End(t, outer)
		s.Free(lock)
	})
}

// Fails when hold.lua takes a statement whose number is not larger.
func TestF02StatementsThatArriveInTheWrongOrderCountTheLastOne(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p := s.Actor()
		lock := p.NewLock("l", relock.Owner("w"))
		outer := s.Take(lock)
		arrive := make(chan struct{})
		p.Fate("hold", 1, redistest.Hold(arrive))
		second := s.Begin(lock) // sent again after 2 s, with a larger number
		h2 := second.Returns()
		h3 := s.Take(lock)
		close(arrive)
		rig.Must(t, p.Link.Settle(t.Context()))
		if n := s.HoldsOf(lock); n != 3 {
			t.Errorf("redis counts %d holds, want 3", n)
		}
		for _, h := range []*relock.Hold{outer, h2, h3} {
			rig.End(t, h)
		}
		s.Free(lock)
	})
}

// Fails when sessions past their deadline are kept on reading.
func TestF02HoldsOfADeadProcessEndThoughAnotherRenews(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p1, p2, b := s.Actor(), s.Actor(), s.Actor()
		h1 := s.Take(p1.NewLock("l", relock.Owner("w"), relock.TTL(3*time.Second)))
		s.Take(p2.NewLock("l", relock.Owner("w"), relock.TTL(3*time.Second)))
		p2.Link.Hole()
		s.Until(5 * time.Second)
		if n := s.HoldsOf(b.NewLock("l")); n != 1 {
			t.Errorf("redis counts %d holds, want that of the living process alone", n)
		}
		rig.Must(t, h1.Err())
		waiter := s.Begin(b.NewLock("l"))
		waiter.Waits()
		rig.End(t, h1)
		waiter.Holds()
	})
}
