package contract_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The tests in regress_*_test.go are defects that a review of the code has found.
// Each says which schedule showed it and what the fix was: taken out again, it fails.

// A heartbeat is under way when the holder unlocks. Its reply comes 20 ms after
// the grant message, and a busy session has no renewal scheduled.
// Fails without the fix: the reply schedules what the session has become.
func TestGrantThatOvertakesAHeartbeatsReplyIsRenewed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder := x.Lock("a", relock.TTL(3*time.Second))
		c, link := x.Linked()
		l := c.NewLock("a", relock.TTL(3*time.Second))
		rig.Must(t, holder.Lock(t.Context()))
		waiter := rig.Beside(func() error { return l.Lock(t.Context()) })
		rig.StillWaits(t, waiter)
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "acquire") {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		virtual.Sleep(1070 * time.Millisecond)
		rig.Must(t, holder.Unlock())
		rig.Must(t, rig.Returned(t, waiter))
		virtual.Sleep(20 * time.Millisecond)
		close(gate)
		link.OnCommand(nil)
		virtual.Sleep(10 * time.Second)
		wantHolds(t, l, 1)
		rig.Must(t, l.Unlock())
	})
}

// The lease of a dead holder ends, and the waiter's look is answered "held". While
// the answer travels the machine sleeps for longer than the lease it tells of.
// Fails without the fix: an answer that came too late to be believed is followed by another try.
func TestWaiterAsksAgainAfterAGrantThatCameTooLate(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		dead, gone := x.Linked()
		rig.Must(t, dead.NewLock("a", relock.TTL(time.Second)).Lock(t.Context()))
		gone.Hole()
		c, link := x.Linked()
		l := c.NewLock("a", relock.TTL(2*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waiter := rig.Beside(func() error { return l.Lock(ctx) })
		virtual.Sleep(900 * time.Millisecond)
		link.Latency(20 * time.Millisecond)
		virtual.Sleep(130 * time.Millisecond)
		rig.StillWaits(t, waiter)
		x.Suspend(3 * time.Second)
		rig.Must(t, <-waiter)
		rig.Must(t, l.Unlock())
	})
}

// The heartbeats of a room share an instant. The machine sleeps, which brings
// that instant nearer on one of its two clocks only: the next heartbeat was put
// on it again, though it had passed, and the one after that, without a pause.
// Fails without the fix: an instant that either clock has reached is not shared any more.
func TestHeartbeatsDoNotSpinAfterASuspension(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder := x.Lock("a")
		c, link := x.Linked()
		link.Latency(time.Millisecond)
		rig.Must(t, holder.Lock(t.Context()))
		waiter := rig.Beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		virtual.Sleep(300 * time.Millisecond)
		rig.StillWaits(t, waiter)
		before := acquires(link)
		x.Suspend(9500 * time.Millisecond)
		virtual.Sleep(5 * time.Second)
		if n := acquires(link) - before; n < 1 || n > 3 {
			t.Errorf("%d heartbeats in the 5 s after a suspension that made one due", n)
		}
		rig.Must(t, holder.Unlock())
		rig.Must(t, <-waiter)
	})
}

// acquires counts the requests that have been sent over a link.
func acquires(link *redistest.Link) (n int) {
	for _, args := range link.Log() {
		if rig.Runs(redistest.Command{Args: args}, "acquire") {
			n++
		}
	}
	return n
}

// A TTL of 2 s makes a heartbeat each 667 ms. Each put the question whether the
// inbox hears off by a second, so that it was never asked.
// Fails without the fix: the oldest heartbeat without an echo is the one that is judged.
func TestFrequentHeartbeatsDoNotHideADeafInbox(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder := x.Lock("a")
		c, link := x.Linked()
		rig.Must(t, holder.Lock(t.Context()))
		waiter := rig.Beside(func() error { return c.NewLock("a", relock.TTL(2*time.Second)).Lock(t.Context()) })
		rig.StillWaits(t, waiter)
		link.HoleSubscribers()
		virtual.Sleep(20*time.Second + 101*time.Millisecond)
		rig.Must(t, holder.Unlock())
		rig.Must(t, rig.Returned(t, waiter))
	})
}

// "Queued, the holder has 30 s" is on its way when the lock goes to a holder of
// 2 s who dies. The head is told to look, and that message overtakes the answer.
// Fails without the fix: a look that comes while a request is unanswered is made after its answer.
func TestLookThatOvertakesTheAnswerIsMadeAfterIt(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, c := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		short := s.Begin(b.NewLock("l", relock.TTL(2*time.Second)))
		s.Until(203 * time.Millisecond)
		c.Link.Latency(20 * time.Millisecond)
		waiter := s.Begin(c.NewLock("l"))
		s.Until(231 * time.Millisecond)
		c.Link.Latency(0)
		rig.End(t, held)
		old := short.Holds()
		b.Link.Hole()
		waiter.Returns()
		if waiter.At > 2500*time.Millisecond {
			t.Errorf("holds at %v, want when the dead holder's 2 s are over", waiter.At)
		}
		rig.NotTrusted(t, old)
	})
}

// The grant message is lost, and a heartbeat finds the grant when a third of the
// queue entry's lease is gone.
// Fails without the fix: a lease that is found is completed like one that a message told of.
func TestNoWatchdogHasItsFullTTLThoughTheGrantMessageWasLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder := x.Lock("a")
		c, link := x.Linked()
		rig.Must(t, holder.Lock(t.Context()))
		holds := make(chan *relock.Hold, 1)
		waiter := rig.Beside(func() error {
			h, err := c.NewLock("a", relock.TTL(9*time.Second), relock.NoWatchdog()).Acquire(t.Context())
			holds <- h
			return err
		})
		synctest.Wait()
		link.HoleSubscribers()
		virtual.Sleep(11 * time.Millisecond)
		rig.Must(t, holder.Unlock())
		rig.Must(t, <-waiter)
		h := <-holds
		if left := time.Until(h.TrustedUntil()); left < 8*time.Second {
			t.Errorf("%v left of a fixed lease of 9 s when Acquire returns", left)
		}
		rig.Must(t, h.Release())
	})
}

// It stayed in the queue, and was granted the lock when its turn came, for a lease.
func TestWaiterThatIsRefusedAnUpgradeLeavesTheQueue(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b := s.Actor(), s.Actor()
		writer := s.Take(a.NewRWLock("l").WLocker())
		read := s.BeginAs("w", b.NewRWLock("l").RLocker())
		write := s.BeginAs("w", b.NewRWLock("l").WLocker())
		next := s.Begin(a.NewRWLock("l").WLocker())
		rig.End(t, writer)
		h := read.Holds()
		if <-write.Done; !errors.Is(write.Err, relock.ErrUpgrade) {
			t.Errorf("the owner that reads got %v for its write, want ErrUpgrade", write.Err)
		}
		rig.End(t, h)
		rig.End(t, next.Holds())
	})
}

// A heartbeat is answered while the lock is held by its own process, and released
// before the answer arrives. Where many wait and the lock passes quickly, each of
// their answers named a holder that was gone: it was released again for each.
// Fails without the fix: an answer that was asked for before the release was
// answered releases nothing.
func TestAnswerOlderThanTheReleaseReleasesNothingAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		link := redistest.NewLink(t, x.Server.Dial)
		rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
		c := x.ClientOver(struct{ *redis.Client }{rdb}) // on one connection answers have an order
		l := c.NewLock("a", relock.TTL(3*time.Second))
		rig.Must(t, l.Lock(x.By("first")))
		other := rig.Beside(func() error { return x.Lock("a").Lock(t.Context()) })
		rig.StillWaits(t, other)
		waiter := rig.Beside(func() error { return l.Lock(x.By("last")) })
		rig.StillWaits(t, waiter)
		sent := func(name string) (n int) {
			for _, args := range link.Log() {
				if rig.ScriptSent(args) == name {
					n++
				}
			}
			return n
		}
		link.Latency(20 * time.Millisecond)
		asked := sent("acquire")
		for range 3000 {
			if sent("acquire") > asked {
				break
			}
			virtual.Sleep(time.Millisecond)
		}
		virtual.Sleep(30 * time.Millisecond) // the answer is under way
		link.Latency(0)
		rig.Must(t, l.Unlock())
		rig.Must(t, rig.Returned(t, other))
		virtual.Sleep(100 * time.Millisecond)
		if n := sent("release"); n != 1 {
			t.Errorf("%d releases of one hold", n)
		}
		rig.StillWaits(t, waiter)
	})
}
