package relock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// TestCloseWaitsForWhatTheClientHasStarted: a hook that a renewal calls. Fails when
// Close returns while a goroutine of the client goes on.
func TestCloseWaitsForWhatTheClientHasStarted(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		began, goOn := make(chan struct{}), make(chan struct{})
		c := x.client(relock.Trace(relock.Hooks{Renewed: func(relock.Event) {
			close(began)
			<-goOn
		}}))
		noErr(t, c.NewLock("a").Lock(t.Context()))
		<-began
		closed := beside(c.Close)
		time.Sleep(time.Minute)
		stillWaits(t, closed)
		close(goOn)
		noErr(t, hasReturned(t, closed))
	})
}

// TestCloseLosesWhatIsGrantedMeanwhile: the call that waits is in its Waiting hook
// while Close takes the client out of the queues. It is granted the lock then, and
// another call of its owner re-enters. Fails when a hold is trusted after Close.
func TestCloseLosesWhatIsGrantedMeanwhile(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		goOn := make(chan struct{})
		c := x.client(relock.Trace(relock.Hooks{Waiting: func(context.Context, relock.Event) { <-goOn }}))
		warm := c.NewLock("warm")
		noErr(t, warm.Lock(t.Context()))
		noErr(t, warm.Unlock())
		synctest.Wait() // the inbox is up
		holder := x.lock("a")
		noErr(t, holder.Lock(t.Context()))
		first := beside(func() error { return c.NewLock("a").Lock(x.by("me")) })
		stillWaits(t, first)
		closed := beside(c.Close)
		stillWaits(t, closed) // it leaves the queue
		noErr(t, holder.Unlock())
		synctest.Wait()
		h, err := c.NewLock("a").Acquire(x.by("me"))
		noErr(t, <-closed)
		if err != nil {
			wantIs(t, err, relock.ErrClosed)
		} else {
			wantIs(t, h.Err(), relock.ErrLost, relock.ErrClosed)
		}
		close(goOn)
		wantIs(t, <-first, relock.ErrClosed)
	})
}

// TestShutdownWaitsForAGrantThatIsGivenBack: a failover has lost that a waiter had
// left, and it is granted the lock. The first try to give it back is lost. Fails when
// Shutdown does not wait for the next.
func TestShutdownWaitsForAGrantThatIsGivenBack(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor(), s.actor(), s.actor()
		held := s.take(a.NewLock("l"))
		s.until(101 * time.Millisecond)
		gone := s.begin(b.NewLock("l"))
		restore := s.keep("l")
		gone.stop()
		<-gone.done
		s.until(203 * time.Millisecond)
		restore()
		next := s.begin(c.NewLock("l"))
		b.fate("release", 1, redistest.Lose)
		endHold(t, held) // to b, which gives it back
		synctest.Wait()
		noErr(t, b.Shutdown(t.Context()))
		next.holds()
	})
}

// TestShardedChannelOfACallInItsHookEndsWithClose: the channel of its lock is wanted
// still when the client closes. Fails when a goroutine of that channel outlives Close:
// the bubble ends at once, and says so.
func TestShardedChannelOfACallInItsHookEndsWithClose(t *testing.T) {
	redistest.Virtual(t)
	synctest.Test(t, func(t *testing.T) {
		x := &lab{t: t, srv: redistest.Start(t)}
		x.rdb = x.srv.Client(t)
		x.srv.Shard()
		noErr(t, x.lock("a").Lock(t.Context()))
		goOn := make(chan struct{})
		c := x.client(relock.ShardedPubSub(), relock.Trace(relock.Hooks{Waiting: func(ctx context.Context, _ relock.Event) {
			if ctx.Value(callKey{}) != nil {
				<-goOn
			}
		}}))
		first := beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		stillWaits(t, first)
		ctx := context.WithValue(t.Context(), callKey{}, 1)
		second := beside(func() error { return c.NewLock("a").Lock(ctx) })
		stillWaits(t, second)
		noErr(t, c.Close())
		wantIs(t, hasReturned(t, first), relock.ErrClosed)
		close(goOn)
		wantIs(t, hasReturned(t, second), relock.ErrClosed)
	})
}
