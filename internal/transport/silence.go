package transport

import (
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// All connections through one firewall, or to one address that another machine has taken over, can die at the same time
// without an error. The client's pool would hand them out one after the other, and each would cost a call its timeout:
// a pool of twenty outlasts a lease. So when a call is not answered, a probe is sent on every idle connection at once.
// It keeps the connection in use until an answer or the client's ReadTimeout, so that the next call gets no dead one.

// noScript is a digest that no script has. Running it needs no more permissions than every call, changes nothing, and
// gets an answer: NOSCRIPT.
var noScript = strings.Repeat("0", 40)

// probe probes the idle connections to a server that has not answered a call, unless it is doing so already. If none is
// idle, the client makes one: the call may have ended before its connection was ready. If another server of a Cluster
// has the key, the answer is MOVED, which will do. probe does not wait.
func (t *Transport) probe(name string, at server, key string) {
	stats := at.PoolStats()
	t.spawnUnlessRunning("probe "+name, func() {
		ctx, cancel := context.WithTimeout(t.life, openingLimit)
		defer cancel()
		onIdle(ctx, at, stats, 1, func() redis.Cmder { return once{redis.NewCmd(ctx, evalsha, noScript, 1, key)} })
	})
}

// spawnUnlessRunning runs fn in the background, unless something runs already under that name, or the Transport closes.
func (t *Transport) spawnUnlessRunning(name string, fn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[name] || t.closing {
		return
	}
	t.running[name] = true
	t.spawn(func() {
		fn()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.running, name)
	})
}

// onIdle runs a command on each idle connection of the client's pools, on all at once. stats says how many are idle. In
// the pool for single commands it runs at least as many as least says.
func onIdle(ctx context.Context, at server, stats *redis.PoolStats, least int, command func() redis.Cmder) {
	var wg sync.WaitGroup
	for range max(int(stats.IdleConns), least) {
		wg.Go(func() { _ = at.Process(ctx, command()) })
	}
	if stats.PipelineStats != nil {
		for range stats.PipelineStats.IdleConns {
			wg.Go(func() {
				p := at.Pipeline()
				_ = p.Process(ctx, command()) // only queues
				_, _ = p.Exec(ctx)
			})
		}
	}
	wg.Wait()
}
