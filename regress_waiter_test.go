package relock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// The tests in regress_*_test.go are defects that a review of the code has found.
// Each says which schedule showed it and what the fix was: taken out again, it fails.

// A heartbeat is under way when the holder unlocks. Its reply comes 20 ms after
// the grant message, and a busy session has no renewal scheduled.
// Fails without the fix: the reply schedules what the session has become.
func TestGrantThatOvertakesAHeartbeatsReplyIsRenewed(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		holder := x.lock("a", relock.TTL(3*time.Second))
		c, link := x.linked()
		l := c.NewLock("a", relock.TTL(3*time.Second))
		noErr(t, holder.Lock(t.Context()))
		waiter := beside(func() error { return l.Lock(t.Context()) })
		stillWaits(t, waiter)
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if runs(cmd, "acquire") {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		time.Sleep(1070 * time.Millisecond)
		noErr(t, holder.Unlock())
		noErr(t, hasReturned(t, waiter))
		time.Sleep(20 * time.Millisecond)
		close(gate)
		link.OnCommand(nil)
		time.Sleep(10 * time.Second)
		wantHolds(t, l, 1)
		noErr(t, l.Unlock())
	})
}

// The lease of a dead holder ends, and the waiter's look is answered "held". While
// the answer travels the machine sleeps for longer than the lease it tells of.
// Fails without the fix: an answer that came too late to be believed is followed by another try.
func TestWaiterAsksAgainAfterAGrantThatCameTooLate(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		dead, gone := x.linked()
		noErr(t, dead.NewLock("a", relock.TTL(time.Second)).Lock(t.Context()))
		gone.Hole()
		c, link := x.linked()
		l := c.NewLock("a", relock.TTL(2*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waiter := beside(func() error { return l.Lock(ctx) })
		time.Sleep(900 * time.Millisecond)
		link.Latency(20 * time.Millisecond)
		time.Sleep(130 * time.Millisecond)
		stillWaits(t, waiter)
		x.suspend(3 * time.Second)
		noErr(t, <-waiter)
		noErr(t, l.Unlock())
	})
}

// The heartbeats of a room share an instant. The machine sleeps, which brings
// that instant nearer on one of its two clocks only: the next heartbeat was put
// on it again, though it had passed, and the one after that, without a pause.
// Fails without the fix: an instant that either clock has reached is not shared any more.
func TestHeartbeatsDoNotSpinAfterASuspension(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		holder := x.lock("a")
		c, link := x.linked()
		link.Latency(time.Millisecond)
		noErr(t, holder.Lock(t.Context()))
		waiter := beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		time.Sleep(300 * time.Millisecond)
		stillWaits(t, waiter)
		before := acquires(link)
		x.suspend(9500 * time.Millisecond)
		time.Sleep(5 * time.Second)
		if n := acquires(link) - before; n < 1 || n > 3 {
			t.Errorf("%d heartbeats in the 5 s after a suspension that made one due", n)
		}
		noErr(t, holder.Unlock())
		noErr(t, <-waiter)
	})
}

// acquires counts the requests that have been sent over a link.
func acquires(link *redistest.Link) (n int) {
	for _, args := range link.Log() {
		if runs(redistest.Command{Args: args}, "acquire") {
			n++
		}
	}
	return n
}

// A TTL of 2 s makes a heartbeat each 667 ms. Each put the question whether the
// inbox hears off by a second, so that it was never asked.
// Fails without the fix: the oldest heartbeat without an echo is the one that is judged.
func TestFrequentHeartbeatsDoNotHideADeafInbox(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		holder := x.lock("a")
		c, link := x.linked()
		noErr(t, holder.Lock(t.Context()))
		waiter := beside(func() error { return c.NewLock("a", relock.TTL(2*time.Second)).Lock(t.Context()) })
		stillWaits(t, waiter)
		link.HoleSubscribers()
		time.Sleep(20*time.Second + 101*time.Millisecond)
		noErr(t, holder.Unlock())
		noErr(t, hasReturned(t, waiter))
	})
}

// "Queued, the holder has 30 s" is on its way when the lock goes to a holder of
// 2 s who dies. The head is told to look, and that message overtakes the answer.
// Fails without the fix: a look that comes while a request is unanswered is made after its answer.
func TestLookThatOvertakesTheAnswerIsMadeAfterIt(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		short := s.begin(b.NewLock("l", relock.TTL(2*time.Second)))
		s.until(203 * time.Millisecond)
		c.link.Latency(20 * time.Millisecond)
		waiter := s.begin(c.NewLock("l"))
		s.until(231 * time.Millisecond)
		c.link.Latency(0)
		endHold(t, held)
		old := short.holds()
		b.link.Hole()
		waiter.returns()
		if waiter.at > 2500*time.Millisecond {
			t.Errorf("holds at %v, want when the dead holder's 2 s are over", waiter.at)
		}
		notTrusted(t, old)
	})
}

// The grant message is lost, and a heartbeat finds the grant when a third of the
// queue entry's lease is gone.
// Fails without the fix: a lease that is found is completed like one that a message told of.
func TestNoWatchdogHasItsFullTTLThoughTheGrantMessageWasLost(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		holder := x.lock("a")
		c, link := x.linked()
		noErr(t, holder.Lock(t.Context()))
		holds := make(chan *relock.Hold, 1)
		waiter := beside(func() error {
			h, err := c.NewLock("a", relock.TTL(9*time.Second), relock.NoWatchdog()).Acquire(t.Context())
			holds <- h
			return err
		})
		synctest.Wait()
		link.HoleSubscribers()
		time.Sleep(11 * time.Millisecond)
		noErr(t, holder.Unlock())
		noErr(t, <-waiter)
		h := <-holds
		if left := time.Until(h.TrustedUntil()); left < 8*time.Second {
			t.Errorf("%v left of a fixed lease of 9 s when Acquire returns", left)
		}
		noErr(t, h.Release())
	})
}

// Shutdown waited for the session for ever.
func TestGrantThatIsLostBeforeItsCallHasSeenItIsForgotten(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor()
		if err := a.NewLock("l").AskAgainWhenLost(t.Context()); err == nil {
			t.Error("the call holds what was lost")
		}
		if left := relock.Remains(a.Client); left != "" {
			t.Errorf("the client still keeps %s", left)
		}
	})
}

// It stayed in the queue, and was granted the lock when its turn came, for a lease.
func TestWaiterThatIsRefusedAnUpgradeLeavesTheQueue(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor(), s.actor()
		writer := s.take(a.NewRWLock("l").WLocker())
		read := s.beginAs("w", b.NewRWLock("l").RLocker())
		write := s.beginAs("w", b.NewRWLock("l").WLocker())
		next := s.begin(a.NewRWLock("l").WLocker())
		endHold(t, writer)
		h := read.holds()
		if <-write.done; !errors.Is(write.err, relock.ErrUpgrade) {
			t.Errorf("the owner that reads got %v for its write, want ErrUpgrade", write.err)
		}
		endHold(t, h)
		endHold(t, next.holds())
	})
}

// A heartbeat is answered while the lock is held by its own process, and released
// before the answer arrives. Where many wait and the lock passes quickly, each of
// their answers named a holder that was gone: it was released again for each.
// Fails without the fix: an answer that was asked for before the release was
// answered releases nothing.
func TestAnswerOlderThanTheReleaseReleasesNothingAgain(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a", relock.TTL(3*time.Second))
		noErr(t, l.Lock(x.by("first")))
		other := beside(func() error { return x.lock("a").Lock(t.Context()) })
		stillWaits(t, other)
		waiter := beside(func() error { return l.Lock(x.by("last")) })
		stillWaits(t, waiter)
		sent := func(name string) (n int) {
			for _, args := range link.Log() {
				if scriptSent(args) == name {
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
			time.Sleep(time.Millisecond)
		}
		time.Sleep(30 * time.Millisecond) // the answer is under way
		link.Latency(0)
		noErr(t, l.Unlock())
		noErr(t, hasReturned(t, other))
		time.Sleep(100 * time.Millisecond)
		if n := sent("release"); n != 1 {
			t.Errorf("%d releases of one hold", n)
		}
		stillWaits(t, waiter)
	})
}
