package schedules_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// migrate answers as a Cluster does while the slot of a lock migrates: a call of
// two keys, of which one is absent, is to be tried again.
func migrate(s *rig.Lab, name string) (end func()) {
	keys := key.For("relock", name)
	var over atomic.Bool
	s.Server.FailNext(1<<30, "TRYAGAIN Multiple keys request during rehashing of slot", func(args []string) bool {
		if over.Load() || args[0] != "evalsha" || len(args) < 5 || args[2] != "2" || args[3] != keys.Hash {
			return false
		}
		mini := s.Server.Direct()
		return mini.Exists(keys.Hash) != mini.Exists(keys.Queue)
	})
	return func() { over.Store(true) }
}

// Fails when an acquire is not sent again with one key.
func TestF12FreeLockIsAcquiredWhileItsSlotMigrates(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		rig.End(t, s.Take(a.NewLock("l"))) // leaves the hash alone
		defer migrate(s, "l")()
		if ok, err := a.NewLock("l").TryLock(t.Context(), 0); !ok || err != nil {
			t.Errorf("TryLock: %v, %v", ok, err)
		}
	})
}

// Fails when a release is not sent again with one key.
func TestF12HolderReleasesWhileItsSlotMigrates(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor(relock.ReleaseTimeout(time.Second))
		held := s.Take(a.NewLock("l"))
		end := migrate(s, "l")
		if err := held.Release(); err != nil {
			t.Error(err)
		}
		end()
		s.Free(a.NewLock("l"))
	})
}

// Fails when a renewal names the queue.
func TestF12HolderRenewsAndReentersWhileItsSlotMigrates(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		lock := a.NewLock("l", relock.Owner("w"))
		held := s.Take(lock)
		defer migrate(s, "l")()
		nested := s.Take(lock)
		s.Until(2 * time.Minute)
		rig.Must(t, held.Err())
		rig.End(t, nested)
		rig.End(t, held)
	})
}

// Fails when an acquire is not sent again with one key.
func TestF12WaiterTakesTheLockThatIsReleasedWhileItsSlotMigrates(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		end := migrate(s, "l")
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l")) // cannot queue
		s.Until(3 * time.Second)
		waiter.Waits()
		rig.End(t, held)
		s.Until(5 * time.Second)
		held = waiter.Holds()
		end()
		rig.End(t, held)
		s.Free(a.NewLock("l"))
	})
}

// Fails when a waiter does not ask with both keys again.
func TestF12WaiterQueuesOnceTheSlotHasMigrated(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		end := migrate(s, "l")
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l"))
		s.Until(3 * time.Second)
		end()
		s.Until(5 * time.Second)
		if info := s.Info(a.NewLock("l")); info.Waiters != 1 {
			t.Errorf("%d waiters in redis, want 1", info.Waiters)
		}
		rig.End(t, held)
		waiter.Holds()
	})
}

// Fails when a release without the queue's key ignores who waits.
func TestF12QueueIsServedWhileItsSlotMigrates(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l"))
		// A call of two keys may be refused once even where both exist.
		s.Server.FailNext(1, "TRYAGAIN Multiple keys request during rehashing of slot", func(args []string) bool {
			return rig.ScriptSent(args) == "release"
		})
		rig.End(t, held)
		waiter.Holds()
	})
}
