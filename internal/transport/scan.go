package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Primary is a server that has keys: the only one, or a primary of a Cluster.
type Primary struct {
	Addr string // "" for the only server
	rdb  server
}

// Primaries returns all primaries, as the client knows them now. It may only be called if Knows returns true.
func (t *Transport) Primaries(ctx context.Context, timeout time.Duration) ([]Primary, error) {
	if t.many == nil {
		return []Primary{{"", t.single}}, nil
	}
	all, err := runDetached(t, ctx, timeout, func(ctx context.Context) (all []Primary, err error) {
		var mu sync.Mutex
		err = t.many.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, Primary{c.Options().Addr, c})
			return nil
		})
		return all, err
	})
	if err != nil {
		return nil, fmt.Errorf("layout of the cluster: %w", t.barred(forCaller(err)))
	}
	return all, nil
}

// Scan makes one step of Redis' SCAN, over about as many keys as step says. It returns those that match the pattern,
// and the cursor of the next step, 0 at the end. A key that exists all the time is returned at least once.
func (t *Transport) Scan(ctx context.Context, timeout time.Duration, at Primary, from uint64, pattern string, step int64) (keys []string, next uint64, err error) {
	type page struct {
		keys []string
		next uint64
	}
	p, err := runDetached(t, ctx, timeout, func(ctx context.Context) (p page, err error) {
		p.keys, p.next, err = at.rdb.Scan(ctx, from, pattern, step).Result()
		return p, err
	})
	if err != nil {
		err = t.barred(forCaller(err))
		if ctx.Err() == nil && errors.Is(err, ErrNoReply) {
			t.probe(at.Addr, at.rdb, pattern) // the next try must not use a dead connection too
		}
		return nil, 0, fmt.Errorf("scan %s: %w", cmp.Or(at.Addr, "the server"), err)
	}
	t.everSucceeded.Store(true) // so Redis accepts the credentials
	return p.keys, p.next, nil
}
