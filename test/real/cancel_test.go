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
	rdb := srv.Client(t)
	target := int64(rig.Rounds(10_000, 300_000))
	var cancels, grants atomic.Int64
	var clients []*relock.Client
	var running sync.WaitGroup
	for range 4 {
		c := rig.Open(t, srv.Client(t))
		clients = append(clients, c)
		shared := make([]*relock.Lock, names)
		for i := range shared {
			shared[i] = c.NewLock(fmt.Sprint("job ", i))
		}
		for i := range 8 {
			running.Go(func() {
				for cancels.Load() < target && !t.Failed() {
					err := abandon(t, shared[rand.IntN(names)], fmt.Sprint("owner ", i%2, " of ", rig.ID(c)))
					switch {
					case err == nil:
						grants.Add(1)
					case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, relock.ErrNotAcquired), rig.Unheard(err):
						cancels.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
	}
	running.Wait()
	t.Logf("%d cancels, %d grants", cancels.Load(), grants.Load())
	if grants.Load() < target/500 {
		t.Errorf("only %d grants beside the cancels: the locks hardly changed hands", grants.Load())
	}
	for _, c := range clients {
		rig.Soon(t, func() string { return rig.Remains(c) })
	}
	for i := range names {
		name := fmt.Sprint("job ", i)
		rig.WantState(t, clients[0].NewLock(name), name, "free waiting 0")
		rig.WantBare(t, rdb, name)
		if ttl := rdb.PTTL(t.Context(), key.For("relock", name).Hash).Val(); ttl <= 0 || ttl > 10*time.Minute {
			t.Errorf("the hash of a free lock stays for %v, want at most the keep time", ttl)
		}
	}
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
