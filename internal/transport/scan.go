package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Primary is a server that has keys: the only one, or a primary of a Cluster.
type Primary struct {
	Addr string
	rdb  redis.UniversalClient
}

// Primaries returns all primaries, as the client knows them now.
func (t *Transport) Primaries(ctx context.Context, timeout time.Duration) ([]Primary, error) {
	if t.many == nil {
		return []Primary{{"", t.rdb}}, nil
	}
	type found struct {
		all []Primary
		err error
	}
	of, err := runDetached(t, ctx, timeout, func(ctx context.Context) (f found) {
		var mu sync.Mutex
		f.err = t.many.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			f.all = append(f.all, Primary{c.Options().Addr, c})
			return nil
		})
		return f
	})
	if err == nil {
		err = of.err
	}
	if err != nil {
		return nil, fmt.Errorf("layout of the cluster: %w", t.barred(forCaller(err)))
	}
	slices.SortFunc(of.all, func(a, b Primary) int { return cmp.Compare(a.Addr, b.Addr) })
	return of.all, nil
}

// Scan makes one step of Redis' SCAN for keys that match a pattern. step is how many keys it looks at. It returns the
// matching keys and the cursor of the next step, 0 at the end. A key that exists all the time is returned at least once.
func (t *Transport) Scan(ctx context.Context, timeout time.Duration, at Primary, from uint64, pattern string, step int64) (keys []string, next uint64, err error) {
	type page struct {
		keys []string
		next uint64
		err  error
	}
	p, err := runDetached(t, ctx, timeout, func(ctx context.Context) (p page) {
		p.keys, p.next, p.err = at.rdb.Scan(ctx, from, pattern, step).Result()
		return p
	})
	if err == nil {
		err = p.err
	}
	if err != nil {
		err = t.barred(forCaller(err))
		if node, known := at.rdb.(server); known && ctx.Err() == nil && errors.Is(err, ErrNoReply) {
			t.probeServer(at.Addr, node, pattern) // the next try must not use a dead connection too
		}
		return nil, 0, fmt.Errorf("scan %s: %w", at.Addr, err)
	}
	t.everSucceeded.Store(true) // so Redis accepts the credentials
	return p.keys, p.next, nil
}
