package relock_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

// hearsReplica is a client whose subscriptions are on a replica: as Cluster's are
// with ReadOnly, and a FailoverClient's that was left on a demoted primary.
type hearsReplica struct {
	*redis.Client
	replica *redis.Client
}

func (h hearsReplica) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return h.replica.Subscribe(ctx, channels...)
}

// TestGrantThatIsHeardOnAReplicaIsAHold has a waiter that the primary counts
// among nobody's subscribers, and that hears what it publishes.
func TestGrantThatIsHeardOnAReplicaIsAHold(t *testing.T) {
	r := redistest.StartReplication(t, 1)
	a := open(t, r.Primary.Client(t)).NewLock("job")
	b := open(t, hearsReplica{r.Primary.Client(t), r.Replicas[0].Client(t)}).NewLock("job")
	for range 3 {
		must(t, a.Lock(t.Context()))
		waits := start(func() error { return b.Lock(t.Context()) })
		soon(t, func() string {
			if state := describe(t, a); state[len(state)-1] != '1' {
				return state
			}
			return ""
		})
		must(t, a.Unlock())
		must(t, <-waits)
		if ok, err := a.TryLock(t.Context(), 0); ok || err != nil {
			t.Fatalf("TryLock beside the waiter that holds = %v, %v", ok, err)
		}
		must(t, b.Unlock())
	}
}
