package relock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/redistest"
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
func (s *scene) hearsOther(other *redistest.Server) *actor {
	s.t.Helper()
	link := redistest.NewLink(s.t, s.srv.Dial)
	rdb := s.srv.Client(s.t, func(o *redis.Options) { o.Dialer = link.Dial })
	a := newActor(s.t, &follows{rdb, other.Client(s.t)}, link)
	a.SetClock(clock.New(time.Now, nil))
	return a
}

// Fails when a client without a new connection of its inbox does not ask.
func TestF16ReleaseIsSentAgainByAClientThatHearsTheOldServer(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.hearsOther(redistest.Start(t))
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		restore := s.keep("l")
		endHold(t, held)
		restore()
		waiter := s.begin(s.actor().NewLock("l"))
		waiter.returns()
		if waiter.at > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.at)
		}
	})
}

// Fails when an inbox that is not on the server of the scripts is taken for a
// failover each time.
func TestF16InboxThatIsElsewhereByDesignIsLeftThere(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.hearsOther(redistest.Start(t))
		endHold(t, s.take(a.NewLock("l")))
		s.until(29 * time.Second)
		if n := a.sent("where"); n < 10 {
			t.Errorf("asked %d times, want every 2 s", n)
		}
		if n := a.sent("release"); n > 3 {
			t.Errorf("released %d times, want three at most", n)
		}
	})
}

// Fails when what is sent again frees another hold of the same owner.
func TestF16ReleaseSentAgainFreesNoLaterHold(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		l := a.NewLock("l", relock.Owner("w"))
		for range 3 {
			endHold(t, s.take(l))
		}
		held := s.take(l)
		s.until(time.Second)
		before := a.sent("release")
		s.srv.KillSubscribers()
		s.until(3 * time.Second)
		if n := a.sent("release") - before; n < 3 {
			t.Fatalf("%d releases were sent again, want three", n)
		}
		if err := held.Err(); err != nil || s.holdsOf(l) != 1 {
			t.Errorf("the hold that followed: %v, redis has %d", err, s.holdsOf(l))
		}
		endHold(t, held)
	})
}

// Fails when a repeat that failed is given up.
func TestF16ReleaseIsSentAgainUntilItIsAnswered(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		restore := s.keep("l")
		endHold(t, held)
		restore()
		a.fate("release", 1, redistest.SwallowReply)
		s.srv.FailNext(2, "LOADING not yet", func(args []string) bool { return scriptSent(args) == "release" })
		s.srv.KillSubscribers()
		waiter := s.begin(b.NewLock("l"))
		waiter.returns()
		if waiter.at > 5*time.Second {
			t.Errorf("holds at %v, want within 5 s of the new server", waiter.at)
		}
	})
}

// Fails when a client asks without end.
func TestF16ClientAsksWhileItRemembers(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		endHold(t, s.take(a.NewLock("l", relock.TTL(10*time.Second))))
		s.until(9 * time.Second)
		if n := a.sent("where"); n == 0 || n > 5 {
			t.Errorf("asked %d times in 9 s, want every 2 s", n)
		}
		s.until(31 * time.Second)
		before := a.sent("where")
		s.until(2 * time.Minute)
		if n := a.sent("where") - before; n > 1 {
			t.Errorf("asked %d times after the leases, want no more", n)
		}
		if a.Remembers() {
			t.Error("it still looks after what has ended")
		}
	})
}

// Fails when a release that is sent again does not say until when a copy of its
// acquire may arrive: the new server has forgotten that with the release.
func TestF16ReleaseSentAgainRefusesALateCopyOfItsAcquire(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		arrive := make(chan struct{})
		a.fate("acquire", 1, redistest.Hold(arrive))
		held := s.begin(a.NewLock("l")).returns() // by the second copy
		restore := s.keep("l")
		endHold(t, held)
		restore()
		s.srv.KillSubscribers()
		s.until(4 * time.Second)
		close(arrive)
		if err := a.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.free(a.NewLock("l"))
	})
}
