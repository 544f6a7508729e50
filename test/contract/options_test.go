package contract_test

import (
	"errors"
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

// The redis client's ReadTimeout is 5 s unless it is set.
// Fails when the ReadTimeout of either kind of client is not known.
func TestReplicasThatTakeAsLongAsAUsualReadAreRefused(t *testing.T) {
	for what, rdb := range map[string]redis.UniversalClient{
		"a server": redis.NewClient(&redis.Options{}), "a Cluster": redis.NewClusterClient(&redis.ClusterOptions{}),
	} {
		t.Cleanup(func() { _ = rdb.Close() })
		for _, within := range []time.Duration{5*time.Second - time.Millisecond, 5 * time.Second} {
			c, err := relock.New(rdb, relock.Defaults(relock.Replicas(1, within)))
			if refused := errors.Is(err, relock.ErrInvalidOption); refused != (within == 5*time.Second) {
				t.Errorf("%s, %v: %v", what, within, err)
			}
			if err == nil {
				rig.Must(t, c.Close())
			}
		}
	}
}
