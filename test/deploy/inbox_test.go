package deploy_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
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
	a := rig.Open(t, r.Primary.Client(t)).NewLock("job")
	b := rig.Open(t, hearsReplica{r.Primary.Client(t), r.Replicas[0].Client(t)}).NewLock("job")
	for range 3 {
		rig.Must(t, a.Lock(t.Context()))
		waits := rig.Beside(func() error { return b.Lock(t.Context()) })
		rig.Soon(t, func() string {
			if state := rig.Describe(t, a); state[len(state)-1] != '1' {
				return state
			}
			return ""
		})
		rig.Must(t, a.Unlock())
		rig.Must(t, <-waits)
		if ok, err := a.TryLock(t.Context(), 0); ok || err != nil {
			t.Fatalf("TryLock beside the waiter that holds = %v, %v", ok, err)
		}
		rig.Must(t, b.Unlock())
	}
}
