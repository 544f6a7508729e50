package relock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// refused fails the test unless the lock is in use as another kind.
func (s *scene) refused(l *relock.Lock) {
	s.t.Helper()
	if ok, err := l.TryLock(s.t.Context(), 0); ok || !errors.Is(err, relock.ErrKind) {
		s.t.Fatalf("TryLock: %v, %v, want ErrKind", ok, err)
	}
}

// Fails when live waiters do not keep a name's kind.
func TestF06KindOutlivesADeadHolderWhileSomebodyWaits(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, r := s.actor(), s.actor(), s.actor()
		s.take(a.NewLock("l", relock.TTL(time.Second)))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l"))
		a.link.Hole()
		heal := b.link.Cut() // its entry lives on, and does not ask
		s.until(2 * time.Second)
		s.refused(r.NewLock("l").OfKind("rw"))
		heal()
		waiter.returns()
		s.refused(r.NewLock("l").OfKind("rw"))
	})
}

// Fails when a holder does not keep its name's kind.
func TestF06NameChangesItsKindOnlyWhenNobodyHolds(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, r := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.refused(r.NewLock("l").OfKind("rw"))
		endHold(t, held)
		other := s.take(r.NewLock("l").OfKind("rw"))
		if other.Token() <= held.Token() {
			t.Errorf("token %d after %d of another kind", other.Token(), held.Token())
		}
		s.refused(a.NewLock("l"))
		// An operator reads either.
		if info := s.info(a.NewLock("l")); info.Kind != "rw" || len(info.Holders) != 1 {
			t.Errorf("info %+v, want the rw holder", info)
		}
	})
}

// Fails when a waiter whose name changed its kind goes on asking.
func TestF06WaiterThatFindsAnotherKindIsRefused(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, r := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l", relock.TTL(3*time.Second)))
		heal := b.link.Cut()
		s.until(4 * time.Second) // b's entry has ended
		endHold(t, held)
		s.take(r.NewLock("l").OfKind("rw"))
		heal()
		<-waiter.done
		if !errors.Is(waiter.err, relock.ErrKind) {
			t.Errorf("error %v, want ErrKind", waiter.err)
		}
	})
}

// Fails when names with a hash tag share the part of the others.
func TestF11NamesDoNotCollide(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		names := []string{
			"a", "{a}", "{a}:q", "a:q", "q:a", "{a", "a}", "%7Ba%7D", "{}a", "h:{a}", "{{a}}", "a{b}c", "a{b}d", "%", "%25", "relock:h:{a}",
		}
		for _, name := range names {
			s.take(a.NewLock(name))
		}
		for _, name := range names {
			if info := s.info(a.NewLock(name)); len(info.Holders) != 1 || info.Holders[0].Holds != 1 {
				t.Errorf("%q: %+v, want one hold", name, info)
			}
		}
	})
}

// Fails when owners' fields have no prefix of their own.
func TestF11OwnersDoNotCollideWithFields(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		var last int64
		for i, owner := range []string{
			"token", "kind", "queued", "holder", "ended", "o:token", "w:x", "v:x", "%s", "-", " ", "1 2 3 w 4 5 6 1 x",
			"w 1 2 a b 1 1 0 99999999999999", "line\nbreak", "nul\x00", strings.Repeat("x", 512), "\u00e9",
		} {
			s.until(time.Duration(i+1) * 1009 * time.Millisecond)
			held := s.beginAs(owner, a.NewLock("l")).holds()
			nested := s.beginAs(owner, a.NewLock("l")).holds()
			if held.Token() <= last {
				t.Errorf("owner %q: token %d after %d", owner, held.Token(), last)
			}
			last = held.Token()
			waiter := s.beginAs(owner+"2", b.NewLock("l"))
			if len(owner) == 512 {
				<-waiter.done // a name too long by one
				waiter = s.begin(b.NewLock("l"))
			}
			waiter.waits()
			if info := s.info(a.NewLock("l")); len(info.Holders) != 1 || info.Holders[0].Owner != owner || info.Holders[0].Holds != 2 {
				t.Errorf("info %+v, want 2 holds of owner %q", info, owner)
			}
			s.until(time.Duration(i+1)*1009*time.Millisecond + 101*time.Millisecond)
			endHold(t, nested)
			endHold(t, held)
			endHold(t, waiter.holds())
			s.free(a.NewLock("l"))
		}
	})
}

// Fails when named waiters' owners are not told apart from the record around them.
func TestF11WaitersOwnersAreReadBackAsGiven(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		s.take(a.NewLock("l"))
		for _, owner := range []string{"a b 9 9", " lead", "x 1 2 3 w 1 1 1 y"} {
			waiter := s.beginAs(owner, b.NewLock("l"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			waiters, err := a.NewLock("l").Waiters(ctx)
			cancel()
			if err != nil || len(waiters) != 1 || waiters[0].Owner != owner {
				t.Errorf("waiters %+v, %v, want owner %q", waiters, err, owner)
			}
			waiter.stop()
			<-waiter.done
			s.until(s.now() + 101*time.Millisecond)
		}
	})
}
