package redisson_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

func TestAFairLockIsHadInOrderOfArrival(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		first := client(t, x).NewLock("a", redisson.Fair())
		rig.Must(t, first.Lock(t.Context()))
		var order []int
		calls := make([]rig.Going, 5)
		for i := range calls {
			l := client(t, x).NewLock("a", redisson.Fair())
			calls[i] = rig.Beside(func() error {
				err := l.Lock(t.Context())
				order = append(order, i)
				return joined(err, l.Unlock())
			})
			synctest.Wait()
		}
		info, err := first.Info(t.Context())
		rig.Must(t, err)
		if info.Waiters != 5 || info.Kind != "fair lock" {
			t.Errorf("%+v", info)
		}
		if ok, err := client(t, x).NewLock("a", redisson.Fair()).TryLock(t.Context(), 0); ok || err != nil {
			t.Errorf("TryLock overtakes: %v, %v", ok, err)
		}
		rig.Must(t, first.Unlock())
		for _, call := range calls {
			rig.Must(t, <-call)
		}
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("order %v", order)
		}
		bare(t, x)
	})
}

func joined(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestWhoGivesUpLeavesTheQueueAndWakesTheNext: also where the lock is free already and was
// the leaver's to take.
func TestWhoGivesUpLeavesTheQueueAndWakesTheNext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		first, next := client(t, x).NewLock("a", redisson.Fair()), client(t, x).NewLock("a", redisson.Fair())
		rig.Must(t, first.Lock(t.Context()))
		ctx, stop := context.WithCancel(t.Context())
		leaver := client(t, x).NewLock("a", redisson.Fair())
		left := rig.Beside(func() error { return leaver.Lock(ctx) })
		synctest.Wait()
		got := rig.Beside(func() error { return next.Lock(t.Context()) })
		synctest.Wait()
		x.Redis.Del(t.Context(), "a") // free, and nobody was told
		stop()
		rig.WantIs(t, <-left, context.Canceled)
		rig.Must(t, rig.Returned(t, got))
		rig.Must(t, next.Unlock())
		_ = first.Unlock()
		bare(t, x)
	})
}

// TestADeadHeadIsPassedAtItsDeadlineWithoutAStorm: waiters of Redisson's ask thousands of
// times a second meanwhile.
func TestADeadHeadIsPassedAtItsDeadlineWithoutAStorm(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		deadline := time.Now().Add(time.Minute).UnixMilli()
		x.Redis.RPush(t.Context(), "redisson_lock_queue:{a}", "dead:1")
		x.Redis.ZAdd(t.Context(), "redisson_lock_timeout:{a}", redis.Z{Score: float64(deadline), Member: "dead:1"})
		c, link := linked(t, x)
		a := c.NewLock("a", redisson.Fair())
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		began := time.Now()
		rig.Must(t, a.Lock(ctx))
		if waited := time.Since(began); waited < 59*time.Second || waited > 61*time.Second {
			t.Errorf("waited for %v, want a minute", waited)
		}
		if n := link.Commands()["evalsha"]; n > 10 {
			t.Errorf("%d scripts in a minute", n)
		}
		rig.Must(t, a.Unlock())
		bare(t, x)
	})
}

// TestAWaiterThatLivesIsNotDroppedAtItsDeadline: in Redisson it is, and comes back last.
func TestAWaiterThatLivesIsNotDroppedAtItsDeadline(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x, redisson.FairWait(time.Minute))
		holder := c.NewLock("a", redisson.Fair())
		rig.Must(t, holder.Lock(t.Context()))
		var order []string
		var calls []rig.Going
		for i := range 3 {
			name := fmt.Sprint(i)
			l := client(t, x, redisson.FairWait(time.Minute)).NewLock("a", redisson.Fair())
			calls = append(calls, rig.Beside(func() error {
				err := l.Lock(t.Context())
				order = append(order, name)
				return joined(err, l.Unlock())
			}))
			synctest.Wait()
		}
		virtual.Sleep(time.Hour)
		rig.Must(t, holder.Unlock())
		for _, call := range calls {
			rig.Must(t, <-call)
		}
		if !slices.Equal(order, []string{"0", "1", "2"}) {
			t.Errorf("order %v", order)
		}
		bare(t, x)
	})
}

// TestAFairWaiterAsksBeforeItsDeadline, however short FairWait is: who is not heard of until
// then is dropped, and comes back last.
func TestAFairWaiterAsksBeforeItsDeadline(t *testing.T) {
	for _, wait := range []time.Duration{time.Second, 5 * time.Second} {
		t.Run(wait.String(), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				holder := client(t, x, redisson.FairWait(wait)).NewLock("a", redisson.Fair())
				rig.Must(t, holder.Lock(t.Context()))
				var order []int
				var calls []rig.Going
				for i := range 2 {
					l := client(t, x, redisson.FairWait(wait)).NewLock("a", redisson.Fair())
					calls = append(calls, rig.Beside(func() error {
						err := l.Lock(t.Context())
						order = append(order, i)
						return joined(err, l.Unlock())
					}))
					virtual.Sleep(6 * time.Second)
				}
				virtual.Sleep(25 * time.Second)
				rig.Must(t, holder.Unlock())
				for _, call := range calls {
					rig.Must(t, <-call)
				}
				if !slices.Equal(order, []int{0, 1}) {
					t.Errorf("order %v", order)
				}
				bare(t, x)
			})
		})
	}
}

// A waiter queues behind a holder whose lease has 30 s to go.
// Fails when a fleet in Java, with Redisson's own default, gives it another deadline.
func TestAWaiterMayBeSilentForFiveMinutes(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder, l := client(t, x).NewLock("a", redisson.Fair()), client(t, x).NewLock("a", redisson.Fair())
		rig.Must(t, holder.Lock(t.Context()))
		waits := rig.Beside(func() error { return l.Lock(t.Context()) })
		waits.Pending(t, "a second Lock")
		queue, err := x.Redis.ZRangeWithScores(t.Context(), "redisson_lock_timeout:{a}", 0, -1).Result()
		want := time.Now().Add(30*time.Second + 5*time.Minute).UnixMilli()
		if err != nil || len(queue) != 1 || int64(queue[0].Score) != want {
			t.Errorf("the deadlines are %v, %v, want one at %d", queue, err, want)
		}
		rig.Must(t, holder.Unlock())
		rig.Must(t, <-waits)
		rig.Must(t, l.Unlock())
		bare(t, x)
	})
}

// Fails when one lost request of a waiter is enough to have it dropped, or a long FairWait has it ask seldom.
func TestAFairWaiterAsksEveryThirdOfFairWait(t *testing.T) {
	for wait, every := range map[time.Duration]time.Duration{
		9 * time.Second: 3 * time.Second, 5 * time.Minute: 10 * time.Second,
	} {
		t.Run(wait.String(), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				holder := client(t, x, redisson.FairWait(wait)).NewLock("a", redisson.Fair(), redisson.TTL(time.Hour))
				rig.Must(t, holder.Lock(t.Context()))
				c, link := linked(t, x, redisson.FairWait(wait))
				waits := rig.Beside(func() error { return c.NewLock("a", redisson.Fair()).Lock(t.Context()) })
				virtual.Sleep(time.Second)
				before := link.Commands()["evalsha"]
				virtual.Sleep(90 * time.Second)
				if n := link.Commands()["evalsha"] - before; n != int(90*time.Second/every) {
					t.Errorf("%d requests in 90 s, want one every %v", n, every)
				}
				rig.Must(t, holder.Unlock())
				rig.Must(t, <-waits)
			})
		})
	}
}

// Two calls of an owner wait. The first is granted the lock and unlocks it before the second asks again, which then
// queues as another owner. Fails when the second still listens where the owner that has ended was told.
func TestAFairWaiterWhoseSessionHasEndedHearsOfItsTurn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder, next := of(client(t, x), "fair_"), of(client(t, x), "fair_")
		c, link := linked(t, x)
		subscribed := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("subscribe") {
				return redistest.Hold(subscribed)
			}
			return redistest.Pass
		})
		rig.Must(t, holder.Lock(t.Context()))
		call := func() rig.Going {
			l := of(c, "fair_")
			return rig.Beside(func() error { return joined(l.Lock(x.By("me")), l.Unlock()) })
		}
		first := call()
		x.Until(400 * time.Millisecond)
		second := call()
		x.Until(500 * time.Millisecond)
		queued := rig.Beside(func() error { return next.Lock(t.Context()) })
		x.Until(600 * time.Millisecond)
		rig.Must(t, holder.Unlock())
		rig.Must(t, <-first) // without a channel it asks after a second
		rig.Must(t, <-queued)
		close(subscribed)
		virtual.Sleep(time.Second)
		second.Pending(t, "the second call of the owner")
		rig.Must(t, next.Unlock())
		rig.Must(t, rig.Returned(t, second))
		bare(t, x)
	})
}
