package deploy_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestFairLockIsGrantedInOrderBehindAProxy has every process subscribe where scripts do not
// run: at a replica, which passes on what they publish. One that has subscribed before its
// first lock hears what it asks then of its permissions, which says nothing of who is seen.
func TestFairLockIsGrantedInOrderBehindAProxy(t *testing.T) {
	t.Parallel()
	r := redistest.StartReplication(t, 1)
	addr := redistest.Split(t, r.Primary.Addr(), r.Replicas[0].Addr())
	for when, before := range map[string]bool{"subscribed by its first lock": false, "subscribed before": true} {
		t.Run(when, func(t *testing.T) {
			behindAProxy(t, when, func() *relock.Client {
				rdb := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
				t.Cleanup(func() { _ = rdb.Close() })
				c := rig.Open(t, rdb)
				if before {
					rig.ListenNow(t, c)
				}
				return c
			})
		})
	}
}

func behindAProxy(t *testing.T, name string, open func() *relock.Client) {
	held := rig.MustAcquire(t, open().NewLock(name, relock.Fair()))
	const waiters = 6
	var order []int // guarded by the lock itself
	var calls []rig.Going
	for i := range waiters {
		l := open().NewLock(name, relock.Fair())
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
	if len(order) != waiters || !slices.IsSorted(order) {
		t.Errorf("held in the order %v", order)
	}
}
