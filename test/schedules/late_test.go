package schedules_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when release.lua does not keep the nonce of a request that may still arrive.
func TestF08LateCopyOfAnEndedAcquireGrantsNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		arrive := make(chan struct{})
		a.Fate("acquire", 1, redistest.Hold(arrive))
		rig.End(t, s.Begin(a.NewLock("l")).Returns()) // by the second copy
		s.Until(4 * time.Second)
		close(arrive)
		rig.Must(t, a.Link.Settle(t.Context()))
		s.Free(a.NewLock("l"))
	})
}

// Fails when a hold that Redis no longer has is not ended there as well.
func TestF08LateCopyOfTheAcquireOfARemovedHoldGrantsNothing(t *testing.T) {
	for _, told := range []bool{true, false} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			a, b := s.Actor(), s.Actor()
			a.Warm()
			arrive := make(chan struct{})
			a.Fate("acquire", 1, redistest.Hold(arrive))
			held := s.Begin(a.NewLock("l")).Returns() // by the second copy
			if !told {
				a.Link.HoleSubscribers() // the next renewal finds it
			}
			if _, err := b.NewLock("l").ForceUnlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-held.Lost()
			s.Until(s.Now() + 100*time.Millisecond)
			close(arrive)
			rig.Must(t, a.Link.Settle(t.Context()))
			s.Free(b.NewLock("l"))
		})
	}
}

// Fails when acquire.lua does not compare the not-after.
func TestF08CopyThatArrivesAfterItsTimeGrantsNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		arrive := make(chan struct{})
		a.Fate("acquire", 1, redistest.Hold(arrive))
		rig.End(t, s.Begin(a.NewLock("l")).Returns())
		s.Until(11 * time.Second)
		s.Server.FlushAll() // nobody remembers the nonce
		close(arrive)
		rig.Must(t, a.Link.Settle(t.Context()))
		s.Free(a.NewLock("l"))
	})
}

// Fails when release.lua does not keep the nonce of a request that may still arrive.
func TestF08LeaveThatOvertakesItsAcquireLeavesNoGhost(t *testing.T) {
	for _, busy := range []bool{true, false} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			a, b := s.Actor(), s.Actor()
			var held *relock.Hold
			if busy {
				held = s.Take(a.NewLock("l"))
			}
			s.Until(101 * time.Millisecond)
			arrive := make(chan struct{})
			b.Fate("acquire", 1, redistest.Hold(arrive))
			waiter := s.Begin(b.NewLock("l"))
			waiter.Stop()
			<-waiter.Done
			s.Until(203 * time.Millisecond)
			close(arrive)
			rig.Must(t, b.Link.Settle(t.Context()))
			if busy {
				if info := s.Info(a.NewLock("l")); info.Waiters != 0 {
					t.Errorf("%d ghosts in the queue", info.Waiters)
				}
				rig.End(t, held)
			}
			s.Free(a.NewLock("l"))
		})
	}
}

// Fails when release.lua does not keep the nonce of a request that may still arrive.
func TestF08LateHeartbeatOfAnEndedWaiterGrantsNothing(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l", relock.TTL(3*time.Second)))
		arrive := make(chan struct{})
		b.Fate("acquire", 1, redistest.Hold(arrive))
		s.Until(1203 * time.Millisecond)
		rig.End(t, held)
		rig.End(t, waiter.Holds())
		s.Until(2 * time.Second)
		close(arrive)
		rig.Must(t, b.Link.Settle(t.Context()))
		s.Free(a.NewLock("l"))
	})
}

// A script forgets the requests whose copies count no more. Fails when it forgets this one too soon.
func TestF08LateCopyOfARequestThatWasGivenUpGrantsNothingThoughTheLockIsUsed(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		arrive := make(chan struct{})
		a.Fate("acquire", 1, redistest.Hold(arrive))
		began := s.Now()
		call := s.Begin(a.NewLock("l"))
		call.Stop()
		<-call.Done
		for _, after := range []time.Duration{time.Second, 9 * time.Second} { // a request counts for 10 s
			s.Until(began + after)
			rig.End(t, s.Take(b.NewLock("l")))
		}
		close(arrive)
		rig.Must(t, a.Link.Settle(t.Context()))
		s.Free(b.NewLock("l"))
	})
}

// Fails when a client does not learn the server's clock from a refusal.
func TestF08ServerWhoseClockIsOtherwiseIsLockedAllTheSame(t *testing.T) {
	for _, step := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			a := s.Actor()
			s.Server.StepClock(step)
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
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		x, p1, p2, b := s.Actor(), s.Actor(), s.Actor(), s.Actor()
		held := s.Take(x.NewLock("l"))
		s.Until(101 * time.Millisecond)
		r1 := s.BeginAs("w", p1.NewLock("l"))
		s.Until(203 * time.Millisecond)
		r2 := s.BeginAs("w", p2.NewLock("l"))
		s.Until(305 * time.Millisecond)
		other := s.Begin(b.NewLock("l"))
		p1.Fate("release", 1, redistest.SwallowReply)
		r1.Stop()
		<-r1.Done
		s.Until(407 * time.Millisecond)
		rig.End(t, held)
		second := r2.Holds()
		s.Until(5 * time.Second)
		if n := p1.Sent("release"); n < 3 { // one of them was to warm up
			t.Fatalf("release was sent %d times, want the leave to be sent again", n)
		}
		other.Waits()
		rig.End(t, second)
		other.Holds()
	})
}

// Fails when a session is found by its owner alone.
func TestF09PollOfOneRequestIsNotAnsweredByAnotherOfItsOwner(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		x, p1, p2, b := s.Actor(), s.Actor(), s.Actor(), s.Actor()
		held := s.Take(x.NewLock("l"))
		s.Until(101 * time.Millisecond)
		r1 := s.BeginAs("w", p1.NewLock("l"))
		s.Until(203 * time.Millisecond)
		r2 := s.BeginAs("w", p2.NewLock("l"))
		s.Until(305 * time.Millisecond)
		other := s.Begin(b.NewLock("l"))
		rig.End(t, held)
		h1, h2 := r1.Holds(), r2.Holds()
		if n := s.HoldsOf(x.NewLock("l")); n != 2 {
			t.Errorf("redis counts %d holds, want 2", n)
		}
		rig.End(t, h1)
		other.Waits()
		if err := h2.Err(); err != nil {
			t.Error(err)
		}
		rig.End(t, h2)
		other.Holds()
	})
}

// Fails when force.lua does not compare the token.
func TestF09ForceUnlockSentAgainDoesNotRemoveTheSuccessor(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, operator := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l"))
		operator.Fate("force", 1, redistest.CutReply)
		if removed, err := operator.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Errorf("ForceUnlock: %v, %v, want true: an earlier try may have removed it", removed, err)
		}
		if n := operator.Sent("force"); n != 2 {
			t.Fatalf("force was sent %d times, want twice", n)
		}
		next := waiter.Holds()
		rig.NotTrusted(t, held)
		s.Until(11 * time.Second) // beyond a renewal
		if err := next.Err(); err != nil {
			t.Errorf("the next holder: %v", err)
		}
		rig.End(t, next)
	})
}

// Fails when force.lua does not compare the token: the owner's next grant is
// another one, though the owner is the same.
func TestF09CopyOfAForceUnlockLeavesTheNextGrantOfTheSameOwner(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, operator := s.Actor(), s.Actor()
		first := s.Take(a.NewLock("l", relock.Owner("W")))
		late := make(chan struct{})
		operator.Fate("force", 1, redistest.Duplicate(late))
		if removed, err := operator.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", removed, err)
		}
		s.Until(time.Millisecond)
		rig.NotTrusted(t, first)
		rig.WantIs(t, first.Release(), relock.ErrLost) // the owner must unlock what it has lost
		next := s.Take(a.NewLock("l", relock.Owner("W")))
		close(late)
		_ = operator.Link.Settle(t.Context())
		s.Until(11 * time.Second) // beyond a renewal
		if err := next.Err(); err != nil {
			t.Errorf("the next hold: %v", err)
		}
		rig.End(t, next)
	})
}

// Fails when force.lua does not tell the loser.
func TestF09LoserOfAForceUnlockIsToldAtOnce(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, operator := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		removed, err := operator.NewLock("l").ForceUnlock(t.Context())
		if !removed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", removed, err)
		}
		s.Until(time.Millisecond)
		rig.NotTrusted(t, held)
		if err := held.Release(); !errors.Is(err, relock.ErrLost) {
			t.Errorf("Release: %v, want ErrLost", err)
		}
	})
}

// Fails when what a second release finds gone counts as lost.
func TestF09UnlockWhoseReplyIsLostIsNoLoss(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		for _, v := range []redistest.Verdict{redistest.CutReply, redistest.SwallowReply} {
			held := s.Take(a.NewLock("l"))
			a.Fate("release", 1, v)
			if err := held.Release(); err != nil {
				t.Errorf("Release: %v, want nil", err)
			}
			s.Free(a.NewLock("l"))
		}
	})
}

// Fails when what a first release finds gone does not count as lost.
func TestF09UnlockOfAHoldThatIsGoneIsALoss(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Redis.Del(t.Context(), key.For("relock", "l").Hash)
		if err := held.Release(); !errors.Is(err, relock.ErrLost) {
			t.Errorf("Release: %v, want ErrLost", err)
		}
	})
}
