package relock_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
)

// migrate answers as a Cluster does while the slot of a lock migrates: a call of
// two keys, of which one is absent, is to be tried again.
func (s *scene) migrate(name string) (end func()) {
	keys := key.For("relock", name)
	var over atomic.Bool
	s.srv.FailNext(1<<30, "TRYAGAIN Multiple keys request during rehashing of slot", func(args []string) bool {
		if over.Load() || args[0] != "evalsha" || len(args) < 5 || args[2] != "2" || args[3] != keys.Hash {
			return false
		}
		mini := s.srv.Direct()
		return mini.Exists(keys.Hash) != mini.Exists(keys.Queue)
	})
	return func() { over.Store(true) }
}

// Fails when an acquire is not sent again with one key.
func TestF12FreeLockIsAcquiredWhileItsSlotMigrates(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		endHold(t, s.take(a.NewLock("l"))) // leaves the hash alone
		defer s.migrate("l")()
		if ok, err := a.NewLock("l").TryLock(t.Context(), 0); !ok || err != nil {
			t.Errorf("TryLock: %v, %v", ok, err)
		}
	})
}

// Fails when a release is not sent again with one key.
func TestF12HolderReleasesWhileItsSlotMigrates(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor(relock.ReleaseTimeout(time.Second))
		held := s.take(a.NewLock("l"))
		end := s.migrate("l")
		if err := held.Release(); err != nil {
			t.Error(err)
		}
		end()
		s.free(a.NewLock("l"))
	})
}

// Fails when a renewal names the queue.
func TestF12HolderRenewsAndReentersWhileItsSlotMigrates(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		lock := a.NewLock("l", relock.Owner("w"))
		held := s.take(lock)
		defer s.migrate("l")()
		nested := s.take(lock)
		s.until(2 * time.Minute)
		if err := held.Err(); err != nil {
			t.Fatal(err)
		}
		endHold(t, nested)
		endHold(t, held)
	})
}

// Fails when an acquire is not sent again with one key.
func TestF12WaiterTakesTheLockThatIsReleasedWhileItsSlotMigrates(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		end := s.migrate("l")
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l")) // cannot queue
		s.until(3 * time.Second)
		waiter.waits()
		endHold(t, held)
		s.until(5 * time.Second)
		held = waiter.holds()
		end()
		endHold(t, held)
		s.free(a.NewLock("l"))
	})
}

// Fails when a waiter does not ask with both keys again.
func TestF12WaiterQueuesOnceTheSlotHasMigrated(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		end := s.migrate("l")
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l"))
		s.until(3 * time.Second)
		end()
		s.until(5 * time.Second)
		if info := s.info(a.NewLock("l")); info.Waiters != 1 {
			t.Errorf("%d waiters in redis, want 1", info.Waiters)
		}
		endHold(t, held)
		waiter.holds()
	})
}

// Fails when the one-key release ignores who waits.
func TestF12QueueIsServedWhileItsSlotMigrates(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l"))
		// A call of two keys may be refused once even where both exist.
		s.srv.FailNext(1, "TRYAGAIN Multiple keys request during rehashing of slot", func(args []string) bool {
			return scriptSent(args) == "release"
		})
		endHold(t, held)
		waiter.holds()
	})
}
