package cost_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/rig"
)

// pinging returns how long 99 of 100 PINGs of another client take at most while f runs.
func pinging(t *testing.T, rdb *redis.Client, f func()) (p99 time.Duration) {
	t.Helper()
	rig.Must(t, rdb.Ping(t.Context()).Err()) // to have a connection
	ctx, cancel := context.WithCancel(t.Context())
	took := make(chan []time.Duration)
	go func() {
		var all []time.Duration
		for ctx.Err() == nil {
			begin := time.Now()
			if rdb.Ping(context.WithoutCancel(ctx)).Err() != nil {
				break
			}
			all = append(all, time.Since(begin))
		}
		took <- all
	}()
	f()
	cancel()
	all := <-took
	if len(all) < 20 {
		t.Fatalf("%d PINGs while the crowd was served: too few to say anything", len(all))
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}
