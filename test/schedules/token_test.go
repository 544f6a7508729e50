package schedules_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// counter is the largest token that Redis has issued.
func counter(s *rig.Lab, name string) int64 {
	s.T.Helper()
	n, err := strconv.ParseInt(s.Redis.HGet(s.T.Context(), key.For("relock", name).Hash, "token").Val(), 10, 64)
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}

// Fails when a block of tokens is reserved ahead of the clock, and when the first of
// a hash reaches back before its time.
func TestF10TokenCounterIsNeverAheadOfTheClock(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		var last int64
		for range 100 {
			virtual.Sleep(time.Microsecond) // faster than any server
			held := s.Take(a.NewLock("l"))
			if held.Token() <= last {
				t.Fatalf("token %d after %d", held.Token(), last)
			}
			last = held.Token()
			if n, now := counter(s, "l"), time.Now().UnixMicro(); n > now {
				t.Fatalf("the counter is %d us ahead of the clock", n-now)
			}
			rig.End(t, held)
		}
		held := s.Take(a.NewLock("l"))
		waiter := s.Begin(b.NewLock("l"))
		s.Until(s.Now() + 101*time.Millisecond)
		rig.End(t, held)
		last = waiter.Holds().Token()
		if n, now := counter(s, "l"), time.Now().UnixMicro(); n > now {
			t.Fatalf("the counter is %d us ahead of the clock after a hand-off", n-now)
		}
		s.Server.FlushAll()
		virtual.Sleep(time.Microsecond)
		if held := s.Take(a.NewLock("l")); held.Token() <= last {
			t.Errorf("token %d after a restart without data, %d before it", held.Token(), last)
		}
	})
}

// Fails when a block of tokens is reserved ahead of the clock, and when the first of
// a hash reaches back before its time.
func TestF10TokensOfLocalHoldsComeFromThePast(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		rig.End(t, s.Take(a.NewLock("l"))) // the first grant has a block of one
		virtual.Sleep(time.Second)
		before := a.Sent("release")
		calls := []*rig.Call{s.Begin(a.NewLock("l"))}
		for range 20 {
			calls = append(calls, s.Begin(a.NewLock("l")))
		}
		var last int64
		for _, c := range calls {
			held := c.Holds()
			if held.Token() <= last || held.Token()/1000 > time.Now().UnixMicro() {
				t.Fatalf("token %d after %d, the time is %d us", held.Token(), last, time.Now().UnixMicro())
			}
			last = held.Token()
			rig.End(t, held)
		}
		if n := a.Sent("release") - before; n != 1 {
			t.Errorf("%d releases, want the lock to be passed on without", n)
		}
		s.Server.FlushAll()
		virtual.Sleep(time.Microsecond)
		if held := s.Take(b.NewLock("l")); held.Token() <= last {
			t.Errorf("token %d after a restart without data, %d before it", held.Token(), last)
		}
	})
}

// Fails when a token is the time alone.
func TestF10TokensGrowThoughTheClockStepsBack(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		rig.End(t, held)
		last := held.Token()
		for _, step := range []time.Duration{-time.Hour, -time.Second, 30 * time.Minute} {
			s.Server.StepClock(step)
			virtual.Sleep(101 * time.Millisecond)
			for _, p := range []*rig.Actor{a, b} {
				held := s.Take(p.NewLock("l"))
				if held.Token() <= last {
					t.Errorf("token %d after %d and a step of %v", held.Token(), last, step)
				}
				last = held.Token()
				rig.End(t, held)
			}
		}
	})
}

// A server whose clock has lost its date says a time of 15 digits, where the last token
// has 16.
// Fails when tokens are compared as texts.
func TestTokensGrowThoughTheClockHasLostItsDate(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"passed on": nil, "named": {relock.Owner("me")}, "fair": {relock.Fair()}} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			const years = 25 * 365 * 24 * time.Hour // virtual time begins in 2000
			s.Server.StepClock(years)
			a := s.Actor()
			var last int64
			for range 3 {
				held := s.Take(a.NewLock("l", opts...))
				if held.Token() <= last {
					t.Errorf("%s: token %d after %d", name, held.Token(), last)
				}
				last = held.Token()
				rig.End(t, held)
				if last > time.Now().UnixMicro()*1000 {
					s.Server.StepClock(-years)
				}
			}
		})
	}
}

// Fails when a place is the time alone.
func TestF10QueueKeepsItsOrderThoughTheClockStepsBack(t *testing.T) {
	for _, named := range []bool{false, true} {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			a, b, c := s.Actor(), s.Actor(), s.Actor()
			s.WaitOnce(a, b, c)
			by := func(who string) (opts []relock.LockOption) {
				if named {
					opts = append(opts, relock.Owner(who))
				}
				return opts
			}
			held := s.Take(a.NewLock("l"))
			s.Until(101 * time.Millisecond)
			first := s.Begin(b.NewLock("l", by("b")...))
			s.Server.StepClock(-time.Hour)
			s.Until(203 * time.Millisecond)
			second := s.Begin(c.NewLock("l", by("c")...))
			rig.End(t, held)
			held = first.Holds()
			second.Waits()
			rig.End(t, held)
			second.Holds()
		})
	}
}

// Fails when the hash goes with its last holder, and when it stays for longer than the
// lease that was released and TokenKeep.
func TestF10CounterOutlivesItsHoldersByTheKeepTimeAndNoLonger(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor(relock.TokenKeep(2 * time.Minute))
		rig.End(t, s.Take(a.NewLock("l")))
		rig.End(t, s.Take(a.NewLock("longer", relock.TTL(time.Hour))))
		for _, name := range []string{"l", "longer"} {
			if s.Until(2*time.Minute - time.Second); !s.Server.Direct().Exists(key.For("relock", name).Hash) {
				t.Errorf("the counter of %s is gone within TokenKeep", name)
			}
		}
		s.Until(2*time.Minute + 30*time.Second + time.Second)
		for _, name := range []string{"l", "longer"} {
			if s.Server.Direct().Exists(key.For("relock", name).Hash) {
				t.Errorf("the counter of %s stays beyond TokenKeep", name)
			}
		}
	})
}
