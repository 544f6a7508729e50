package contract_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// The new process of a rolling deployment waits, and the old one gives up its term between two pieces of work.
func TestALeaderLearnsThatAnotherCandidateWaits(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		wanted := make(chan struct{})
		old := rig.Beside(func() error {
			return a.NewElection("l").Run(t.Context(), func(ctx context.Context, term relock.Term) error {
				if rig.IsShut(term.Wanted()) {
					t.Error("wanted before anybody waits")
				}
				<-term.Wanted()
				close(wanted)
				return ctx.Err()
			})
		})
		synctest.Wait()
		began := s.Now()
		next := rig.Beside(func() error {
			return b.NewElection("l").Run(t.Context(), func(_ context.Context, term relock.Term) error {
				if rig.IsShut(term.Wanted()) {
					t.Error("the next leader is wanted, and nobody waits")
				}
				return nil
			})
		})
		<-wanted
		rig.Must(t, <-old)
		rig.Must(t, <-next)
		if gap := s.Now() - began; gap > 0 {
			t.Errorf("handed over after %v, want at once", gap)
		}
		if (relock.Term{}).Wanted() != nil {
			t.Error("a term that nobody leads is wanted")
		}
	})
}

func TestAMultiIsWantedWhenAnyOfItsLocksIs(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		h, err := relock.NewMulti(a.NewLock("1"), a.NewLock("2"), a.NewLock("3")).Acquire(t.Context())
		rig.Must(t, err)
		wanted := h.Wanted()
		synctest.Wait()
		if rig.IsShut(wanted) {
			t.Error("wanted, and nobody waits")
		}
		second, third := s.Begin(b.NewLock("2")), s.Begin(b.NewLock("3"))
		synctest.Wait()
		if !rig.IsShut(wanted) || wanted != h.Wanted() {
			t.Error("not wanted, and two wait")
		}
		rig.Must(t, h.Release())
		rig.End(t, second.Holds())
		rig.End(t, third.Holds())
		var none *relock.MultiHold
		if none.Wanted() != nil {
			t.Error("a hold that nobody made is wanted")
		}
	})
}

// One part of it was wanted before anybody asked.
func TestAMultiThatIsWantedAlreadySaysSo(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		h, err := relock.NewMulti(a.NewLock("1"), a.NewLock("2")).Acquire(t.Context())
		rig.Must(t, err)
		waiter := s.Begin(b.NewLock("2"))
		waiter.Waits()
		if !rig.IsShut(h.Wanted()) {
			t.Error("not wanted")
		}
		rig.Must(t, h.Release())
		rig.End(t, waiter.Holds())
	})
}

func TestAQuorumIsWantedWhenAnotherWaits(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		p := newPrimaries(s, 3)
		h, err := p.lock("l").Acquire(t.Context())
		rig.Must(t, err)
		synctest.Wait() // until all primaries are held
		wanted := h.Wanted()
		synctest.Wait()
		if rig.IsShut(wanted) {
			t.Error("wanted, and nobody waits")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waits := rig.Beside(func() error { return p.lock("l").Lock(ctx) })
		<-wanted
		if wanted != h.Wanted() {
			t.Error("another channel")
		}
		rig.Must(t, h.Release())
		rig.Must(t, <-waits)
		var none *relock.QuorumHold
		if none.Wanted() != nil {
			t.Error("a hold that nobody made is wanted")
		}
	})
}

// Who had the lock before in a run sends no heartbeats. It leaves the queue after the first renewal.
func TestALateWaiterWantsTheLastOfARun(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		h, other := lastOfARun(t, s)
		s.Until(s.Now() + time.Minute)
		wantWanted(t, "while nobody waits", h, false)
		waiter := s.Begin(other)
		waiter.Waits()
		wantWanted(t, "while another waits", h, true)
		rig.End(t, h)
		rig.End(t, waiter.Holds())
	})
}

// The messages are late: of a grant that was over before its client could believe it.
func TestAGrantThatIsNotBelievedDoesNotSayThatOthersWait(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		first, call := s.Take(b.NewLock("l")), s.Begin(a.NewLock("l"))
		call.Waits()
		nonces := s.Redis.ZRange(t.Context(), key.For("relock", "l").Queue, -1, -1).Val()
		for _, late := range []string{"grant " + nonces[0] + " 99 1 1 +", "wanted " + nonces[0]} {
			s.Redis.Publish(t.Context(), key.Inbox("relock", rig.ID(a.Client)), late)
			call.Waits()
		}
		rig.End(t, first)
		wantWanted(t, "alone", call.Holds(), false)
		rig.End(t, call.Hold)
	})
}

// A call of the same client comes while Redis refuses a wait on a condition.
func TestAHoldWhoseWaitIsRefusedIsWantedByWhoCameMeanwhile(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, gate := s.Actor(), make(chan struct{})
		l := a.NewLock("l")
		h := s.Take(l)
		wantWanted(t, "alone", h, false)
		a.Fate("await", 1, redistest.Hold(gate))
		s.Server.FailNext(1, "NOPERM this user may not", func(args []string) bool { return rig.ScriptSent(args) == "await" })
		waits := rig.Beside(func() error { return l.NewCond("c").Wait(h.Context(t.Context())) })
		synctest.Wait()
		call := s.Begin(a.NewLock("l"))
		call.Waits()
		close(gate)
		if err := <-waits; err == nil {
			t.Fatal("the wait was not refused")
		}
		rig.Must(t, h.Err())
		wantWanted(t, "after the refusal", h, true)
		rig.End(t, h)
		rig.End(t, call.Holds())
	})
}

// The grant names those of the same client behind it, and does not say that others wait.
func TestAWokenHoldIsWantedByTheCallsOfItsOwnClientBehindIt(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		l, other := a.NewLock("l", relock.Fair()), b.NewLock("l", relock.Fair())
		h := s.Take(l)
		waits := rig.Beside(func() error { return l.NewCond("c").Wait(h.Context(t.Context())) })
		synctest.Wait()
		signals := s.Take(other)
		rig.Must(t, other.NewCond("c").Signal(signals.Context(t.Context())))
		call := s.Begin(a.NewLock("l", relock.Fair()))
		call.Waits()
		wantWanted(t, "while it waits", h, false)
		s.Until(s.Now() + 11*time.Second) // heartbeats ask for the tokens of a run
		rig.End(t, signals)
		rig.Must(t, rig.Returned(t, waits))
		wantWanted(t, "when it holds again", h, true)
		rig.End(t, h)
		rig.End(t, call.Holds())
	})
}

// Fails when a writer that waits costs a message for each of any number of readers.
func TestAtMost128HoldersGetAMessage(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		var readers []*relock.Hold
		for i := range 140 {
			readers = append(readers, acquire(t, a.NewRWLock("l").RLocker(), s.By(fmt.Sprint("reader ", i))))
		}
		heard := s.Listen(a)
		writer := s.Begin(s.Actor().NewRWLock("l").WLocker())
		writer.Waits()
		if n := wants(heard()); n != 128 {
			t.Errorf("%d messages for 140 readers, want 128", n)
		}
		s.Until(s.Now() + 15*time.Second)
		for _, h := range readers { // the others hear with a renewal
			wantWanted(t, h.Owner(), h, true)
			rig.End(t, h)
		}
		rig.End(t, writer.Holds())
	})
}
