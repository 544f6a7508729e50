package schedules_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// refused fails the test unless the lock is in use as another kind.
func refused(s *rig.Lab, l *relock.Lock) {
	s.T.Helper()
	if ok, err := l.TryLock(s.T.Context(), 0); ok || !errors.Is(err, relock.ErrKind) {
		s.T.Fatalf("TryLock: %v, %v, want ErrKind", ok, err)
	}
}

// Fails when live waiters do not keep a name's kind.
func TestF06KindOutlivesADeadHolderWhileSomebodyWaits(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, r := s.Actor(), s.Actor(), s.Actor()
		s.Take(a.NewLock("l", relock.TTL(time.Second)))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l"))
		a.Link.Hole()
		heal := b.Link.Cut() // its entry lives on, and does not ask
		s.Until(2 * time.Second)
		refused(s, r.NewRWLock("l").WLocker())
		heal()
		waiter.Returns()
		refused(s, r.NewRWLock("l").WLocker())
	})
}

// Fails when who waits on a condition of a free lock does not keep its name's kind.
func TestWhoWaitsOnAConditionKeepsTheKind(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, r := s.Actor(), s.Actor()
		l := a.NewLock("l")
		held := s.Take(l)
		waiter := rig.Beside(func() error { return l.NewCond("c").Wait(held.Context(s.T.Context())) })
		waiter.Pending(t, "the wait")
		refused(s, r.NewRWLock("l").WLocker())
		other := s.Take(r.NewLock("l"))
		rig.Must(t, r.NewLock("l").NewCond("c").Signal(other.Context(s.T.Context())))
		rig.End(t, other)
		rig.Must(t, <-waiter)
		rig.End(t, held)
		rig.End(t, s.Take(r.NewRWLock("l").WLocker()))
	})
}

// Fails when who queues behind a session that holds alone is not asked for its kind.
func TestWhoWouldQueueBehindAnotherKindIsRefused(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, r := s.Actor(), s.Actor()
		s.WaitOnce(r) // its requests ask for no echo any more
		held := s.Take(a.NewLock("l"))
		call := s.Begin(r.NewLock("l", relock.Fair()))
		<-call.Done
		rig.WantIs(t, call.Err, relock.ErrKind)
		rig.End(t, held)
	})
}

// Fails when a holder does not keep its name's kind.
func TestF06NameChangesItsKindOnlyWhenNobodyHolds(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, r := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		refused(s, r.NewRWLock("l").WLocker())
		rig.End(t, held)
		other := s.Take(r.NewRWLock("l").WLocker())
		if other.Token() <= held.Token() {
			t.Errorf("token %d after %d of another kind", other.Token(), held.Token())
		}
		refused(s, a.NewLock("l"))
		// An operator reads either.
		if info := s.Info(a.NewLock("l")); info.Kind != "rw" || len(info.Holders) != 1 {
			t.Errorf("info %+v, want the rw holder", info)
		}
	})
}

// Fails when a waiter whose name changed its kind goes on asking.
func TestF06WaiterThatFindsAnotherKindIsRefused(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, r := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l", relock.TTL(3*time.Second)))
		heal := b.Link.Cut()
		s.Until(4 * time.Second) // b's entry has ended
		rig.End(t, held)
		s.Take(r.NewRWLock("l").WLocker())
		heal()
		<-waiter.Done
		if !errors.Is(waiter.Err, relock.ErrKind) {
			t.Errorf("error %v, want ErrKind", waiter.Err)
		}
	})
}

// Fails when names with a hash tag share the part of the others.
func TestF11NamesDoNotCollide(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		names := []string{
			"a", "{a}", "{a}:q", "a:q", "q:a", "{a", "a}", "%7Ba%7D", "{}a", "h:{a}", "{{a}}", "a{b}c", "a{b}d", "%", "%25", "relock:h:{a}",
		}
		for _, name := range names {
			s.Take(a.NewLock(name))
		}
		for _, name := range names {
			if info := s.Info(a.NewLock(name)); len(info.Holders) != 1 || info.Holders[0].Holds != 1 {
				t.Errorf("%q: %+v, want one hold", name, info)
			}
		}
	})
}

// Fails when owners' fields have no prefix of their own.
func TestF11OwnersDoNotCollideWithFields(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		var last int64
		for i, owner := range []string{
			"token", "kind", "queued", "holder", "ended", "o:token", "w:x", "v:x", "%s", "-", " ", "1 2 3 w 4 5 6 1 x",
			"w 1 2 a b 1 1 0 99999999999999", "line\nbreak", "nul\x00", strings.Repeat("x", 512), "\u00e9",
		} {
			s.Until(time.Duration(i+1) * 1009 * time.Millisecond)
			held := s.BeginAs(owner, a.NewLock("l")).Holds()
			nested := s.BeginAs(owner, a.NewLock("l")).Holds()
			if held.Token() <= last {
				t.Errorf("owner %q: token %d after %d", owner, held.Token(), last)
			}
			last = held.Token()
			beside := s.BeginAs(owner, b.NewLock("l")).Holds() // in another process: a session of its own
			if beside.Token() != last {
				t.Errorf("owner %q: token %d beside %d", owner, beside.Token(), last)
			}
			rig.End(t, beside)
			waiter := s.BeginAs(owner+"2", b.NewLock("l"))
			if len(owner) == 512 {
				<-waiter.Done // a name too long by one
				waiter = s.Begin(b.NewLock("l"))
			}
			waiter.Waits()
			if info := s.Info(a.NewLock("l")); len(info.Holders) != 1 || info.Holders[0].Owner != owner || info.Holders[0].Holds != 2 {
				t.Errorf("info %+v, want 2 holds of owner %q", info, owner)
			}
			s.Until(time.Duration(i+1)*1009*time.Millisecond + 101*time.Millisecond)
			rig.End(t, nested)
			rig.End(t, held)
			rig.End(t, waiter.Holds())
			s.Free(a.NewLock("l"))
		}
	})
}

// Fails when named waiters' owners are not told apart from the record around them.
func TestF11WaitersOwnersAreReadBackAsGiven(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		s.Take(a.NewLock("l"))
		for _, owner := range []string{"a b 9 9", " lead", "x 1 2 3 w 1 1 1 y"} {
			waiter := s.BeginAs(owner, b.NewLock("l"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			waiters, err := a.NewLock("l").Waiters(ctx)
			cancel()
			if err != nil || len(waiters) != 1 || waiters[0].Owner != owner {
				t.Errorf("waiters %+v, %v, want owner %q", waiters, err, owner)
			}
			waiter.Stop()
			<-waiter.Done
			s.Until(s.Now() + 101*time.Millisecond)
		}
	})
}

// A heartbeat that was not answered comes to Redis when another has been answered that the name
// is of another kind, and when it is free again.
// Fails when it is granted to nobody: the lock is taken for a lease.
func TestHeartbeatOfAWaiterThatWasRefusedIsGrantedNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, r := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		waiter := s.Begin(b.NewLock("l"))
		gate := make(chan struct{})
		b.Fate("acquire", 1, redistest.Hold(gate))
		s.Until(11 * time.Second) // its heartbeat is under way
		s.Server.FlushAll()
		other := s.Take(r.NewRWLock("l").WLocker())
		<-waiter.Done
		rig.WantIs(t, waiter.Err, relock.ErrKind)
		rig.WantIs(t, held.Release(), relock.ErrLost)
		rig.End(t, other)
		close(gate)
		s.Until(s.Now() + time.Second)
		s.Frees("l")
	})
}
