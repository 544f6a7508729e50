// Package leaving makes a client's attempts wait until Redis has removed what the client's earlier calls left there. A
// call that ends without the lock does not wait until its queue entry or its grant is removed. A later attempt of the
// same client does. Otherwise it would find that entry or grant and report a free lock as taken.
package leaving

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Book lists the removals in progress, by the lock's key. Its zero value is empty.
type Book struct {
	mu   sync.Mutex // guards keys
	keys map[string]map[chan struct{}]struct{}
}

// Begin records that a grant or a queue entry is being removed from Redis: Await waits for it. The caller must call end
// when that has ended. Further calls of end do nothing.
func (b *Book) Begin(key string) (end func()) {
	done := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keys == nil {
		b.keys = make(map[string]map[chan struct{}]struct{})
	}
	if b.keys[key] == nil {
		b.keys[key] = make(map[chan struct{}]struct{})
	}
	b.keys[key][done] = struct{}{}
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(done)
		if delete(b.keys[key], done); len(b.keys[key]) == 0 {
			delete(b.keys, key)
		}
	})
}

// Await waits for the removals of that key that are in progress, until ctx ends or limit has passed. It does not wait
// for those that begin later.
func (b *Book) Await(ctx context.Context, key string, limit time.Duration) {
	b.mu.Lock()
	under := slices.Collect(maps.Keys(b.keys[key]))
	b.mu.Unlock()
	if len(under) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, done := range under {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}
