package real_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestTenThousandCancelsLeaveNothing ends waits at random instants, on several
// clients and locks, in every manner of waiting.
func TestTenThousandCancelsLeaveNothing(t *testing.T) {
	const names = 3
	srv := redistest.Real(t)
	target := int64(rig.Rounds(10_000, 300_000))
	fewest := target / 500 // grants: a machine with other work gives them late
	var cancels, grants atomic.Int64
	var running sync.WaitGroup
	var clients []*relock.Client
	for range 4 {
		c := rig.Open(t, srv.Client(t))
		clients = append(clients, c)
		var shared []*relock.Lock
		for i := range names {
			shared = append(shared, c.NewLock(fmt.Sprint("job ", i)))
		}
		for i := range 8 {
			running.Go(func() {
				owner := fmt.Sprint("owner ", i%2, " of ", rig.ID(c))
				for n := int64(0); (n < target || n < 20*target && grants.Load() < fewest) && !t.Failed(); n = cancels.Load() {
					switch err := abandon(t, shared[rand.IntN(names)], owner); {
					case err == nil:
						grants.Add(1)
					case errors.Is(err, context.DeadlineExceeded), gaveUp(err):
						cancels.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
	}
	running.Wait()
	if t.Logf("%d cancels, %d grants", cancels.Load(), grants.Load()); grants.Load() < fewest {
		t.Error("so few grants beside the cancels: the locks hardly changed hands")
	}
	soonNothing(t, clients)
	for i := range names {
		wantFree(t, srv.Client(t), clients[0].NewLock(fmt.Sprint("job ", i)))
	}
}

// soonNothing waits until the clients keep nothing of any lock.
func soonNothing(t *testing.T, clients []*relock.Client) {
	t.Helper()
	for _, c := range clients {
		rig.Soon(t, func() string { return rig.Remains(c) })
	}
}

// wantFree asserts that a lock has nothing in Redis but its counter, for a while.
func wantFree(t *testing.T, rdb *redis.Client, l *relock.Lock) {
	t.Helper()
	rig.WantState(t, l, l.Name(), "free waiting 0")
	rig.WantBare(t, rdb, l.Name())
	if ttl := rdb.PTTL(t.Context(), key.For("relock", l.Name()).Hash).Val(); ttl <= 0 || ttl > 10*time.Minute {
		t.Errorf("the hash of a free lock stays for %v, want at most TokenKeep", ttl)
	}
}

// gaveUp tells whether a call ended with a cancel or for its time.
func gaveUp(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, relock.ErrNotAcquired) || rig.Unheard(err)
}

// abandon waits for the lock in one of several manners, for a random time, and
// unlocks it if it came.
func abandon(t *testing.T, l *relock.Lock, owner string) error {
	// Mostly too short for a grant, and sometimes just about long enough.
	wait := time.Duration(rand.Int64N(int64(time.Millisecond) << rand.IntN(8)))
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	var h *relock.Hold
	var err error
	switch rand.IntN(4) {
	case 0:
		h, err = l.Acquire(ctx)
	case 1:
		h, err = l.Acquire(relock.WithOwner(ctx, owner))
	case 2:
		h, err = l.TryAcquire(t.Context(), wait)
	default:
		ctx, cancel := context.WithCancel(t.Context())
		go cancel() // right now, or a little before or after
		h, err = l.Acquire(ctx)
	}
	if err != nil {
		return err
	}
	if rand.IntN(2) == 0 {
		_, _ = l.Info(t.Context()) // holds it a little longer
	}
	return h.Release()
}
