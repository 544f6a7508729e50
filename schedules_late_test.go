package relock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
)

// Fails when release.lua does not keep the nonce of a request that may still arrive.
func TestF08LateCopyOfAnEndedAcquireGrantsNothing(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		arrive := make(chan struct{})
		a.fate("acquire", 1, redistest.Hold(arrive))
		endHold(t, s.begin(a.NewLock("l")).returns()) // by the second copy
		s.until(4 * time.Second)
		close(arrive)
		if err := a.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.free(a.NewLock("l"))
	})
}

// Fails when a hold that Redis no longer has is not ended there as well.
func TestF08LateCopyOfTheAcquireOfARemovedHoldGrantsNothing(t *testing.T) {
	for _, told := range []bool{true, false} {
		play(t, func(t *testing.T, s *scene) {
			a, b := s.actor(), s.actor()
			a.warm()
			arrive := make(chan struct{})
			a.fate("acquire", 1, redistest.Hold(arrive))
			held := s.begin(a.NewLock("l")).returns() // by the second copy
			if !told {
				a.link.HoleSubscribers() // the next renewal finds it
			}
			if _, err := b.NewLock("l").ForceUnlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-held.Lost()
			s.until(s.now() + 100*time.Millisecond)
			close(arrive)
			if err := a.link.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.free(b.NewLock("l"))
		})
	}
}

// Fails when acquire.lua does not compare the not-after.
func TestF08CopyThatArrivesAfterItsTimeGrantsNothing(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		arrive := make(chan struct{})
		a.fate("acquire", 1, redistest.Hold(arrive))
		endHold(t, s.begin(a.NewLock("l")).returns())
		s.until(11 * time.Second)
		s.srv.FlushAll() // nobody remembers the nonce
		close(arrive)
		if err := a.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.free(a.NewLock("l"))
	})
}

// Fails when release.lua does not keep the nonce of a request that may still arrive.
func TestF08LeaveThatOvertakesItsAcquireLeavesNoGhost(t *testing.T) {
	for _, busy := range []bool{true, false} {
		play(t, func(t *testing.T, s *scene) {
			a, b := s.actor(), s.actor()
			var held *relock.Hold
			if busy {
				held = s.take(a.NewLock("l"))
			}
			s.until(101 * time.Millisecond)
			arrive := make(chan struct{})
			b.fate("acquire", 1, redistest.Hold(arrive))
			waiter := s.begin(b.NewLock("l"))
			waiter.stop()
			<-waiter.done
			s.until(203 * time.Millisecond)
			close(arrive)
			if err := b.link.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if busy {
				if info := s.info(a.NewLock("l")); info.Waiters != 0 {
					t.Errorf("%d ghosts in the queue", info.Waiters)
				}
				endHold(t, held)
			}
			s.free(a.NewLock("l"))
		})
	}
}

// Fails when release.lua does not keep the nonce of a request that may still arrive.
func TestF08LateHeartbeatOfAnEndedWaiterGrantsNothing(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l", relock.TTL(3*time.Second)))
		arrive := make(chan struct{})
		b.fate("acquire", 1, redistest.Hold(arrive))
		s.until(1203 * time.Millisecond)
		endHold(t, held)
		endHold(t, waiter.holds())
		s.until(2 * time.Second)
		close(arrive)
		if err := b.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.free(a.NewLock("l"))
	})
}

// Fails when a client does not learn the server's clock from a refusal.
func TestF08ServerWhoseClockIsOtherwiseIsLockedAllTheSame(t *testing.T) {
	for _, step := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		play(t, func(t *testing.T, s *scene) {
			a := s.actor()
			s.srv.StepClock(step)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := a.NewLock("l").Lock(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// Fails when a release ends any session of the owner.
func TestF09LeaveSentAgainDoesNotEndTheGrantOfTheSameOwner(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		x, p1, p2, b := s.actor(), s.actor(), s.actor(), s.actor()
		held := s.take(x.NewLock("l"))
		s.until(101 * time.Millisecond)
		r1 := s.beginAs("w", p1.NewLock("l"))
		s.until(203 * time.Millisecond)
		r2 := s.beginAs("w", p2.NewLock("l"))
		s.until(305 * time.Millisecond)
		other := s.begin(b.NewLock("l"))
		p1.fate("release", 1, redistest.SwallowReply)
		r1.stop()
		<-r1.done
		s.until(407 * time.Millisecond)
		endHold(t, held)
		second := r2.holds()
		s.until(5 * time.Second)
		if n := p1.sent("release"); n < 3 { // one of them was to warm up
			t.Fatalf("release was sent %d times, want the leave to be sent again", n)
		}
		other.waits()
		endHold(t, second)
		other.holds()
	})
}

// Fails when a session is found by its owner alone.
func TestF09PollOfOneRequestIsNotAnsweredByAnotherOfItsOwner(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		x, p1, p2, b := s.actor(), s.actor(), s.actor(), s.actor()
		held := s.take(x.NewLock("l"))
		s.until(101 * time.Millisecond)
		r1 := s.beginAs("w", p1.NewLock("l"))
		s.until(203 * time.Millisecond)
		r2 := s.beginAs("w", p2.NewLock("l"))
		s.until(305 * time.Millisecond)
		other := s.begin(b.NewLock("l"))
		endHold(t, held)
		h1, h2 := r1.holds(), r2.holds()
		if n := s.holdsOf(x.NewLock("l")); n != 2 {
			t.Errorf("redis counts %d holds, want 2", n)
		}
		endHold(t, h1)
		other.waits()
		if err := h2.Err(); err != nil {
			t.Error(err)
		}
		endHold(t, h2)
		other.holds()
	})
}

// Fails when force.lua does not compare the token.
func TestF09ForceUnlockSentAgainDoesNotRemoveTheSuccessor(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, operator := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l"))
		operator.fate("force", 1, redistest.CutReply)
		if removed, err := operator.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Errorf("ForceUnlock: %v, %v, want true: an earlier try may have removed it", removed, err)
		}
		if n := operator.sent("force"); n != 2 {
			t.Fatalf("force was sent %d times, want twice", n)
		}
		next := waiter.holds()
		notTrusted(t, held)
		s.until(11 * time.Second) // beyond a renewal
		if err := next.Err(); err != nil {
			t.Errorf("the next holder: %v", err)
		}
		endHold(t, next)
	})
}

// Fails when force.lua does not compare the token: the owner's next grant is
// another one, though the owner is the same.
func TestF09CopyOfAForceUnlockLeavesTheNextGrantOfTheSameOwner(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, operator := s.actor(), s.actor()
		first := s.take(a.NewLock("l", relock.Owner("W")))
		late := make(chan struct{})
		operator.fate("force", 1, redistest.Duplicate(late))
		if removed, err := operator.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", removed, err)
		}
		s.until(time.Millisecond)
		notTrusted(t, first)
		next := s.take(a.NewLock("l", relock.Owner("W")))
		close(late)
		_ = operator.link.Settle(t.Context())
		s.until(11 * time.Second) // beyond a renewal
		if err := next.Err(); err != nil {
			t.Errorf("the next hold: %v", err)
		}
		endHold(t, next)
	})
}

// Fails when force.lua does not tell the loser.
func TestF09LoserOfAForceUnlockIsToldAtOnce(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, operator := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		removed, err := operator.NewLock("l").ForceUnlock(t.Context())
		if !removed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", removed, err)
		}
		s.until(time.Millisecond)
		notTrusted(t, held)
		if err := held.Release(); !errors.Is(err, relock.ErrLost) {
			t.Errorf("Release: %v, want ErrLost", err)
		}
	})
}

// Fails when what a second release finds gone counts as lost.
func TestF09UnlockWhoseReplyIsLostIsNoLoss(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		for _, v := range []redistest.Verdict{redistest.CutReply, redistest.SwallowReply} {
			held := s.take(a.NewLock("l"))
			a.fate("release", 1, v)
			if err := held.Release(); err != nil {
				t.Errorf("Release: %v, want nil", err)
			}
			s.free(a.NewLock("l"))
		}
	})
}

// Fails when what a first release finds gone does not count as lost.
func TestF09UnlockOfAHoldThatIsGoneIsALoss(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		held := s.take(a.NewLock("l"))
		s.rdb.Del(t.Context(), key.For("relock", "l").Hash)
		if err := held.Release(); !errors.Is(err, relock.ErrLost) {
			t.Errorf("Release: %v, want ErrLost", err)
		}
	})
}
