package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// shardedScene is a schedule on a server that knows sharded pub/sub.
type shardedScene struct {
	*rig.Lab
	shard *redistest.Shard
}

func playSharded(t *testing.T, schedule func(t *testing.T, s *shardedScene)) {
	t.Helper()
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		schedule(t, &shardedScene{s, s.Server.Shard()})
	})
}

// sharded returns a process with the option.
func (s *shardedScene) sharded(opts ...relock.Option) *rig.Actor {
	s.T.Helper()
	return s.Actor(append(opts, relock.ShardedPubSub())...)
}

func (s *shardedScene) channel(a *rig.Actor, name string) string {
	return key.ShardInbox("relock", key.Hash("relock", name), rig.ID(a.Client))
}

func (s *shardedScene) channels(want int) {
	s.T.Helper()
	synctest.Wait()
	if got := s.shard.Channels(); got != want {
		s.T.Errorf("%d sharded channels, want %d", got, want)
	}
}

// nothingPlain returns what fails the test if a message has been sent on a plain channel since.
func (s *shardedScene) nothingPlain() (assert func()) {
	s.T.Helper()
	all := s.Redis.PSubscribe(s.T.Context(), "*")
	s.T.Cleanup(func() { _ = all.Close() })
	_, err := all.Receive(s.T.Context())
	rig.Must(s.T, err)
	heard := all.Channel()
	return func() {
		s.T.Helper()
		synctest.Wait()
		if n := len(heard); n > 0 {
			s.T.Errorf("%d messages of sharded clients on plain channels", n)
		}
	}
}

func TestShardedWaiterIsWokenByMessage(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		// Whoever wakes and whoever waits may have the option or not.
		for i, pair := range [][2]*rig.Actor{{s.sharded(), s.sharded()}, {s.Actor(), s.sharded()}, {s.sharded(), s.Actor()}} {
			for _, name := range []string{"l", "a b", "{tag}: l", "}{"} {
				name = fmt.Sprint(name, i)
				a, b := pair[0].NewLock(name), pair[1].NewLock(name)
				held := s.Take(a)
				waiter := s.Begin(b)
				s.Until(s.Now() + 101*time.Millisecond)
				waiter.Waits()
				if noted, err := s.Redis.HExists(t.Context(), key.For("relock", name).Hash, "unseen").Result(); noted || err != nil {
					t.Errorf("%s: the waiter is not seen to be subscribed: %v, %v", name, noted, err)
				}
				asked := pair[1].Sent("acquire")
				rig.End(t, held)
				held = waiter.Holds()
				if n := pair[1].Sent("acquire") - asked; n > 0 {
					t.Errorf("the waiter has asked %d times, want it to be told that it holds", n)
				}
				rig.End(t, held)
			}
		}
		if n := len(s.Redis.PubSubChannels(t.Context(), "*").Val()); n != 2 {
			t.Errorf("%d plain channels, want those of two processes without the option", n)
		}
	})
}

func TestShardedChannelIsSubscribedWhileSomebodyWaits(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.sharded(), s.sharded()
		held := s.Take(a.NewLock("l"))
		if ok, err := b.NewLock("l").TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("TryLock = %v, %v", ok, err)
		}
		s.channels(0)
		waiter, other := s.Begin(b.NewLock("l")), s.Begin(b.NewLock("l"))
		s.channels(1)
		s.Until(time.Hour / 2)
		s.channels(1)
		rig.End(t, held)
		held = waiter.Holds()
		s.Until(s.Now() + 10*time.Second)
		s.channels(1)
		rig.End(t, held)
		held = other.Holds()
		s.Until(s.Now() + 10*time.Second)
		s.channels(0)
		rig.End(t, held)
	})
}

// Fails when only a channel that could be subscribed is given up: the client would try for ever, and then stay there.
func TestShardedChannelThatCannotBeSubscribedIsGivenUpWithItsWaiter(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		held := s.Take(s.sharded().NewLock("l"))
		s.shard.Refuse(func(string) string { return "CLUSTERDOWN Hash slot not served" })
		waiter := s.Begin(s.sharded().NewLock("l"))
		s.Until(s.Now() + time.Second)
		waiter.Waits()
		waiter.Stop()
		<-waiter.Done
		s.shard.Refuse(nil)
		s.Until(s.Now() + time.Minute)
		s.channels(0)
		rig.End(t, held)
	})
}

// Fails when it is not asked who hears on a sharded channel.
func TestShardedWaiterThatIsGoneIsPassedOver(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, dead, live := s.Actor(), s.sharded(), s.sharded()
		held := s.Take(a.NewLock("l"))
		s.Begin(dead.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(live.NewLock("l"))
		dead.Link.Cut()
		s.Until(203 * time.Millisecond)
		rig.End(t, held)
		rig.End(t, waiter.Holds())
	})
}

func TestShardedLocksOfOneTagShareAChannel(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.sharded(), s.sharded()
		var held []*relock.Hold
		var waiters []*rig.Call
		for _, name := range []string{"{tag}1", "{tag}2", "tag"} {
			held = append(held, s.Take(a.NewLock(name)))
			waiters = append(waiters, s.Begin(b.NewLock(name)))
		}
		s.channels(1)
		s.shard.MoveAway(s.channel(b, "tag"))
		s.Until(s.Now() + time.Second)
		s.channels(1)
		for i := range held {
			rig.End(t, held[i])
			rig.End(t, waiters[i].Holds())
		}
	})
}

func TestHundredShardedWaitersShareOneConnection(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.sharded(), s.sharded()
		var held []*relock.Hold
		var waiters []*rig.Call
		for i := range 100 {
			held = append(held, s.Take(a.NewLock(fmt.Sprint("l", i))))
			waiters = append(waiters, s.Begin(b.NewLock(fmt.Sprint("l", i))))
		}
		s.channels(100)
		if n := s.shard.Connections(); n != 1 {
			t.Errorf("%d connections are subscribed, want 1", n)
		}
		for i := range held {
			rig.End(t, held[i])
			rig.End(t, waiters[i].Holds())
		}
		s.Until(s.Now() + 10*time.Second)
		s.channels(0)
	})
}

// Fails when what broke a subscription is the end of it, or nobody asks what was missed.
func TestShardedWaiterHearsAgainAfter(t *testing.T) {
	for what, breaks := range map[string]func(s *shardedScene, b *rig.Actor){
		"its slot has moved":            func(s *shardedScene, b *rig.Actor) { s.shard.MoveAway(s.channel(b, "l")) },
		"its connection was closed":     func(s *shardedScene, _ *rig.Actor) { s.Server.KillSubscribers() },
		"its connection went half open": func(_ *shardedScene, b *rig.Actor) { b.Link.HoleSubscribers() },
		"it was sent away for a while": func(s *shardedScene, b *rig.Actor) {
			s.shard.Refuse(func(string) string { return "MOVED 1 192.0.2.9:6379" })
			s.shard.MoveAway(s.channel(b, "l"))
			time.AfterFunc(3*time.Second, func() { s.shard.Refuse(nil) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			playSharded(t, func(t *testing.T, s *shardedScene) {
				a, b := s.sharded(), s.sharded()
				held := s.Take(a.NewLock("l"))
				waiter := s.Begin(b.NewLock("l"))
				s.Until(101 * time.Millisecond)
				breaks(s, b)
				s.Until(15 * time.Second) // the heartbeat at 10 s may have had no echo
				waiter.Waits()
				rig.End(t, held)
				rig.End(t, waiter.Holds())
			})
		})
	}
}

// Fails when a new subscription does not ask: the grant was told to nobody.
func TestShardedGrantThatWasMissedIsFoundAfterTheNewSubscription(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.Actor(), s.sharded()
		held := s.Take(a.NewLock("l"))
		waiter := s.Begin(b.NewLock("l"))
		s.Until(101 * time.Millisecond)
		s.shard.Refuse(func(string) string { return "MOVED 1 192.0.2.9:6379" })
		s.shard.MoveAway(s.channel(b, "l"))
		rig.End(t, held)
		waiter.Waits()
		s.shard.Refuse(nil)
		s.Until(5 * time.Second) // its heartbeat would be at 10 s
		rig.End(t, waiter.Holds())
	})
}

func TestShardedHolderIsToldOfItsRemoval(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.sharded(), s.sharded()
		force := func() {
			t.Helper()
			if removed, err := b.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
				t.Fatalf("ForceUnlock = %v, %v", removed, err)
			}
		}
		held := s.Take(a.NewLock("l"))
		force()
		s.Until(11 * time.Second) // by its renewal
		if held.Err() == nil {
			t.Error("the hold is trusted after its renewal")
		}
		_ = held.Release()
		held = s.Take(a.NewLock("l"))
		waiter := s.Begin(a.NewLock("l", relock.Owner("other")))
		force()
		synctest.Wait()
		if held.Err() == nil {
			t.Error("the hold is trusted although the client heard")
		}
		_ = held.Release()
		rig.End(t, waiter.Holds())
	})
}

// A holder that does not wait listens nowhere. Fails when a message that nobody has heard is published to all servers.
func TestShardedMessagesAreNeverPlainOnes(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		none := s.nothingPlain()
		a, b := s.sharded(), s.sharded()
		held := s.Take(a.NewLock("l"))
		waiter := s.Begin(b.NewLock("l"))
		rig.End(t, held)
		held = waiter.Holds()
		s.Until(10 * time.Second) // by now b does not listen any more
		s.channels(0)
		removed, err := a.NewLock("l").ForceUnlock(t.Context())
		if rig.Must(t, err); !removed {
			t.Error("nothing was removed")
		}
		none()
		rig.WantIs(t, held.Release(), relock.ErrLost)
	})
}

// The branch's client listens on the lock's channel, because it waits for that lock too.
// Fails when the branch is told of its ancestor's end by a message to all servers.
func TestShardedBranchIsToldOfTheEndOfItsAncestorByNoPlainMessage(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		none := s.nothingPlain()
		l, flow := s.sharded().NewLock("l"), s.By("flow")
		outer, err := l.Acquire(flow)
		rig.Must(t, err)
		inner, err := l.Acquire(relock.WithChildOwner(flow))
		rig.Must(t, err)
		waiter := s.Begin(l)
		waiter.Waits()
		s.channels(1)
		rig.End(t, outer)
		none()
		rig.WantIs(t, inner.Release(), relock.ErrLost)
		rig.End(t, waiter.Holds())
	})
}

func TestServerWithoutShardedPubSubIsToldAtTheFirstCall(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		c := rig.Open(t, s.Server.Client(t), relock.ShardedPubSub())
		err := c.NewLock("l").Lock(t.Context())
		if err == nil || !strings.Contains(err.Error(), "the server lacks: spublish") {
			t.Errorf("Lock = %v", err)
		}
		if n := len(s.Redis.Keys(t.Context(), "*").Val()); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

func TestShardedClientClosesItsSubscriptions(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.sharded(), s.sharded()
		held := s.Take(a.NewLock("l"))
		s.Take(a.NewLock("other"))
		waiter := rig.Beside(func() error { return b.NewLock("l").Lock(t.Context()) })
		gone, stop := context.WithCancel(t.Context())
		lingers := rig.Beside(func() error { return b.NewLock("other").Lock(gone) })
		waiter.Pending(t, "Lock")
		s.channels(2)
		stop()
		if err := <-lingers; !errors.Is(err, context.Canceled) {
			t.Errorf("Lock whose context has ended = %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-waiter; !errors.Is(err, relock.ErrClosed) {
			t.Errorf("Lock of a closed client = %v", err)
		}
		s.channels(0)
		rig.End(t, held)
	})
}
