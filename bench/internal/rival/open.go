package rival

import (
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// OpenRelock returns a client for workloads that only relock can do.
func OpenRelock(addr string, s Setup) (*relock.Client, *redis.Client, error) {
	opts := []relock.Option{relock.Defaults(relock.TTL(s.TTL))}
	if s.Renewed != nil {
		opts = append(opts, relock.Trace(relock.Hooks{Renewed: func(e relock.Event) { s.Renewed(e.Name) }}))
	}
	rdb := dial(addr)
	c, err := relock.New(rdb, opts...)
	if err != nil {
		return nil, nil, err
	}
	return c, rdb, nil
}
