package relock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// A plain lock is passed on within a process without a command. These tests say
// how far that goes: what docs/guarantees.md promises those who wait elsewhere.

// turnsOf has so many calls of one process wait, each of which holds for so long, and
// behind the first of them one of another process. It returns how often the lock was
// passed on before that one had its turn, and for how long.
func turnsOf(t *testing.T, waiters int, each time.Duration) (passes int, took time.Duration) {
	t.Helper()
	play(t, func(t *testing.T, s *scene) {
		gate, p, q := s.actor(), s.actor(), s.actor()
		held := s.take(gate.NewLock("l"))
		s.until(101 * time.Millisecond)
		var holds atomic.Int64
		for range waiters {
			go func() {
				l := p.NewLock("l")
				if err := l.Lock(t.Context()); err == nil {
					holds.Add(1)
					time.Sleep(each)
					_ = l.Unlock()
				}
			}()
		}
		synctest.Wait()
		s.until(203 * time.Millisecond)
		seen := make(chan int64, 1)
		other := s.begin(q.NewLock("l"))
		go func() {
			<-other.done
			seen <- holds.Load()
		}()
		s.until(305 * time.Millisecond)
		endHold(t, held) // to the process of many, which came first
		endHold(t, other.returns())
		passes, took = int(<-seen)-1, other.at-305*time.Millisecond
		s.until(time.Minute)
		if n := holds.Load(); n != int64(waiters) {
			t.Errorf("%d of %d local calls have held", n, waiters)
		}
	})
	return passes, took
}

// TestALockIsPassedOn128TimesAtMost: holds that take no time. Fails when the
// number of local holds before the queue's turn is another than that which
// docs/guarantees.md names.
func TestALockIsPassedOn128TimesAtMost(t *testing.T) {
	if n, _ := turnsOf(t, 300, 0); n != 128 {
		t.Errorf("passed on %d times while another process waited, want 128", n)
	}
}

// TestALockIsPassedOnFor10MsAtMost: holds of 1 ms each. Fails when a process
// keeps the lock for longer than docs/guarantees.md names; the last hold may
// begin within that time and end after it.
func TestALockIsPassedOnFor10MsAtMost(t *testing.T) {
	if n, took := turnsOf(t, 60, time.Millisecond); n == 0 || took > 11*time.Millisecond {
		t.Errorf("passed on %d times, for %v, while another process waited, want that for 10 ms at most", n, took)
	}
}

// TestALockIsNotPassedOnToACallOfOtherTerms: the next in line has the lease it
// asked for, and the replicas it asked for, whatever the hold before it had.
// Fails when a hold is passed on without a look at the terms.
func TestALockIsNotPassedOnToACallOfOtherTerms(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		for name, opts := range map[string][]relock.LockOption{
			"TTL":      {relock.TTL(time.Second), relock.NoWatchdog()},
			"replicas": {relock.Replicas(1, time.Second)},
		} {
			endHold(t, s.take(a.NewLock("l")))
			s.until(s.now() + 101*time.Millisecond) // there are tokens to pass on
			held := s.take(a.NewLock("l"))
			next := s.begin(a.NewLock("l", opts...))
			next.waits()
			endHold(t, held)
			synctest.Wait()
			switch {
			case !next.settled():
				t.Fatalf("%s: the lock is free, and the next in line waits", name)
			case name == "replicas" && !errors.Is(next.err, relock.ErrReplicas):
				t.Errorf("the call that asks for a replica: %v, want ErrReplicas: there is none", next.err)
			case name == "TTL":
				if left := time.Until(next.returns().TrustedUntil()); left > time.Second {
					t.Errorf("trusted for %v, want the second that it asked for at most", left)
				}
				endHold(t, next.hold)
			}
		}
	})
}

// TestALockIsNotPassedOnWithAnOldLease: heartbeats go unanswered, and the grant
// that comes by message is for the little that is left of the entry's lease.
// Fails when that is passed on to the next in line.
func TestALockIsNotPassedOnWithAnOldLease(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		const ttl = 9 * time.Second
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		front := s.begin(b.NewLock("l", relock.TTL(ttl)))
		next := s.begin(b.NewLock("l", relock.TTL(ttl)))
		b.link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("evalsha", "eval") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		s.until(8 * time.Second)
		front.waits()
		endHold(t, held)
		h := front.holds()
		if left := time.Until(h.TrustedUntil()); left <= 0 || left > ttl/3 {
			t.Fatalf("%v are left, want the rest of a lease that was asked for 8 s ago", left)
		}
		b.link.OnCommand(nil)
		endHold(t, h)
		if left := time.Until(next.returns().TrustedUntil()); left < ttl/3 {
			t.Errorf("the next in line holds with %v left of its lease of %v", left, ttl)
		}
	})
}

// A slowContext has something happen between its end and the moment in which who
// waits for that asks why.
type slowContext struct {
	context.Context
	meanwhile func()
	ended     atomic.Bool
}

func (c *slowContext) Err() error {
	err := c.Context.Err()
	if err != nil && c.ended.CompareAndSwap(false, true) {
		c.meanwhile()
	}
	return err
}

// TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext: the wait of the second
// in line ends, and before it has left the line the first one gives up, and hands
// over its place in the queue, or the right to ask, or the lock. Fails when that
// is dropped: nobody of the process would ask again.
func TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext(t *testing.T) {
	for what, opts := range map[string][]relock.LockOption{
		"its place": nil,
		"the claim": {relock.TTL(20 * time.Second)}, // other terms: it would ask by itself
	} {
		t.Run(what, func(t *testing.T) { leavesWhileHanded(t, opts, false) })
	}
	t.Run("the lock", func(t *testing.T) { leavesWhileHanded(t, nil, true) })
}

func leavesWhileHanded(t *testing.T, opts []relock.LockOption, lock bool) {
	play(t, func(t *testing.T, s *scene) {
		a, p := s.actor(), s.actor()
		endHold(t, s.take(a.NewLock("l")))
		s.until(101 * time.Millisecond) // there are tokens to pass on
		elsewhere := a.NewLock("l")
		if lock {
			elsewhere = p.NewLock("l") // handed on within the process
		}
		held := s.take(elsewhere)
		var front *call
		if !lock {
			front = s.begin(p.NewLock("l"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		slow := &slowContext{Context: ctx}
		slow.meanwhile = func() {
			if lock {
				endHold(t, held)
				return
			}
			front.stop()
			<-front.done
		}
		leaves := beside(func() error { return p.NewLock("l", opts...).Lock(slow) })
		synctest.Wait()
		last := s.begin(p.NewLock("l"))
		cancel()
		wantIs(t, hasReturned(t, leaves), context.Canceled)
		if !lock {
			endHold(t, held)
		}
		endHold(t, last.holds())
		s.free(elsewhere)
	})
}
