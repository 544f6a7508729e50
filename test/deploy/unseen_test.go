package deploy_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestFairLockIsGrantedInOrderBehindAProxy has every process subscribe where scripts do not
// run: at a replica, which passes on what they publish.
func TestFairLockIsGrantedInOrderBehindAProxy(t *testing.T) {
	t.Parallel()
	r := redistest.StartReplication(t, 1)
	addr := redistest.Split(t, r.Primary.Addr(), r.Replicas[0].Addr())
	open := func() *relock.Client {
		rdb := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
		t.Cleanup(func() { _ = rdb.Close() })
		return rig.Open(t, rdb)
	}
	held := rig.MustAcquire(t, open().NewLock("l", relock.Fair()))
	const waiters = 6
	var order []int // guarded by the lock itself
	var calls []rig.Going
	for i := range waiters {
		l := open().NewLock("l", relock.Fair())
		calls = append(calls, rig.Beside(func() error {
			return l.Do(t.Context(), func(context.Context) error {
				order = append(order, i)
				return nil
			})
		}))
		rig.Queued(t, l, i+1)
	}
	began := time.Now()
	rig.Must(t, held.Release())
	for _, call := range calls {
		rig.Must(t, <-call)
	}
	if took := time.Since(began); took > 5*time.Second { // their heartbeats come every ten
		t.Errorf("%d hand-offs took %v: they were not told", waiters, took)
	}
	for i, who := range order {
		if i != who {
			t.Fatalf("held in the order %v", order)
		}
	}
}
