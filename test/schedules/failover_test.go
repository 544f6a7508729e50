package schedules_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// follows is a client whose commands go to another server after a failover, while
// the connection of its subscription has not noticed: as where the old primary
// hangs, or was cut off.
type follows struct {
	*redis.Client               // whose commands are under way
	old           *redis.Client // has the subscription
}

func (f *follows) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return f.old.Subscribe(ctx, channels...)
}

// hearsOther returns a process whose inbox is on another server.
func hearsOther(s *rig.Lab, other *redistest.Server) *rig.Actor {
	s.T.Helper()
	link := redistest.NewLink(s.T, s.Server.Dial)
	rdb := s.Server.Client(s.T, func(o *redis.Options) { o.Dialer = link.Dial })
	return s.ActorOver(&follows{rdb, other.Client(s.T)}, link)
}

// Fails when a client without a new connection of its inbox does not ask.
func TestF16ReleaseIsSentAgainByAClientThatHearsTheOldServer(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := hearsOther(s, redistest.Start(t))
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		restore := s.Keep("l")
		rig.End(t, held)
		restore()
		waiter := s.Begin(s.Actor().NewLock("l"))
		waiter.Returns()
		if waiter.At > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.At)
		}
	})
}

// Fails when an inbox that is not on the server of the scripts is taken for a
// failover each time.
func TestF16InboxThatIsElsewhereByDesignIsLeftThere(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := hearsOther(s, redistest.Start(t))
		rig.End(t, s.Take(a.NewLock("l")))
		s.Until(29 * time.Second)
		if n := a.Sent("where"); n < 10 {
			t.Errorf("asked %d times, want every 2 s", n)
		}
		if n := a.Sent("release"); n > 3 {
			t.Errorf("released %d times, want three at most", n)
		}
	})
}

// Fails when what is sent again frees another hold of the same owner.
func TestF16ReleaseSentAgainFreesNoLaterHold(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		l := a.NewLock("l", relock.Owner("w"))
		for range 3 {
			rig.End(t, s.Take(l))
		}
		held := s.Take(l)
		s.Until(time.Second)
		before := a.Sent("release")
		s.Server.KillSubscribers()
		s.Until(3 * time.Second)
		if n := a.Sent("release") - before; n < 3 {
			t.Fatalf("%d releases were sent again, want three", n)
		}
		if err := held.Err(); err != nil || s.HoldsOf(l) != 1 {
			t.Errorf("the hold that followed: %v, redis has %d", err, s.HoldsOf(l))
		}
		rig.End(t, held)
	})
}

// Fails when a repeat that failed is given up.
func TestF16ReleaseIsSentAgainUntilItIsAnswered(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		restore := s.Keep("l")
		rig.End(t, held)
		restore()
		a.Fate("release", 1, redistest.SwallowReply)
		s.Server.FailNext(2, "LOADING not yet", func(args []string) bool { return rig.ScriptSent(args) == "release" })
		s.Server.KillSubscribers()
		waiter := s.Begin(b.NewLock("l"))
		waiter.Returns()
		if waiter.At > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.At)
		}
	})
}

// Fails when a client asks without end.
func TestF16ClientAsksWhileItRemembers(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		rig.End(t, s.Take(a.NewLock("l", relock.TTL(10*time.Second))))
		s.Until(9 * time.Second)
		if n := a.Sent("where"); n == 0 || n > 5 {
			t.Errorf("asked %d times in 9 s, want every 2 s", n)
		}
		s.Until(31 * time.Second)
		before := a.Sent("where")
		s.Until(2 * time.Minute)
		if n := a.Sent("where") - before; n > 1 {
			t.Errorf("asked %d times after the leases, want no more", n)
		}
	})
}

// Fails when a release that is sent again does not say until when a copy of its
// acquire may arrive: the new server has forgotten that with the release.
func TestF16ReleaseSentAgainRefusesALateCopyOfItsAcquire(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		arrive := make(chan struct{})
		a.Fate("acquire", 1, redistest.Hold(arrive))
		held := s.Begin(a.NewLock("l")).Returns() // by the second copy
		restore := s.Keep("l")
		rig.End(t, held)
		restore()
		s.Server.KillSubscribers()
		s.Until(4 * time.Second)
		close(arrive)
		rig.Must(t, a.Link.Settle(t.Context()))
		s.Free(a.NewLock("l"))
	})
}
