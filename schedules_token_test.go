package relock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
)

// counter is the largest token that Redis has issued.
func (s *scene) counter(name string) int64 {
	s.t.Helper()
	n, err := strconv.ParseInt(s.rdb.HGet(s.t.Context(), key.For("relock", name).Hash, "token").Val(), 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// Fails when a block of tokens is reserved ahead of the clock, and when the first of
// a hash reaches back before its time.
func TestF10TokenCounterIsNeverAheadOfTheClock(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		var last int64
		for range 100 {
			time.Sleep(time.Microsecond) // faster than any server
			held := s.take(a.NewLock("l"))
			if held.Token() <= last {
				t.Fatalf("token %d after %d", held.Token(), last)
			}
			last = held.Token()
			if n, now := s.counter("l"), time.Now().UnixMicro(); n > now {
				t.Fatalf("the counter is %d us ahead of the clock", n-now)
			}
			endHold(t, held)
		}
		s.srv.FlushAll()
		time.Sleep(time.Microsecond)
		if held := s.take(b.NewLock("l")); held.Token() <= last {
			t.Errorf("token %d after a restart without data, %d before it", held.Token(), last)
		}
	})
}

// Fails when a block of tokens is reserved ahead of the clock, and when the first of
// a hash reaches back before its time.
func TestF10TokensOfLocalHoldsComeFromThePast(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		endHold(t, s.take(a.NewLock("l"))) // the first grant has a block of one
		time.Sleep(time.Second)
		before := a.sent("release")
		calls := []*call{s.begin(a.NewLock("l"))}
		for range 20 {
			calls = append(calls, s.begin(a.NewLock("l")))
		}
		var last int64
		for _, c := range calls {
			held := c.holds()
			if held.Token() <= last || held.Token() > time.Now().UnixMicro() {
				t.Fatalf("token %d after %d, the time is %d us", held.Token(), last, time.Now().UnixMicro())
			}
			last = held.Token()
			endHold(t, held)
		}
		if n := a.sent("release") - before; n != 1 {
			t.Errorf("%d releases, want the lock to be passed on without", n)
		}
		s.srv.FlushAll()
		time.Sleep(time.Microsecond)
		if held := s.take(b.NewLock("l")); held.Token() <= last {
			t.Errorf("token %d after a restart without data, %d before it", held.Token(), last)
		}
	})
}

// Fails when a token is the time alone.
func TestF10TokensGrowThoughTheClockStepsBack(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		endHold(t, held)
		last := held.Token()
		for _, step := range []time.Duration{-time.Hour, -time.Second, 30 * time.Minute} {
			s.srv.StepClock(step)
			time.Sleep(101 * time.Millisecond)
			for _, p := range []*actor{a, b} {
				held := s.take(p.NewLock("l"))
				if held.Token() <= last {
					t.Errorf("token %d after %d and a step of %v", held.Token(), last, step)
				}
				last = held.Token()
				endHold(t, held)
			}
		}
	})
}

// Fails when a ticket is the time alone.
func TestF10QueueKeepsItsOrderThoughTheClockStepsBack(t *testing.T) {
	for _, named := range []bool{false, true} {
		play(t, func(t *testing.T, s *scene) {
			a, b, c := s.actor(), s.actor(), s.actor()
			by := func(who string) (opts []relock.LockOption) {
				if named {
					opts = append(opts, relock.Owner(who))
				}
				return opts
			}
			held := s.take(a.NewLock("l"))
			s.until(101 * time.Millisecond)
			first := s.begin(b.NewLock("l", by("b")...))
			s.srv.StepClock(-time.Hour)
			s.until(203 * time.Millisecond)
			second := s.begin(c.NewLock("l", by("c")...))
			endHold(t, held)
			held = first.holds()
			second.waits()
			endHold(t, held)
			second.holds()
		})
	}
}

// Fails when the hash goes with its last holder.
func TestF10CounterOutlivesItsHoldersByTheKeepTimeAndNoLonger(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor(relock.TokenKeep(2 * time.Minute))
		endHold(t, s.take(a.NewLock("l")))
		hash := key.For("relock", "l").Hash
		s.until(2*time.Minute - time.Second)
		if !s.srv.Direct().Exists(hash) {
			t.Error("the counter is gone within the keep time")
		}
		s.until(2*time.Minute + time.Second)
		if s.srv.Direct().Exists(hash) {
			t.Error("the counter stays beyond the keep time")
		}
	})
}
