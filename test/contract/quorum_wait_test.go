package contract_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Fails when the end of the caller's context is told as that of the wait that it gave:
// that the lock was taken all the time is not true then, and no error.
func TestQuorumCallWhoseContextIsCancelledSaysSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		h := take(t, p.lock("a"))
		for what, call := range map[string]func(ctx context.Context, l *relock.QuorumLock) error{
			"TryLock": func(ctx context.Context, l *relock.QuorumLock) error {
				_, err := l.TryLock(ctx, time.Minute)
				return err
			},
			"TryDo": func(ctx context.Context, l *relock.QuorumLock) error {
				_, err := l.TryDo(ctx, time.Minute, func(context.Context) error { return nil })
				return err
			},
			"Lock": func(ctx context.Context, l *relock.QuorumLock) error { return l.Lock(ctx) },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			err := call(ctx, p.lock("a"))
			if rig.WantIs(t, err, context.Canceled); errors.Is(err, relock.ErrNotAcquired) {
				t.Errorf("%s: %v; want no word of a wait that has been as long as it was to be", what, err)
			}
		}
		rig.Must(t, h.Release())
	})
}

// The call has queued, and the primary where it did is its own when its wait ends.
// Fails when it says that Redis has not answered: a majority has, before.
func TestQuorumThatWasTakenSaysSoThoughTheWaitEndsAfterTheQueue(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		first := x.ClientOver(p.all[0].Client(t)).NewLock("a", relock.Fair())
		rig.Must(t, first.Lock(t.Context()))
		for _, srv := range p.all[1:] {
			rig.Must(t, x.ClientOver(srv.Client(t)).NewLock("a", relock.Fair()).Lock(t.Context()))
		}
		q, links := p.process()
		for _, link := range links {
			link.Latency(time.Millisecond)
		}
		time.AfterFunc(time.Second, func() { _ = first.Unlock() })
		got, err := q.NewLock("a").TryLock(t.Context(), time.Second+2*time.Millisecond)
		if got || err != nil {
			t.Errorf("TryLock = %v, %v; want that it is taken", got, err)
		}
	})
}

// Fails when a call that queues ends with the client of the primary where it does, though the others
// make a majority.
func TestQuorumCallOutlivesTheClientThatItQueuesWith(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		var clients []*relock.Client
		for _, srv := range p.all {
			clients = append(clients, x.ClientOver(srv.Client(t)))
		}
		q, err := relock.NewQuorum(clients...)
		rig.Must(t, err)
		h := take(t, p.lock("a"))
		time.AfterFunc(time.Second, func() { rig.Must(t, clients[0].Close()) })
		time.AfterFunc(time.Minute, func() { rig.Must(t, h.Release()) })
		l := q.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
	})
}

// Fails when a call under a context that has ended is told of something else that is wrong
// with it: the context of Do is then that of a lock which the call would wait for.
func TestQuorumCallUnderADoneContextSaysSoFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		q, _ := newPrimaries(x, 3).process()
		rig.Must(t, q.NewLock("a").Do(t.Context(), func(ctx context.Context) error {
			done, cancel := context.WithCancel(ctx)
			cancel()
			err := q.NewLock("a").Lock(done)
			if rig.WantIs(t, err, context.Canceled); errors.Is(err, relock.ErrDeadlock) {
				t.Errorf("%v; want no word of a wait that is not made", err)
			}
			return nil
		}))
	})
}

// Fails when an outage is told by an error that no caller can match.
func TestQuorumWhosePrimariesAreSilentTellsAnOutage(t *testing.T) {
	for silent := 2; silent <= 3; silent++ {
		t.Run(fmt.Sprint(silent, " of 3"), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) { tellsAnOutage(t, x, silent) })
		})
	}
}

func tellsAnOutage(t *testing.T, x *rig.Lab, silent int) {
	t.Helper()
	q, links := newPrimaries(x, 3).process()
	l := q.NewLock("a")
	rig.Must(t, l.Lock(t.Context()))
	rig.Must(t, l.Unlock())
	for _, link := range links[:silent] {
		link.Hole()
	}
	for _, wait := range []time.Duration{0, time.Second} {
		_, err := l.TryLock(t.Context(), wait)
		rig.WantIs(t, err, relock.ErrUnavailable)
		_, err = l.TryAcquire(t.Context(), wait)
		rig.WantIs(t, err, relock.ErrUnavailable)
	}
	for _, wait := range []time.Duration{10 * time.Millisecond, time.Second} { // within the first attempt, and after it
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		err := l.Lock(ctx)
		rig.WantIs(t, err, relock.ErrUnavailable)
		rig.WantIs(t, err, context.DeadlineExceeded)
	}
}

// Of an even number of primaries half say that the lock is taken, and the others are silent.
// Fails when half of them count as a majority that has answered.
func TestAQuorumOfWhichHalfAnswerTellsAnOutage(t *testing.T) {
	for _, n := range []int{2, 4} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			p := newPrimaries(x, n)
			h := take(t, p.lock("a"))
			q, links := p.process()
			for _, link := range links[n/2:] {
				link.Hole()
			}
			for _, wait := range []time.Duration{0, time.Second} {
				_, err := q.NewLock("a").TryAcquire(t.Context(), wait)
				rig.WantIs(t, err, relock.ErrUnavailable)
				rig.WantNot(t, err, relock.ErrNotAcquired)
			}
			rig.Must(t, h.Release())
		})
	}
}

// The primary where the call queues stops answering, and the wait ends soon after.
// Fails when the library's own end of the queueing looks like the end of the caller's context.
func TestAQuorumCallWhosePrimaryDiesIsNotCancelled(t *testing.T) {
	for wait := 500 * time.Millisecond; wait < 2*time.Second; wait += 50 * time.Millisecond {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			p := newPrimaries(x, 3)
			h := take(t, p.lock("a"))
			q, links := p.process()
			time.AfterFunc(100*time.Millisecond, func() {
				for _, link := range links {
					link.Hole()
				}
			})
			if _, err := q.NewLock("a", relock.TTL(time.Second)).TryLock(t.Context(), wait); errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: %v: it matches the end of a context", wait, err)
			}
			rig.Must(t, h.Release())
		})
	}
}

// Fails when the call gives back what it has on its own goroutine, because the first client is closed.
func TestAQuorumCallEndsWithItsContextThoughTheFirstClientIsClosed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		var clients []*relock.Client
		var silent *redistest.Link
		for i, srv := range p.all {
			link := redistest.NewLink(t, srv.Dial)
			if clients = append(clients, x.ClientOver(srv.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }))); i == 2 {
				silent = link
			}
		}
		q, err := relock.NewQuorum(clients...)
		rig.Must(t, err)
		l := q.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
		rig.Must(t, clients[0].Close())
		defer silent.Hole()()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := x.Now()
		err = l.Lock(ctx)
		if took := x.Now() - began; err == nil || took > 150*time.Millisecond {
			t.Errorf("%v after %v, want an error after 100ms", err, took)
		}
	})
}

// Fails when the context asks why the hold has ended after it was released, and not before.
func TestALostQuorumIsTheCauseOfItsContextsThoughItWasReleased(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		q, _ := newPrimaries(x, 3).process()
		for range 50 {
			h, err := q.NewLock("a", relock.TTL(time.Second), relock.NoWatchdog()).Acquire(t.Context())
			rig.Must(t, err)
			ctx := h.Context(t.Context())
			x.Suspend(2 * time.Second)
			rig.WantIs(t, h.Release(), relock.ErrLost)
			rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
		}
	})
}

// Fails when a try whose wait is negative ends before it has asked.
func TestQuorumTriesOnceHoweverLittleItMayWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		free, other := p.lock("a"), p.lock("a")
		for _, wait := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
			if got, err := free.TryLock(t.Context(), wait); !got || err != nil {
				t.Fatalf("TryLock(%v) = %v, %v, want true, nil", wait, got, err)
			}
			synctest.Wait()
			began := x.Now()
			if got, err := other.TryLock(t.Context(), wait); got || err != nil || x.Now() != began {
				t.Errorf("TryLock(%v) beside a holder = %v, %v after %v", wait, got, err, x.Now()-began)
			}
			rig.Must(t, free.Unlock())
			synctest.Wait()
		}
	})
}

// Fails when replicas that come back later are of no use to a call that waits.
func TestAQuorumGoesOnAskingWhileReplicasAreTooFew(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var clients []*relock.Client
		var replicas []*follower
		for range 3 {
			f, rdb := &follower{}, redistest.Start(t).Client(t)
			rdb.AddHook(f)
			clients, replicas = append(clients, x.ClientOver(rdb)), append(replicas, f)
		}
		q, err := relock.NewQuorum(clients...)
		rig.Must(t, err)
		l := q.NewLock("a", relock.Replicas(1, time.Second))
		call := rig.Beside(func() error { return l.Lock(t.Context()) })
		virtual.Sleep(10 * time.Second)
		rig.StillWaits(t, call)
		for _, f := range replicas {
			f.set(1, false)
		}
		virtual.Sleep(10 * time.Second)
		rig.Must(t, rig.Returned(t, call))
		rig.Must(t, l.Unlock())
	})
}
