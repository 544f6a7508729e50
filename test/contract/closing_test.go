package contract_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// TestCloseWaitsForWhatTheClientHasStarted: a hook that a renewal calls. Fails when
// Close returns while a goroutine of the client goes on.
func TestCloseWaitsForWhatTheClientHasStarted(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		began, goOn := make(chan struct{}), make(chan struct{})
		c := x.Client(relock.Trace(relock.Hooks{Renewed: func(relock.Event) {
			close(began)
			<-goOn
		}}))
		rig.Must(t, c.NewLock("a").Lock(t.Context()))
		<-began
		closed := rig.Beside(c.Close)
		virtual.Sleep(time.Minute)
		rig.StillWaits(t, closed)
		close(goOn)
		rig.Must(t, rig.Returned(t, closed))
	})
}

// TestCloseLosesWhatIsGrantedMeanwhile: the call that waits is in its Waiting hook
// while Close takes the client out of the queues. It is granted the lock then, and
// another call of its owner re-enters. Fails when a hold is trusted after Close.
func TestCloseLosesWhatIsGrantedMeanwhile(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		goOn := make(chan struct{})
		c := x.Client(relock.Trace(relock.Hooks{Waiting: func(context.Context, relock.Event) { <-goOn }}))
		warm := c.NewLock("warm")
		rig.Must(t, warm.Lock(t.Context()))
		rig.Must(t, warm.Unlock())
		synctest.Wait() // the inbox is up
		holder := x.Lock("a")
		rig.Must(t, holder.Lock(t.Context()))
		first := rig.Beside(func() error { return c.NewLock("a").Lock(x.By("me")) })
		rig.StillWaits(t, first)
		closed := rig.Beside(c.Close)
		rig.StillWaits(t, closed) // it leaves the queue
		rig.Must(t, holder.Unlock())
		synctest.Wait()
		h, err := c.NewLock("a").Acquire(x.By("me"))
		rig.Must(t, <-closed)
		if err != nil {
			rig.WantIs(t, err, relock.ErrClosed)
		} else {
			rig.WantIs(t, h.Err(), relock.ErrLost, relock.ErrClosed)
		}
		close(goOn)
		rig.WantIs(t, <-first, relock.ErrClosed)
	})
}

// TestShutdownWaitsForAGrantThatIsGivenBack: a failover has lost that a waiter had
// left, and it is granted the lock. The first try to give it back is lost. Fails when
// Shutdown does not wait for the next.
func TestShutdownWaitsForAGrantThatIsGivenBack(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a, b, c := s.Actor(), s.Actor(), s.Actor()
		held := s.Take(a.NewLock("l"))
		s.Until(101 * time.Millisecond)
		gone := s.Begin(b.NewLock("l"))
		restore := s.Keep("l")
		gone.Stop()
		<-gone.Done
		s.Until(203 * time.Millisecond)
		restore()
		next := s.Begin(c.NewLock("l"))
		b.Fate("release", 1, redistest.Lose)
		rig.End(t, held) // to b, which gives it back
		synctest.Wait()
		rig.Must(t, b.Shutdown(t.Context()))
		next.Holds()
	})
}

// TestShardedChannelOfACallInItsHookEndsWithClose: the channel of its lock is wanted
// still when the client closes. Fails when a goroutine of that channel outlives Close:
// the bubble ends at once, and says so.
func TestShardedChannelOfACallInItsHookEndsWithClose(t *testing.T) {
	redistest.Virtual(t)
	synctest.Test(t, func(t *testing.T) {
		x := &rig.Lab{T: t, Server: redistest.Start(t)}
		x.Redis = x.Server.Client(t)
		x.Server.Shard()
		rig.Must(t, x.Lock("a").Lock(t.Context()))
		goOn := make(chan struct{})
		c := x.Client(relock.ShardedPubSub(), relock.Trace(relock.Hooks{Waiting: func(ctx context.Context, _ relock.Event) {
			if ctx.Value(callKey{}) != nil {
				<-goOn
			}
		}}))
		first := rig.Beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		rig.StillWaits(t, first)
		ctx := context.WithValue(t.Context(), callKey{}, 1)
		second := rig.Beside(func() error { return c.NewLock("a").Lock(ctx) })
		rig.StillWaits(t, second)
		rig.Must(t, c.Close())
		rig.WantIs(t, rig.Returned(t, first), relock.ErrClosed)
		close(goOn)
		rig.WantIs(t, rig.Returned(t, second), relock.ErrClosed)
	})
}

// Fails when the second call cuts short what the first tells Redis at last.
func TestTwoCallsOfCloseLeaveTheQueue(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("l")
		rig.Must(t, l.Lock(t.Context()))
		c, link := x.Linked()
		call := x.Begin(c.NewLock("l"))
		synctest.Wait()
		link.Latency(20 * time.Millisecond)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { rig.Must(t, c.Close()) })
		}
		both.Wait()
		<-call.Done
		rig.WantIs(t, call.Err, relock.ErrClosed)
		virtual.Sleep(time.Second)
		if info := x.Info(l); info.Waiters != 0 {
			t.Errorf("%d wait", info.Waiters)
		}
	})
}

// An attempt is under way as the client closes. Its answer names the nonce that holds, in case nobody here has it. Fails
// when that nonce is released: another process would hold while the code that held the lock does not know of its loss.
func TestAnAnswerDuringCloseReleasesNoHoldThatCloseHasLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		warm(t, c)
		rig.MustAcquire(t, c.NewLock("a"))
		busy := rig.MustAcquire(t, c.NewLock("b"))
		link.Latency(20 * time.Millisecond)
		try := rig.Beside(func() error { _, err := c.NewLock("a").TryLock(t.Context(), 0); return err })
		virtual.Sleep(9 * time.Millisecond)
		release := rig.Beside(busy.Release) // Close waits for it, and so does the answer to the attempt
		virtual.Sleep(time.Millisecond)
		rig.Must(t, c.Close())
		rig.Must(t, rig.Returned(t, try))
		rig.Must(t, rig.Returned(t, release))
		virtual.Sleep(time.Second)
		x.Refuses(x.Lock("a"))
		virtual.Sleep(30 * time.Second)
		x.Free(x.Lock("a"))
	})
}
