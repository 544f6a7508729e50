package deploy_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// TestWaitersOnConditionsWakeUpAfterAFailover fails when a signal that the new primary
// lacks is missed for ever: nobody signals again.
func TestWaitersOnConditionsWakeUpAfterAFailover(t *testing.T) {
	t.Parallel()
	for where, deploy := range replicatedDeployments {
		for how := range ends {
			t.Run(where+", primary "+how, func(t *testing.T) {
				t.Parallel()
				wakeAfterAFailover(t, deploy(t), how, 2*time.Second, 2*time.Second)
			})
		}
	}
}

// A waiter with a long lease looks again as soon as one with a lease of 30 s.
func TestAWaiterOnAConditionLooksAgainSoonAfterAFailoverThoughItsLeaseIsLong(t *testing.T) {
	t.Parallel()
	for where, deploy := range replicatedDeployments {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			wakeAfterAFailover(t, deploy(t), "killed", 10*time.Minute, 40*time.Second)
		})
	}
}

// wakeAfterAFailover fails unless waiters of that lease wake up within goOn and so long.
func wakeAfterAFailover(t *testing.T, r *replicated, how string, ttl, within time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	open := func() *relock.Client { return rig.Open(t, r.rdb(t), relock.Defaults(relock.TTL(ttl))) }
	d := &deployed{T: t, ctx: ctx, a: open(), b: open(), name: "a"}
	var waits []rig.Going
	for range 4 {
		waits = append(waits, d.sleeps(d.b))
	}
	l := d.a.NewLock("a")
	rig.Must(t, l.Lock(ctx))
	if how != "relieved" {
		cutReplication(t, r.primary("a"))
	}
	rig.Must(t, l.NewCond("c").Signal(ctx))
	old := ends[how](r, "a")
	r.promoted("a", old)
	late := time.NewTimer(goOn + within)
	defer late.Stop()
	_ = l.Unlock() // lost, or not
	for _, one := range waits {
		select {
		case err := <-one:
			if err != nil && !errors.Is(err, relock.ErrLost) && !errors.Is(err, relock.ErrUnconfirmed) {
				t.Error(err)
			}
		case <-late.C:
			t.Fatal("a waiter sleeps on after the failover")
		}
	}
}
