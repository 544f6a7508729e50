package schedules_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// grants are the messages among them that say "you hold".
func grants(messages []string) (all []string) {
	for _, m := range messages {
		if strings.HasPrefix(m, "grant ") {
			all = append(all, m)
		}
	}
	return all
}

func publish(s *rig.Lab, a *rig.Actor, message string) {
	s.T.Helper()
	if err := s.Redis.Publish(s.T.Context(), key.Inbox("relock", rig.ID(a.Client)), message).Err(); err != nil {
		s.T.Fatal(err)
	}
	synctest.Wait()
}

// Fails when a grant with a nonce that nobody here has is taken by whoever waits.
func TestF04ForgedGrantIsNotBelieved(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l"))
		for _, op := range []int{1, 2, 3, 0} { // the numbers are easy to guess, the nonce is not
			publish(s, b, fmt.Sprintf("grant %022d %d 7 7", 0, op))
		}
		for _, garbage := range []string{"", "grant", "grant x", "lost", "look y", "grant " + strings.Repeat("9", 100), "\x00"} {
			publish(s, b, garbage)
		}
		waiter.Waits()
		rig.End(t, held)
		waiter.Holds()
	})
}

// Fails when a grant with a nonce that nobody here has is taken by whoever waits.
func TestF04ReplayedGrantIsNotBelieved(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		heard := s.Listen(b)
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l"))
		rig.End(t, held)
		first := waiter.Holds()
		seen := grants(heard())
		if len(seen) != 1 {
			t.Fatalf("%d grants in %q, want one", len(seen), heard())
		}
		publish(s, b, seen[0]) // while it holds
		rig.End(t, first)
		again := s.Take(a.NewLock("l"))
		s.Until(203 * time.Millisecond)
		waiter = s.Begin(b.NewLock("l"))
		publish(s, b, seen[0]) // while it waits again
		waiter.Waits()
		rig.End(t, again)
		waiter.Holds()
	})
}

// Fails when a grant is believed although a later request was answered "queued".
func TestF04GrantThatALaterAnswerOverruledIsNotBelieved(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l", relock.TTL(3*time.Second)))
		heard := s.Listen(b)
		b.Link.HoleSubscribers()
		rig.End(t, held) // b is granted, and does not hear of it
		if n := len(grants(heard())); n != 1 {
			t.Fatalf("%d grants, want one", n)
		}
		if removed, err := a.NewLock("l").ForceUnlock(t.Context()); !removed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", removed, err)
		}
		held = s.Take(a.NewLock("l"))
		s.Until(1500 * time.Millisecond) // a heartbeat of b was answered "queued"
		waiter.Waits()
		s.Until(3 * time.Second) // its inbox hears again
		publish(s, b, grants(heard())[0])
		waiter.Waits()
		rig.End(t, held)
		waiter.Returns()
	})
}

// Fails when a grant for an unknown nonce is not answered with its release.
func TestF04GrantThatNobodyWaitsForIsPassedOn(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, c := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		gone := s.Begin(b.NewLock("l"))
		restore := s.Keep("l")
		gone.Stop()
		<-gone.Done
		s.Until(203 * time.Millisecond)
		restore() // a failover that lost the leave
		next := s.Begin(c.NewLock("l"))
		rig.End(t, held) // to b, who has gone
		next.Holds()
	})
}

// Fails when a client's public name is its inbox.
func TestF04SecretsStayInTheProtocol(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		var seen strings.Builder
		note := func(ev relock.Event) { fmt.Fprintf(&seen, "%+v\n", ev) }
		a, b := s.Actor(relock.Trace(relock.Hooks{Released: note, Lost: note})), s.Actor()
		heard := s.Listen(b)
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		waiter := s.Begin(b.NewLock("l"))
		waiters, err := a.NewLock("l").Waiters(t.Context())
		rig.Must(t, err)
		fmt.Fprintf(&seen, "%+v %+v\n", s.Info(a.NewLock("l")), waiters)
		rig.End(t, held)
		waiter.Holds()
		fmt.Fprintf(&seen, "%+v\n", s.Info(a.NewLock("l")))
		nonce := strings.Fields(grants(heard())[0])[1]
		for what, secret := range map[string]string{"a's inbox": rig.ID(a.Client), "b's inbox": rig.ID(b.Client), "b's nonce": nonce} {
			if strings.Contains(seen.String(), secret) {
				t.Errorf("%s is in what users see:\n%s", what, seen.String())
			}
		}
	})
}

// Fails when the inbox is named without the key prefix.
func TestF04InboxIsNamedUnderTheKeyPrefix(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor(relock.KeyPrefix("tenant7"))
		s.Take(a.NewLock("l"))
		channels := s.Redis.PubSubChannels(t.Context(), "*").Val()
		if len(channels) != 1 || !strings.HasPrefix(channels[0], "tenant7:") {
			t.Errorf("channels %q, want one under the prefix", channels)
		}
		for _, k := range s.Redis.Keys(t.Context(), "*").Val() {
			if !strings.HasPrefix(k, "tenant7:") {
				t.Errorf("key %q is not under the prefix", k)
			}
		}
	})
}
