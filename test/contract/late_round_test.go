package contract_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// The watchdog has taken up the renewal of a session just before that waits on a condition.
// Fails when it asks for the lock in its name then: before the wait is told, it holds still,
// and goes on holding when another does.
func TestARoundOfTheWatchdogMakesNoHolderOfWhoWaits(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		p := parties(x, 2)
		h := x.Take(p[0].l)
		other := x.Begin(p[1].l)
		other.Waits()
		p[0].Fate("await", 1, redistest.CutBefore) // its second copy comes 5 to 10 ms later
		s := x.Sleeps(h.Context(t.Context()), p[0].c, 0)
		rig.RenewAround(p[0].Client, true, func() {})
		synctest.Wait()
		time.Sleep(50 * time.Millisecond)
		s.Waits()
		rig.End(t, other.Holds())
		p[1].signals(x)
		rig.Must(t, p[1].l.Unlock())
		s.Woken()
		rig.End(t, h)
	})
}

// Fails when it gives up its hold twice: Redis is told that there are four billion.
func TestAResumptionThatIsNotConfirmedIsGivenUpOnce(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		b, never, cut := x.Actor(), make(chan struct{}), false
		defer close(never)
		h, err := x.Lock("l", relock.NoWatchdog()).Acquire(x.By("me"))
		rig.Must(t, err)
		ticket := detach(t, h, 20*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		b.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			switch name := rig.ScriptSent(cmd.Args); {
			case name == "resume" && !cut:
				cut = true
				return redistest.CutReply
			case name == "hold" && ctx.Err() == nil:
				return redistest.Hold(never)
			}
			return redistest.Pass
		})
		_, err = b.Resume(ctx, ticket)
		rig.WantIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		x.Free(x.Lock("l"))
	})
}

// Fails when a try stays until what it gives back is confirmed, and when the least wait
// becomes the longest.
func TestMultiTriesForNoLongerThanItsWait(t *testing.T) {
	for what, wait := range map[string]time.Duration{"no wait": math.MinInt64, "a wait": 300 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				far, link := x.Linked()
				near := x.Client()
				rig.Must(t, x.Lock("b").Lock(t.Context()))
				link.Latency(time.Millisecond)
				link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					if rig.Runs(cmd, "release") {
						return redistest.Lose
					}
					return redistest.Pass
				})
				began := x.Now()
				got, err := relock.NewMulti(far.NewLock("a"), near.NewLock("b")).TryLock(t.Context(), wait)
				if took := x.Now() - began; got || err != nil || took > max(wait, 0)+150*time.Millisecond {
					t.Errorf("TryLock = %v, %v after %v, for a wait of %v", got, err, took, wait)
				}
			})
		})
	}
}

// Fails when a try whose locks are lost before it has them all goes on without an end.
func TestMultiTriesForNoLongerThoughItsLocksAreLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		far, link := x.Linked()
		link.Latency(200 * time.Millisecond)
		m := relock.NewMulti(x.Lock("a", relock.TTL(100*time.Millisecond), relock.NoWatchdog()), far.NewLock("b"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, wait := range []time.Duration{0, time.Second} {
			began := x.Now()
			got, err := m.TryLock(ctx, wait)
			if took := x.Now() - began; got || err != nil || took > wait+2*time.Second {
				t.Errorf("TryLock = %v, %v after %v, for a wait of %v", got, err, took, wait)
			}
		}
	})
}

// Fails when New makes a client of whose locks each is refused.
func TestReplicasThatTakeAsLongAsAReadAreRefusedAtOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rdb := x.Server.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Second })
		_, err := relock.New(rdb, relock.Defaults(relock.TTL(time.Minute), relock.Replicas(1, time.Second)))
		rig.WantIs(t, err, relock.ErrInvalidOption)
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
		time.Sleep(time.Second)
		if info := x.Info(l); info.Waiters != 0 {
			t.Errorf("%d wait", info.Waiters)
		}
	})
}
