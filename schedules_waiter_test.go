package relock_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// Fails when an entry that comes back gets a new ticket.
func TestF05WaiterWithoutASubscriptionKeepsItsPlace(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c, d := s.actor(), s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		first := s.begin(b.NewLock("l"))
		s.until(203 * time.Millisecond)
		second := s.begin(c.NewLock("l"))
		heal := b.link.Cut()
		s.until(305 * time.Millisecond)
		endHold(t, held) // b is not there: its entry goes, c has the lock
		held = second.holds()
		s.until(407 * time.Millisecond)
		third := s.begin(d.NewLock("l"))
		heal()
		s.until(3 * time.Second) // b is back
		first.waits()
		endHold(t, held)
		endHold(t, first.holds())
		third.holds()
	})
}

// Fails when an entry that comes back gets a new ticket.
func TestF05WaitersThatLoseAllSubscriptionsAtOnceKeepTheirOrder(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		held := s.take(a.NewLock("l"))
		var waiters []*call
		for i := range 6 {
			s.until(time.Duration(i+1) * 101 * time.Millisecond)
			waiters = append(waiters, s.begin(s.actor().NewLock("l")))
		}
		s.until(time.Second)
		s.srv.KillSubscribers()
		synctest.Wait()
		endHold(t, held) // nobody hears
		s.free(a.NewLock("l"))
		s.until(4 * time.Second)
		var order []int
		for len(order) < len(waiters) {
			synctest.Wait()
			at := slices.IndexFunc(waiters, func(c *call) bool { return c != nil && c.settled() })
			if at < 0 {
				t.Fatalf("nobody holds after %v", order)
			}
			endHold(t, waiters[at].holds())
			order, waiters[at] = append(order, at), nil
		}
		// Whoever is back first takes the free lock; the rest keep their tickets.
		if !slices.IsSorted(order[1:]) {
			t.Errorf("the lock went to waiters %v", order)
		}
	})
}

// Fails when a hand-off gives more than the rest of the entry's lease.
func TestF05FrozenWaitersTogetherCostOneLease(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, live := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		for i := range 5 {
			frozen := s.actor()
			s.until(time.Duration(i+1) * 101 * time.Millisecond)
			s.begin(frozen.NewLock("l", relock.TTL(3*time.Second)))
			s.until(time.Duration(i+1)*101*time.Millisecond + 7)
			frozen.link.Hole() // the server goes on counting it as a subscriber
		}
		s.until(601 * time.Millisecond)
		waiter := s.begin(live.NewLock("l", relock.TTL(3*time.Second)))
		s.until(time.Second)
		endHold(t, held)
		waiter.returns()
		if waiter.at > 4*time.Second {
			t.Errorf("the living waiter holds at %v, want within one lease of 3 s", waiter.at)
		}
	})
}

// Fails when an entry past its deadline is granted.
func TestF05EntryPastItsDeadlineIsPassedOver(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, dead, live := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		s.begin(dead.NewLock("l", relock.TTL(time.Second)))
		dead.link.Hole()
		heard := s.listen(dead)
		s.until(203 * time.Millisecond)
		waiter := s.begin(live.NewLock("l"))
		s.until(5 * time.Second)
		endHold(t, held)
		waiter.holds()
		if got := grants(heard()); len(got) > 0 {
			t.Errorf("%q to a waiter that is dead by its entry", got)
		}
	})
}

// Fails when a waiter's heartbeat does not find its own grant.
func TestF05GrantThatIsNotHeardCostsAHeartbeat(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l", relock.TTL(3*time.Second)))
		b.link.HoleSubscribers()
		s.until(203 * time.Millisecond)
		endHold(t, held)
		waiter.returns()
		if waiter.at > 1200*time.Millisecond {
			t.Errorf("holds at %v, want within a heartbeat, which comes every second", waiter.at)
		}
		if err := waiter.hold.Err(); err != nil {
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
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor(), s.actor()
				held := s.take(a.NewLock("l", opts...))
				s.until(101 * time.Millisecond)
				waiter := s.begin(b.NewLock("l", opts...))
				s.until(11503 * time.Millisecond) // between two heartbeats
				b.link.HoleSubscribers()
				s.until(11607 * time.Millisecond)
				endHold(t, held)
				waiter.returns()
				if took, most := waiter.at-11607*time.Millisecond, min(ttl/3, 10*time.Second); took > most {
					t.Errorf("%s, TTL %v: the lock was idle for %v, want %v at most", what, ttl, took, most)
				}
				if err := waiter.hold.Err(); err != nil {
					t.Error(err)
				}
				endHold(t, waiter.hold)
			})
		}
	}
}

// Fails when an inbox that misses its echo is kept.
func TestF05HalfOpenInboxIsReplaced(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l"))
		b.link.HoleSubscribers()
		s.until(15 * time.Second) // its heartbeat at 10 s had no echo
		waiter.waits()
		endHold(t, held)
		waiter.holds() // told by message
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
	a, dead, live := realActor(t, srv), realActor(t, srv), realActor(t, srv)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	held, err := a.NewLock("l").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	gone, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _, _ = dead.NewLock("l", relock.TTL(time.Second)).Acquire(gone) }()
	awaitWaiters(t, a.NewLock("l"), 1)
	dead.link.Cut()
	if n := watcher.Publish(ctx, "relock:inbox:"+dead.ID(), "echo").Val(); n != 1 {
		t.Fatalf("%d receivers, want the pattern subscriber alone", n)
	}
	released := make(chan struct{})
	go func() { endHold(t, held); close(released) }()
	if _, err := live.NewLock("l").Acquire(ctx); err != nil {
		t.Errorf("the living waiter: %v", err)
	}
	<-released
}

// awaitWaiters waits until so many stand in the queue of a real server.
func awaitWaiters(t *testing.T, l *relock.Lock, n int) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		info, err := l.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Waiters == n {
			return
		}
		select {
		case <-again.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
