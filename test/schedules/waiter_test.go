package schedules_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when an entry that comes back gets a new place.
func TestF05WaiterWithoutASubscriptionKeepsItsPlace(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, c, d := s.Actor(), s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		first := s.Begin(b.NewLock("l"))
		s.Until(203 * time.Millisecond)
		second := s.Begin(c.NewLock("l"))
		heal := b.Link.Cut()
		s.Until(305 * time.Millisecond)
		rig.End(t, held) // b is not there: its entry goes, c has the lock
		held = second.Holds()
		s.Until(407 * time.Millisecond)
		third := s.Begin(d.NewLock("l"))
		heal()
		s.Until(3 * time.Second) // b is back
		first.Waits()
		rig.End(t, held)
		rig.End(t, first.Holds())
		third.Holds()
	})
}

// Fails when an entry that comes back gets a new place.
func TestF05WaitersThatLoseAllSubscriptionsAtOnceKeepTheirOrder(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		held := s.Take(a.NewLock("l"))
		var waiters []*rig.Call
		for i := range 6 {
			s.Until(time.Duration(i+1) * 101 * time.Millisecond)
			waiters = append(waiters, s.Begin(s.Actor().NewLock("l")))
		}
		s.Until(time.Second)
		s.Server.KillSubscribers()
		synctest.Wait()
		rig.End(t, held) // nobody hears
		s.Free(a.NewLock("l"))
		s.Until(4 * time.Second)
		var order []int
		for len(order) < len(waiters) {
			synctest.Wait()
			at := slices.IndexFunc(waiters, func(c *rig.Call) bool { return c != nil && c.Settled() })
			if at < 0 {
				t.Fatalf("nobody holds after %v", order)
			}
			rig.End(t, waiters[at].Holds())
			order, waiters[at] = append(order, at), nil
		}
		// Whoever is back first takes the free lock; the rest keep their places.
		if !slices.IsSorted(order[1:]) {
			t.Errorf("the lock went to waiters %v", order)
		}
	})
}

// Fails when a hand-off gives more than the rest of the entry's lease.
func TestF05FrozenWaitersTogetherCostOneLease(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, live := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		for i := range 5 {
			frozen := s.Actor()
			s.Until(time.Duration(i+1) * 101 * time.Millisecond)
			s.Begin(frozen.NewLock("l", relock.TTL(3*time.Second)))
			s.Until(time.Duration(i+1)*101*time.Millisecond + 7)
			frozen.Link.Hole() // the server goes on counting it as a subscriber
		}
		s.Until(601 * time.Millisecond)
		waiter := s.Begin(live.NewLock("l", relock.TTL(3*time.Second)))
		s.Until(time.Second)
		rig.End(t, held)
		waiter.Returns()
		if waiter.At > 4*time.Second {
			t.Errorf("the living waiter holds at %v, want within one lease of 3 s", waiter.At)
		}
	})
}

// Fails when an entry past its deadline is granted.
func TestF05EntryPastItsDeadlineIsPassedOver(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, dead, live := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		s.Begin(dead.NewLock("l", relock.TTL(time.Second)))
		dead.Link.Hole()
		heard := s.Listen(dead)
		s.Until(203 * time.Millisecond)
		waiter := s.Begin(live.NewLock("l"))
		s.Until(5 * time.Second)
		rig.End(t, held)
		waiter.Holds()
		if got := grants(heard()); len(got) > 0 {
			t.Errorf("%q to a waiter that is dead by its entry", got)
		}
	})
}

// Fails when a waiter's heartbeat does not find its own grant.
func TestF05GrantThatIsNotHeardCostsAHeartbeat(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l", relock.TTL(3*time.Second)))
		b.Link.HoleSubscribers()
		s.Until(203 * time.Millisecond)
		rig.End(t, held)
		waiter.Returns()
		if waiter.At > 1200*time.Millisecond {
			t.Errorf("holds at %v, want within a heartbeat, which comes every second", waiter.At)
		}
		if err := waiter.Hold.Err(); err != nil {
			t.Error(err)
		}
	})
}

// Fails when a waiter relies on messages for longer where its lease is longer.
func TestF05LostMessageCostsTenSecondsAtMost(t *testing.T) {
	for _, ttl := range []time.Duration{6 * time.Second, 30 * time.Second, 31 * time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		for what, opts := range map[string][]relock.LockOption{
			"plain": {relock.TTL(ttl)},
			"fair":  {relock.TTL(ttl), relock.Fair()},
		} {
			rig.Play(t, func(t *testing.T, s *rig.Lab) {
				a, b := s.Actor(), s.Actor()
				held := s.Take(a.NewLock("l", opts...))
				s.Until(101 * time.Millisecond)
				waiter := s.Begin(b.NewLock("l", opts...))
				s.Until(11503 * time.Millisecond) // between two heartbeats
				b.Link.HoleSubscribers()
				s.Until(11607 * time.Millisecond)
				rig.End(t, held)
				waiter.Returns()
				if took, most := waiter.At-11607*time.Millisecond, min(ttl/3, 10*time.Second); took > most {
					t.Errorf("%s, TTL %v: the lock was idle for %v, want %v at most", what, ttl, took, most)
				}
				if err := waiter.Hold.Err(); err != nil {
					t.Error(err)
				}
				rig.End(t, waiter.Hold)
			})
		}
	}
}

// Fails when an inbox that misses its echo is kept.
func TestF05HalfOpenInboxIsReplaced(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l"))
		b.Link.HoleSubscribers()
		s.Until(15 * time.Second) // its heartbeat at 10 s had no echo
		waiter.Waits()
		rig.End(t, held)
		waiter.Holds() // told by message
	})
}

// Fails when a pattern subscriber is taken for the waiter's client.
func TestPatternSubscriberDoesNotKeepADeadWaiterAlive(t *testing.T) {
	srv := redistest.Real(t)
	watcher := srv.Client(t)
	sub := watcher.PSubscribe(t.Context(), "*")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, dead, live := rig.RealActor(t, srv), rig.RealActor(t, srv), rig.RealActor(t, srv)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	held, err := a.NewLock("l").Acquire(ctx)
	rig.Must(t, err)
	gone, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _, _ = dead.NewLock("l", relock.TTL(time.Second)).Acquire(gone) }()
	rig.Queued(t, a.NewLock("l"), 1)
	dead.Link.Cut()
	if n := watcher.Publish(ctx, "relock:inbox:"+rig.ID(dead.Client), "echo").Val(); n != 1 {
		t.Fatalf("%d receivers, want the pattern subscriber alone", n)
	}
	released := make(chan struct{})
	go func() { rig.End(t, held); close(released) }()
	if _, err := live.NewLock("l").Acquire(ctx); err != nil {
		t.Errorf("the living waiter: %v", err)
	}
	<-released
}
