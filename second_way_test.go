package relock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// TestLossNamesReplicasOnlyWhereTheyWereTheReason: one renewal lacked replicas, a
// later one had them, and then Redis went away. Fails when the loss is put down to
// what is long over.
func TestLossNamesReplicasOnlyWhereTheyWereTheReason(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link, f := x.follow(1)
		h := acquire(t, c.NewLock("a", relock.Replicas(1, time.Second)), t.Context())
		f.set(0, false)
		time.Sleep(10*time.Second + 500*time.Millisecond) // one that none has, and tries again
		f.set(1, false)
		time.Sleep(30 * time.Second)
		noErr(t, h.Err())
		link.Cut()
		time.Sleep(time.Minute)
		err := h.Release()
		wantIs(t, err, relock.ErrLost)
		wantNot(t, err, relock.ErrReplicas)
	})
}

// TestLongestTTLOfNestedHoldsIsRenewed: what Redis keeps is as long as the longest
// of them asked for, for as long as it is held. Fails when renewals ask for the
// outer one's.
func TestLongestTTLOfNestedHoldsIsRenewed(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		outer := acquire(t, c.NewLock("a", relock.TTL(2*time.Second)), x.by("me"))
		nested := acquire(t, c.NewLock("a", relock.TTL(time.Minute)), x.by("me"))
		for range 10 {
			time.Sleep(20 * time.Second)
			info, err := c.NewLock("a").Info(t.Context())
			noErr(t, err)
			if len(info.Holders) != 1 || info.Holders[0].TTL < 35*time.Second {
				t.Fatalf("redis has %+v, want at least 35 s of the minute that the nested hold asked for", info.Holders)
			}
		}
		noErr(t, nested.Release())
		noErr(t, outer.Release())
	})
}

// TestDeafInboxIsFoundByARequestThatQueues, before any heartbeat is due. Fails when a
// request that queues does not ask an inbox that has been silent to show that it hears.
func TestDeafInboxIsFoundByARequestThatQueues(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		b.link.HoleSubscribers()
		s.until(20 * time.Second)
		waiter := s.begin(b.NewLock("l"))
		s.until(23 * time.Second)
		waiter.waits()
		endHold(t, held)
		waiter.holds()
	})
}

// TestLostHoldIsReleasedOnceRedisIsBack: its last renewals arrived, and were not
// answered. Fails when that is left to the lease which they gave it.
func TestLostHoldIsReleasedOnceRedisIsBack(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		h := acquire(t, c.NewLock("a", relock.TTL(30*time.Second)), t.Context())
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if runs(cmd, "hold") {
				return redistest.SwallowReply
			}
			return redistest.Pass
		})
		<-h.Lost()
		time.Sleep(100 * time.Millisecond)
		x.frees("a")
		wantIs(t, h.Release(), relock.ErrLost)
	})
}

// TestLossLetsTheLineGoOn: the hold of a process is lost while another call of it
// stands in line. Fails when that call, and all later ones, wait for ever.
func TestLossLetsTheLineGoOn(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		h := acquire(t, c.NewLock("a", relock.NoWatchdog()), t.Context())
		waiter := beside(func() error {
			l := c.NewLock("a")
			if err := l.Lock(t.Context()); err != nil {
				return err
			}
			return l.Unlock()
		})
		<-h.Lost()
		time.Sleep(time.Second)
		noErr(t, hasReturned(t, waiter))
		later := c.NewLock("a")
		noErr(t, hasReturned(t, beside(func() error { return later.Lock(t.Context()) })))
		noErr(t, later.Unlock())
		wantIs(t, h.Release(), relock.ErrLost)
	})
}

// TestWaitersOfAProcessKeepTheirOrderThoughRedisLosesItsData: their heartbeats go out
// together. Fails when they are in another order than their places.
func TestWaitersOfAProcessKeepTheirOrderThoughRedisLosesItsData(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		s.take(a.NewLock("l", relock.Fair()))
		var calls []*call
		for range 6 {
			s.until(s.now() + 101*time.Millisecond)
			calls = append(calls, s.begin(b.NewLock("l", relock.Fair())))
		}
		a.link.Cut()
		s.srv.FlushAll()
		for i, c := range calls {
			h := c.returns()
			for _, later := range calls[i+1:] {
				later.waits()
			}
			if c.at > 15*time.Second {
				t.Error(fmt.Sprint(i, " holds at ", c.at))
			}
			endHold(t, h)
		}
	})
}
