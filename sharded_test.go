package relock_test

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
)

// shardedScene is a schedule on a server that knows sharded pub/sub.
type shardedScene struct {
	*scene
	shard *redistest.Shard
}

func playSharded(t *testing.T, schedule func(t *testing.T, s *shardedScene)) {
	t.Helper()
	play(t, func(t *testing.T, s *scene) {
		schedule(t, &shardedScene{s, s.srv.Shard()})
	})
}

// sharded returns a process with the option.
func (s *shardedScene) sharded(opts ...relock.Option) *actor {
	s.t.Helper()
	return s.actor(append(opts, relock.ShardedPubSub())...)
}

func (s *shardedScene) channel(a *actor, name string) string {
	return key.ShardInbox("relock", key.Hash("relock", name), a.ID())
}

func (s *shardedScene) channels(want int) {
	s.t.Helper()
	synctest.Wait()
	if got := s.shard.Channels(); got != want {
		s.t.Errorf("%d sharded channels, want %d", got, want)
	}
}

func TestShardedWaiterIsWokenByMessage(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		// Whoever wakes and whoever waits may have the option or not.
		for i, pair := range [][2]*actor{{s.sharded(), s.sharded()}, {s.actor(), s.sharded()}, {s.sharded(), s.actor()}} {
			for _, name := range []string{"l", "a b", "{tag}: l", "}{"} {
				name = fmt.Sprint(name, i)
				a, b := pair[0].NewLock(name), pair[1].NewLock(name)
				held := s.take(a)
				waiter := s.begin(b)
				s.until(s.now() + 101*time.Millisecond)
				waiter.waits()
				asked := pair[1].sent("acquire")
				endHold(t, held)
				held = waiter.holds()
				if n := pair[1].sent("acquire") - asked; n > 0 {
					t.Errorf("the waiter has asked %d times, want it to be told that it holds", n)
				}
				endHold(t, held)
			}
		}
		if n := len(s.rdb.PubSubChannels(t.Context(), "*").Val()); n != 2 {
			t.Errorf("%d plain channels, want those of two processes without the option", n)
		}
	})
}

func TestShardedChannelIsSubscribedWhileSomebodyWaits(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.sharded(), s.sharded()
		held := s.take(a.NewLock("l"))
		if ok, err := b.NewLock("l").TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("TryLock = %v, %v", ok, err)
		}
		s.channels(0)
		waiter, other := s.begin(b.NewLock("l")), s.begin(b.NewLock("l"))
		s.channels(1)
		s.until(time.Hour / 2)
		s.channels(1)
		endHold(t, held)
		held = waiter.holds()
		s.until(s.now() + 10*time.Second)
		s.channels(1)
		endHold(t, held)
		held = other.holds()
		s.until(s.now() + 10*time.Second)
		s.channels(0)
		endHold(t, held)
	})
}

// Fails when it is not asked who hears on a sharded channel.
func TestShardedWaiterThatIsGoneIsPassedOver(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, dead, live := s.actor(), s.sharded(), s.sharded()
		held := s.take(a.NewLock("l"))
		s.begin(dead.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(live.NewLock("l"))
		dead.link.Cut()
		s.until(203 * time.Millisecond)
		endHold(t, held)
		endHold(t, waiter.holds())
	})
}

func TestShardedLocksOfOneTagShareAChannel(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.sharded(), s.sharded()
		var held []*relock.Hold
		var waiters []*call
		for _, name := range []string{"{tag}1", "{tag}2", "tag"} {
			held = append(held, s.take(a.NewLock(name)))
			waiters = append(waiters, s.begin(b.NewLock(name)))
		}
		s.channels(1)
		s.shard.MoveAway(s.channel(b, "tag"))
		s.until(s.now() + time.Second)
		s.channels(1)
		for i := range held {
			endHold(t, held[i])
			endHold(t, waiters[i].holds())
		}
	})
}

func TestHundredShardedWaitersShareOneConnection(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.sharded(), s.sharded()
		var held []*relock.Hold
		var waiters []*call
		for i := range 100 {
			held = append(held, s.take(a.NewLock(fmt.Sprint("l", i))))
			waiters = append(waiters, s.begin(b.NewLock(fmt.Sprint("l", i))))
		}
		s.channels(100)
		if n := s.shard.Connections(); n != 1 {
			t.Errorf("%d connections are subscribed, want 1", n)
		}
		for i := range held {
			endHold(t, held[i])
			endHold(t, waiters[i].holds())
		}
		s.until(s.now() + 10*time.Second)
		s.channels(0)
	})
}

// Fails when what broke a subscription is the end of it, or nobody asks what was missed.
func TestShardedWaiterHearsAgainAfter(t *testing.T) {
	for what, breaks := range map[string]func(s *shardedScene, b *actor){
		"its slot has moved":            func(s *shardedScene, b *actor) { s.shard.MoveAway(s.channel(b, "l")) },
		"its connection was closed":     func(s *shardedScene, _ *actor) { s.srv.KillSubscribers() },
		"its connection went half open": func(_ *shardedScene, b *actor) { b.link.HoleSubscribers() },
		"it was sent away for a while": func(s *shardedScene, b *actor) {
			s.shard.Refuse(func(string) string { return "MOVED 1 192.0.2.9:6379" })
			s.shard.MoveAway(s.channel(b, "l"))
			time.AfterFunc(3*time.Second, func() { s.shard.Refuse(nil) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			playSharded(t, func(t *testing.T, s *shardedScene) {
				a, b := s.sharded(), s.sharded()
				held := s.take(a.NewLock("l"))
				waiter := s.begin(b.NewLock("l"))
				s.until(101 * time.Millisecond)
				breaks(s, b)
				s.until(15 * time.Second) // the heartbeat at 10 s may have had no echo
				waiter.waits()
				endHold(t, held)
				endHold(t, waiter.holds())
			})
		})
	}
}

// Fails when a new subscription does not ask: the grant was told to nobody.
func TestShardedGrantThatWasMissedIsFoundAfterTheNewSubscription(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.actor(), s.sharded()
		held := s.take(a.NewLock("l"))
		waiter := s.begin(b.NewLock("l"))
		s.until(101 * time.Millisecond)
		s.shard.Refuse(func(string) string { return "MOVED 1 192.0.2.9:6379" })
		s.shard.MoveAway(s.channel(b, "l"))
		endHold(t, held)
		waiter.waits()
		s.shard.Refuse(nil)
		s.until(5 * time.Second) // its heartbeat would be at 10 s
		endHold(t, waiter.holds())
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
		held := s.take(a.NewLock("l"))
		force()
		s.until(11 * time.Second) // by its renewal
		if held.Err() == nil {
			t.Error("the hold is trusted after its renewal")
		}
		_ = held.Release()
		held = s.take(a.NewLock("l"))
		waiter := s.begin(a.NewLock("l", relock.Owner("other")))
		force()
		synctest.Wait()
		if held.Err() == nil {
			t.Error("the hold is trusted although the client heard")
		}
		_ = held.Release()
		endHold(t, waiter.holds())
	})
}

func TestServerWithoutShardedPubSubIsToldAtTheFirstCall(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		c := open(t, s.srv.Client(t), relock.ShardedPubSub())
		err := c.NewLock("l").Lock(t.Context())
		if err == nil || !strings.Contains(err.Error(), "needs Redis 7.0") {
			t.Errorf("Lock = %v", err)
		}
		if n := len(s.rdb.Keys(t.Context(), "*").Val()); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

func TestShardedClientClosesItsSubscriptions(t *testing.T) {
	playSharded(t, func(t *testing.T, s *shardedScene) {
		a, b := s.sharded(), s.sharded()
		held := s.take(a.NewLock("l"))
		s.take(a.NewLock("other"))
		waiter := start(func() error { return b.NewLock("l").Lock(t.Context()) })
		gone, stop := context.WithCancel(t.Context())
		lingers := start(func() error { return b.NewLock("other").Lock(gone) })
		waiter.pending(t, "Lock")
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
		endHold(t, held)
	})
}
