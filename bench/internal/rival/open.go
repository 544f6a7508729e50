package rival

import (
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// OpenRelock returns a client for workloads that only relock can do.
func OpenRelock(addr string, s Setup) (*relock.Client, *redis.Client, error) {
	rdb := dial(addr)
	c, err := newRelock(rdb, s)
	return c, rdb, err
}

func newRelock(rdb redis.UniversalClient, s Setup) (*relock.Client, error) {
	opts := []relock.Option{relock.Defaults(relock.TTL(s.TTL))}
	if s.Renewed != nil {
		opts = append(opts, relock.Trace(relock.Hooks{Renewed: func(e relock.Event) { s.Renewed(e.Name) }}))
	}
	return relock.New(rdb, opts...)
}
