package relock_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
)

// listen returns the messages that a process' inbox gets, so far.
func (s *scene) listen(a *actor) (heard func() []string) {
	s.t.Helper()
	sub := s.rdb.Subscribe(s.t.Context(), key.Inbox("relock", a.ID()))
	s.t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	var all []string
	messages := sub.Channel(redis.WithChannelSize(1000))
	return func() []string {
		synctest.Wait()
		for len(messages) > 0 {
			all = append(all, (<-messages).Payload)
		}
		return all
	}
}

// grants are the messages among them that say "you hold".
func grants(messages []string) (all []string) {
	for _, m := range messages {
		if strings.HasPrefix(m, "grant ") {
			all = append(all, m)
		}
	}
	return all
}

func (s *scene) publish(a *actor, message string) {
	s.t.Helper()
	if err := s.rdb.Publish(s.t.Context(), key.Inbox("relock", a.ID()), message).Err(); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// Fails when a grant with a nonce that nobody here has is taken by whoever waits.
func TestF04ForgedGrantIsNotBelieved(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l"))
		for _, op := range []int{1, 2, 3, 0} { // the numbers are easy to guess, the nonce is not
			s.publish(b, fmt.Sprintf("grant %022d %d 7 7", 0, op))
		}
		for _, garbage := range []string{"", "grant", "grant x", "lost", "look y", "grant " + strings.Repeat("9", 100), "\x00"} {
			s.publish(b, garbage)
		}
		waiter.waits()
		endHold(t, held)
		waiter.holds()
	})
}

// Fails when a grant with a nonce that nobody here has is taken by whoever waits.
func TestF04ReplayedGrantIsNotBelieved(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		heard := s.listen(b)
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l"))
		endHold(t, held)
		first := waiter.holds()
		seen := grants(heard())
		if len(seen) != 1 {
			t.Fatalf("%d grants in %q, want one", len(seen), heard())
		}
		s.publish(b, seen[0]) // while it holds
		endHold(t, first)
		again := s.take(a.NewLock("l"))
		s.until(203 * time.Millisecond)
		waiter = s.begin(b.NewLock("l"))
		s.publish(b, seen[0]) // while it waits again
		waiter.waits()
		endHold(t, again)
		waiter.holds()
	})
}

// Fails when a grant is believed although a later request was answered "queued".
func TestF04GrantThatALaterAnswerOverruledIsNotBelieved(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l", relock.TTL(3*time.Second)))
		heard := s.listen(b)
		b.link.HoleSubscribers()
		endHold(t, held) // b is granted, and does not hear of it
		if n := len(grants(heard())); n != 1 {
			t.Fatalf("%d grants, want one", n)
		}
		if removed, err := a.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", removed, err)
		}
		held = s.take(a.NewLock("l"))
		s.until(1500 * time.Millisecond) // a heartbeat of b was answered "queued"
		waiter.waits()
		s.until(3 * time.Second) // its inbox hears again
		s.publish(b, grants(heard())[0])
		waiter.waits()
		endHold(t, held)
		waiter.returns()
	})
}

// Fails when a grant for an unknown nonce is not answered with its release.
func TestF04GrantThatNobodyWaitsForIsPassedOn(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		gone := s.begin(b.NewLock("l"))
		restore := s.keep("l")
		gone.stop()
		<-gone.done
		s.until(203 * time.Millisecond)
		restore() // a failover that lost the leave
		next := s.begin(c.NewLock("l"))
		endHold(t, held) // to b, who has gone
		next.holds()
	})
}

// Fails when a client's public name is its inbox.
func TestF04SecretsStayInTheProtocol(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		var seen strings.Builder
		note := func(ev relock.Event) { fmt.Fprintf(&seen, "%+v\n", ev) }
		a, b := s.actor(relock.Trace(relock.Hooks{Released: note, Lost: note})), s.actor()
		heard := s.listen(b)
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		waiter := s.begin(b.NewLock("l"))
		waiters, err := a.NewLock("l").Waiters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&seen, "%+v %+v\n", s.info(a.NewLock("l")), waiters)
		endHold(t, held)
		waiter.holds()
		fmt.Fprintf(&seen, "%+v\n", s.info(a.NewLock("l")))
		nonce := strings.Fields(grants(heard())[0])[1]
		for what, secret := range map[string]string{"a's inbox": a.ID(), "b's inbox": b.ID(), "b's nonce": nonce} {
			if strings.Contains(seen.String(), secret) {
				t.Errorf("%s is in what users see:\n%s", what, seen.String())
			}
		}
	})
}

// Fails when the inbox is named without the key prefix.
func TestF04InboxIsNamedUnderTheKeyPrefix(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor(relock.KeyPrefix("tenant7"))
		s.take(a.NewLock("l"))
		channels := s.rdb.PubSubChannels(t.Context(), "*").Val()
		if len(channels) != 1 || !strings.HasPrefix(channels[0], "tenant7:") {
			t.Errorf("channels %q, want one under the prefix", channels)
		}
		for _, k := range s.rdb.Keys(t.Context(), "*").Val() {
			if !strings.HasPrefix(k, "tenant7:") {
				t.Errorf("key %q is not under the prefix", k)
			}
		}
	})
}
