package real_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestWaiterHoldsSoonAfterTheLeaseOfAKilledHolder kills a process that holds
// many locks, each renewed at another time, so that each lease is at another phase.
func TestWaiterHoldsSoonAfterTheLeaseOfAKilledHolder(t *testing.T) {
	const locks, slack = 20, 250 * time.Millisecond
	srv := redistest.Real(t)
	holder := spawn(t, srv.Addr())
	client := rig.Open(t, srv.Client(t))
	apart := time.NewTicker(25 * time.Millisecond)
	defer apart.Stop()
	for i := range locks {
		holder.do(order{Do: "lock", Lock: fmt.Sprint("job ", i), TTL: time.Second})
		<-apart.C
	}
	var running sync.WaitGroup
	got := make([]time.Time, locks)
	for i := range locks {
		l := client.NewLock(fmt.Sprint("job ", i))
		running.Go(func() {
			if err := l.Lock(t.Context()); err != nil {
				t.Error(err)
			}
			got[i] = time.Now()
		})
	}
	for i := range locks {
		rig.Queued(t, client.NewLock(fmt.Sprint("job ", i)), 1)
	}
	meter := measureStalls(t, srv)
	holder.kill()
	ends := make([]time.Time, locks)
	for i := range locks {
		ends[i] = endOfLease(t, client.NewLock(fmt.Sprint("job ", i)))
	}
	running.Wait()
	stall := meter()
	for i := range locks {
		if late := got[i].Sub(ends[i]); late > slack+stall {
			t.Errorf("lock %d came %v after the lease had ended, want at most %v (and %v that the machine stood still)", i, late, slack, stall)
		}
	}
}

// endOfLease is when the holder's lease ends, or now if nobody holds.
func endOfLease(t *testing.T, l *relock.Lock) time.Time {
	t.Helper()
	info, err := l.Info(t.Context())
	rig.Must(t, err)
	end := time.Now()
	if len(info.Holders) > 0 {
		end = end.Add(info.Holders[0].TTL)
	}
	return end
}

// measureStalls measures, until it is told to stop, the longest time in which
// neither this process nor the server got anywhere.
func measureStalls(t testing.TB, srv *redistest.RealServer) (stop func() time.Duration) {
	rdb := srv.Client(t)
	done := make(chan struct{})
	var running sync.WaitGroup
	var worst time.Duration
	running.Go(func() {
		every := time.NewTicker(5 * time.Millisecond)
		defer every.Stop()
		for last := time.Now(); ; {
			_ = rdb.Ping(t.Context()).Err()
			now := time.Now()
			worst = max(worst, now.Sub(last)-5*time.Millisecond)
			last = now
			select {
			case <-every.C:
			case <-done:
				return
			}
		}
	})
	return func() time.Duration {
		close(done)
		running.Wait()
		return worst
	}
}

// TestKilledWaitersAreNotNoticed kills the head of the queue and one further
// back: the lock comes to the next one alive at once, long before a lease ends.
func TestKilledWaitersAreNotNoticed(t *testing.T) {
	srv := redistest.Real(t)
	rdb := srv.Client(t)
	client := rig.Open(t, rdb)
	l := client.NewLock("job")
	for range rig.Rounds(3, 30) {
		h := rig.MustAcquire(t, l)
		head, third := spawn(t, srv.Addr()), spawn(t, srv.Addr())
		next, last := rig.Open(t, srv.Client(t)).NewLock("job"), rig.Open(t, srv.Client(t)).NewLock("job")
		head.begin(order{Do: "lock", Lock: "job"})
		rig.Queued(t, l, 1)
		second := rig.Beside(func() error { return next.Lock(t.Context()) })
		rig.Queued(t, l, 2)
		third.begin(order{Do: "lock", Lock: "job"})
		rig.Queued(t, l, 3)
		fourth := rig.Beside(func() error { return last.Lock(t.Context()) })
		rig.Queued(t, l, 4)
		n := len(inboxes(t, rdb))
		head.kill()
		third.kill()
		soonInboxes(t, rdb, n-2) // the kernel has closed their connections, and Redis has to hear of it
		began := time.Now()
		rig.Must(t, h.Release())
		rig.Must(t, <-second)
		rig.Must(t, next.Unlock())
		rig.Must(t, <-fourth)
		rig.Must(t, last.Unlock())
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("two hand-offs past dead waiters took %v: a lease was waited for", took)
		}
		rig.WantState(t, l, "at the end", "free waiting 0")
	}
}

// inboxes are the channels of clients that hear, as Redis sees it.
func inboxes(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	ids, err := rdb.PubSubChannels(t.Context(), "relock:inbox:*").Result()
	rig.Must(t, err)
	return ids
}

func soonInboxes(t *testing.T, rdb *redis.Client, want int) {
	t.Helper()
	rig.Soon(t, func() string {
		if n := len(inboxes(t, rdb)); n != want {
			return fmt.Sprintf("%d inboxes, want %d", n, want)
		}
		return ""
	})
}
