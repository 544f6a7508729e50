package relock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// TestWaitersOfOneLockShareTheirHeartbeats though they came one after the other.
// Fails when each is kept in the queue by commands of its own.
func TestWaitersOfOneLockShareTheirHeartbeats(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		const waiters = 20
		a, p := s.actor(), s.actor()
		held := s.take(a.NewLock("l", relock.Fair()))
		var calls []*call
		for range waiters {
			s.until(s.now() + 101*time.Millisecond)
			calls = append(calls, s.begin(p.NewLock("l", relock.Fair())))
		}
		before := p.sent("acquire")
		s.until(s.now() + 100*time.Second)
		if n := p.sent("acquire") - before; n < 10 || n > 14 {
			t.Errorf("%d commands in 100 s for %d waiters of a TTL of 30 s, want one each 10 s for all", n, waiters)
		}
		endHold(t, held)
		for _, c := range calls {
			endHold(t, c.holds())
		}
	})
}

// TestWaiterWhoseInboxHearsKeepsItsConnection, for a quarter of an hour, and that of
// another lock which queues after it. Fails when a heartbeat, or a request that
// queues, does not have the inbox show that it hears: then it is taken for deaf.
func TestWaiterWhoseInboxHearsKeepsItsConnection(t *testing.T) {
	for sharded, opts := range map[string][]relock.Option{"plain": nil, "sharded": {relock.ShardedPubSub()}} {
		play(t, func(t *testing.T, s *scene) {
			if opts != nil {
				s.srv.Shard()
			}
			a, p := s.actor(), s.actor(opts...)
			held, later := s.take(a.NewLock("l")), s.take(a.NewLock("later"))
			subscribed := func() int {
				said := p.link.Commands()
				return said["subscribe"] + said["ssubscribe"]
			}
			before := subscribed()
			// Its first heartbeat is due after 10 s: the inbox has been silent for long.
			s.until(time.Minute)
			waiter := s.begin(p.NewLock("later"))
			s.until(65 * time.Second)
			other := s.begin(p.NewLock("l"))
			s.until(15 * time.Minute)
			want := before
			if opts != nil {
				want += 2 // one for each lock
			}
			if n := subscribed(); n != want {
				t.Errorf("%s: subscribed %d times, want %d: nothing has broken", sharded, n, want)
			}
			endHold(t, later)
			endHold(t, held)
			endHold(t, waiter.holds())
			endHold(t, other.holds())
		})
	}
}

// TestManyReleasesAreSentAgainAfterAFailover: two hundred locks were released after
// the one that comes back. Fails when a client remembers fewer.
func TestManyReleasesAreSentAgainAfterAFailover(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		restore := s.keep("l")
		endHold(t, held)
		for i := range 200 {
			l := a.NewLock(fmt.Sprint("other", i))
			if err := l.Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := l.Unlock(); err != nil {
				t.Fatal(err)
			}
		}
		s.until(s.now() + 101*time.Millisecond)
		restore()
		waiter := s.begin(b.NewLock("l"))
		waiter.waits()
		s.srv.KillSubscribers()
		waiter.returns()
		if waiter.at > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.at)
		}
	})
}
