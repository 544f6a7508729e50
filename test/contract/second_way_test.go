package contract_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// TestLossNamesReplicasOnlyWhereTheyWereTheReason: one renewal lacked replicas, a
// later one had them, and then Redis went away. Fails when the loss is put down to
// what is long over.
func TestLossNamesReplicasOnlyWhereTheyWereTheReason(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link, f := follow(x, 1)
		h := acquire(t, c.NewLock("a", relock.Replicas(1, time.Second)), t.Context())
		f.set(0, false)
		virtual.Sleep(10*time.Second + 500*time.Millisecond) // one that none has, and tries again
		f.set(1, false)
		virtual.Sleep(30 * time.Second)
		rig.Must(t, h.Err())
		link.Cut()
		virtual.Sleep(time.Minute)
		err := h.Release()
		rig.WantIs(t, err, relock.ErrLost)
		rig.WantNot(t, err, relock.ErrReplicas)
	})
}

// TestLongestTTLOfNestedHoldsIsRenewed: what Redis keeps is as long as the longest
// of them asked for, for as long as it is held. Fails when renewals ask for the
// outer one's.
func TestLongestTTLOfNestedHoldsIsRenewed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		outer := acquire(t, c.NewLock("a", relock.TTL(2*time.Second)), x.By("me"))
		nested := acquire(t, c.NewLock("a", relock.TTL(time.Minute)), x.By("me"))
		for range 10 {
			virtual.Sleep(20 * time.Second)
			info, err := c.NewLock("a").Info(t.Context())
			rig.Must(t, err)
			if len(info.Holders) != 1 || info.Holders[0].TTL < 35*time.Second {
				t.Fatalf("redis has %+v, want at least 35 s of the minute that the nested hold asked for", info.Holders)
			}
		}
		rig.Must(t, nested.Release())
		rig.Must(t, outer.Release())
	})
}

// TestDeafInboxIsFoundByARequestThatQueues, before any heartbeat is due. Fails when a
// request that queues does not ask an inbox that has been silent to show that it hears.
func TestDeafInboxIsFoundByARequestThatQueues(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		b.Link.HoleSubscribers()
		s.Until(20 * time.Second)
		waiter := s.Begin(b.NewLock("l"))
		s.Until(23 * time.Second)
		waiter.Waits()
		rig.End(t, held)
		waiter.Holds()
	})
}

// TestLostHoldIsReleasedOnceRedisIsBack: its last renewals arrived, and were not
// answered. Fails when that is left to the lease which they gave it.
func TestLostHoldIsReleasedOnceRedisIsBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		h := acquire(t, c.NewLock("a", relock.TTL(30*time.Second)), t.Context())
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "hold") {
				return redistest.SwallowReply
			}
			return redistest.Pass
		})
		<-h.Lost()
		virtual.Sleep(100 * time.Millisecond)
		x.Frees("a")
		rig.WantIs(t, h.Release(), relock.ErrLost)
	})
}

// TestLossLetsTheLineGoOn: the hold of a process is lost while another call of it
// stands in line. Fails when that call, and all later ones, wait for ever.
func TestLossLetsTheLineGoOn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		h := acquire(t, c.NewLock("a", relock.NoWatchdog()), t.Context())
		waiter := rig.Beside(func() error {
			l := c.NewLock("a")
			if err := l.Lock(t.Context()); err != nil {
				return err
			}
			return l.Unlock()
		})
		<-h.Lost()
		virtual.Sleep(time.Second)
		rig.Must(t, rig.Returned(t, waiter))
		later := c.NewLock("a")
		rig.Must(t, rig.Returned(t, rig.Beside(func() error { return later.Lock(t.Context()) })))
		rig.Must(t, later.Unlock())
		rig.WantIs(t, h.Release(), relock.ErrLost)
	})
}

// TestWaitersOfAProcessKeepTheirOrderThoughRedisLosesItsData: their heartbeats go out
// together. Fails when they are in another order than their places.
func TestWaitersOfAProcessKeepTheirOrderThoughRedisLosesItsData(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		s.Take(a.NewLock("l", relock.Fair()))
		var calls []*rig.Call
		for range 6 {
			s.Until(s.Now() + 101*time.Millisecond)
			calls = append(calls, s.Begin(b.NewLock("l", relock.Fair())))
		}
		a.Link.Cut()
		s.Server.FlushAll()
		for i, c := range calls {
			h := c.Returns()
			for _, later := range calls[i+1:] {
				later.Waits()
			}
			if c.At > 15*time.Second {
				t.Error(fmt.Sprint(i, " holds at ", c.At))
			}
			rig.End(t, h)
		}
	})
}
