package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// TestWaitersOfOneLockShareTheirHeartbeats though they came one after the other.
// Fails when each is kept in the queue by commands of its own.
func TestWaitersOfOneLockShareTheirHeartbeats(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		const waiters = 20
		a, p := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l", relock.Fair()))
		var calls []*rig.Call
		for range waiters {
			s.Until(s.Now() + 101*time.Millisecond)
			calls = append(calls, s.Begin(p.NewLock("l", relock.Fair())))
		}
		before := p.Sent("acquire")
		s.Until(s.Now() + 100*time.Second)
		if n := p.Sent("acquire") - before; n < 10 || n > 14 {
			t.Errorf("%d commands in 100 s for %d waiters of a TTL of 30 s, want one each 10 s for all", n, waiters)
		}
		rig.End(t, held)
		for _, c := range calls {
			rig.End(t, c.Holds())
		}
	})
}

// Fails when those who wait to read and those who wait to write are kept in the queue by commands of their own.
func TestReadersAndWritersThatWaitShareTheirHeartbeats(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, p := s.Actor(), s.Actor()
		held := s.Take(a.NewRWLock("l").WLocker())
		var calls []*rig.Call
		for range 5 {
			for _, l := range []*relock.Lock{p.NewRWLock("l").WLocker(), p.NewRWLock("l").RLocker()} {
				s.Until(s.Now() + 101*time.Millisecond)
				calls = append(calls, s.Begin(l))
			}
		}
		before := p.Sent("acquire")
		s.Until(s.Now() + 100*time.Second)
		if n := p.Sent("acquire") - before; n < 10 || n > 14 {
			t.Errorf("%d commands in 100 s for %d waiters of a TTL of 30 s, want one each 10 s for all", n, len(calls))
		}
		rig.End(t, held)
		for _, c := range calls {
			rig.End(t, c.Holds())
		}
	})
}

// TestWaiterWhoseInboxHearsKeepsItsConnection, for a quarter of an hour, and that of
// another lock which queues after it. Fails when a heartbeat, or a request that
// queues, does not have the inbox show that it hears: then it is taken for deaf.
func TestWaiterWhoseInboxHearsKeepsItsConnection(t *testing.T) {
	for sharded, opts := range map[string][]relock.Option{"plain": nil, "sharded": {relock.ShardedPubSub()}} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			if opts != nil {
				s.Server.Shard()
			}
			a, p := s.Actor(), s.Actor(opts...)
			held, later := s.Take(a.NewLock("l")), s.Take(a.NewLock("later"))
			subscribed := func() int {
				said := p.Link.Commands()
				return said["subscribe"] + said["ssubscribe"]
			}
			before := subscribed()
			// Its first heartbeat is due after 10 s: the inbox has been silent for long.
			s.Until(time.Minute)
			waiter := s.Begin(p.NewLock("later"))
			s.Until(65 * time.Second)
			other := s.Begin(p.NewLock("l"))
			s.Until(15 * time.Minute)
			want := before
			if opts != nil {
				want += 2 // one for each lock
			}
			if n := subscribed(); n != want {
				t.Errorf("%s: subscribed %d times, want %d: nothing has broken", sharded, n, want)
			}
			rig.End(t, later)
			rig.End(t, held)
			rig.End(t, waiter.Holds())
			rig.End(t, other.Holds())
		})
	}
}

// TestManyReleasesAreSentAgainAfterAFailover: two hundred locks were released after
// the one that comes back. Fails when a client remembers fewer.
func TestManyReleasesAreSentAgainAfterAFailover(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		restore := s.Keep("l")
		rig.End(t, held)
		for i := range 200 {
			l := a.NewLock(fmt.Sprint("other", i))
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
		}
		s.Until(s.Now() + 101*time.Millisecond)
		restore()
		waiter := s.Begin(b.NewLock("l"))
		waiter.Waits()
		s.Server.KillSubscribers()
		waiter.Returns()
		if waiter.At > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.At)
		}
	})
}
