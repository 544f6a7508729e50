package contract_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// Fails when New makes a client of whose locks each is refused.
func TestReplicasThatTakeAsLongAsAReadAreRefusedAtOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rdb := x.Server.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Second })
		_, err := relock.New(rdb, relock.Defaults(relock.TTL(time.Minute), relock.Replicas(1, time.Second)))
		rig.WantIs(t, err, relock.ErrInvalidOption)
	})
}
