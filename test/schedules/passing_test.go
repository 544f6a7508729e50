package schedules_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A plain lock is passed on within a process without a command. These tests say
// how far that goes: what docs/guarantees.md promises those who wait elsewhere.

// turnsOf has so many calls of one process wait, each of which holds for so long, and
// behind the first of them one of another process. It returns how often the lock was
// passed on before that one had its turn, and for how long.
func turnsOf(t *testing.T, waiters int, each time.Duration) (passes int, took time.Duration) {
	t.Helper()
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		gate, p, q := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(gate.NewLock("l"))
		s.Until(101 * time.Millisecond)
		var holds atomic.Int64
		for range waiters {
			go func() {
				l := p.NewLock("l")
				if err := l.Lock(t.Context()); err == nil {
					holds.Add(1)
					virtual.Sleep(each)
					_ = l.Unlock()
				}
			}()
		}
		synctest.Wait()
		s.Until(203 * time.Millisecond)
		other := s.Begin(q.NewLock("l"))
		s.Until(305 * time.Millisecond)
		rig.End(t, held) // to the process of many, which came first
		h := other.Returns()
		passes, took = int(holds.Load())-1, other.At-305*time.Millisecond
		rig.End(t, h) // not before they are counted: the next would be, too
		s.Until(time.Minute)
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
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		for name, opts := range map[string][]relock.LockOption{
			"TTL":      {relock.TTL(time.Second), relock.NoWatchdog()},
			"replicas": {relock.Replicas(1, time.Second)},
		} {
			rig.End(t, s.Take(a.NewLock("l")))
			s.Until(s.Now() + 101*time.Millisecond) // there are tokens to pass on
			held := s.Take(a.NewLock("l"))
			next := s.Begin(a.NewLock("l", opts...))
			next.Waits()
			rig.End(t, held)
			synctest.Wait()
			switch {
			case !next.Settled():
				t.Fatalf("%s: the lock is free, and the next in line waits", name)
			case name == "replicas" && !errors.Is(next.Err, relock.ErrReplicas):
				t.Errorf("the call that asks for a replica: %v, want ErrReplicas: there is none", next.Err)
			case name == "TTL":
				if left := time.Until(next.Returns().TrustedUntil()); left > time.Second {
					t.Errorf("trusted for %v, want the second that it asked for at most", left)
				}
				rig.End(t, next.Hold)
			}
		}
	})
}

// TestALockIsNotPassedOnWithAnOldLease: heartbeats go unanswered, and the grant
// that comes by message is for the little that is left of the entry's lease.
// Fails when that is passed on to the next in line.
func TestALockIsNotPassedOnWithAnOldLease(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		const ttl = 9 * time.Second
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		front := s.Begin(b.NewLock("l", relock.TTL(ttl)))
		next := s.Begin(b.NewLock("l", relock.TTL(ttl)))
		b.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("evalsha", "eval") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		s.Until(8 * time.Second)
		front.Waits()
		rig.End(t, held)
		h := front.Holds()
		if left := time.Until(h.TrustedUntil()); left <= 0 || left > ttl/3 {
			t.Fatalf("%v are left, want the rest of a lease that was asked for 8 s ago", left)
		}
		b.Link.OnCommand(nil)
		rig.End(t, h)
		if left := time.Until(next.Returns().TrustedUntil()); left < ttl/3 {
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
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, p := s.Actor(), s.Actor()
		rig.End(t, s.Take(a.NewLock("l")))
		s.Until(101 * time.Millisecond) // there are tokens to pass on
		elsewhere := a.NewLock("l")
		if lock {
			elsewhere = p.NewLock("l") // handed on within the process
		}
		held := s.Take(elsewhere)
		var front *rig.Call
		if !lock {
			front = s.Begin(p.NewLock("l"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		slow := &slowContext{Context: ctx}
		slow.meanwhile = func() {
			if lock {
				rig.End(t, held)
				return
			}
			front.Stop()
			<-front.Done
		}
		leaves := rig.Beside(func() error { return p.NewLock("l", opts...).Lock(slow) })
		synctest.Wait()
		last := s.Begin(p.NewLock("l"))
		cancel()
		rig.WantIs(t, rig.Returned(t, leaves), context.Canceled)
		if !lock {
			rig.End(t, held)
		}
		rig.End(t, last.Holds())
		s.Free(elsewhere)
	})
}
