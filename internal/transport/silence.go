package transport

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// All connections through one firewall, or to one address that another machine has taken over, can die at the same time
// without an error. The client's pool would hand them out one after the other, and each would cost a call its timeout: a
// pool of twenty outlasts a lease. So when a call is not answered, every idle connection is sent a probe at once. It
// is in use until it answers or the client's ReadTimeout closes it, so the next call dials a new connection.

// noScript is a digest that no script has. Running it needs no more permissions than every call, changes nothing, and
// gets an answer: NOSCRIPT.
var noScript = strings.Repeat("0", 40)

// A probing is the probing of one server's idle connections.
type probing struct {
	began    time.Time
	answered chan struct{} // closed at the first answer, or at the end
}

// probe starts to probe the idle connections to the server of a key, after a call with that key was not answered. It
// does nothing if the server is being probed. If no connection is idle, the client makes one: the call that gave up may
// have ended before its connection was ready. probe does not wait.
func (t *Transport) probe(key string) {
	if name, at, ok := t.nodeOf(key); ok {
		t.probeServer(name, at, key)
	}
}

// probeServer is probe for a server. If another one of its Cluster has the key, the answer is MOVED, which will do.
func (t *Transport) probeServer(name string, at server, key string) {
	stats := at.PoolStats()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.probed[name] != nil || t.closing {
		return
	}
	p := &probing{began: time.Now(), answered: make(chan struct{})}
	t.probed[name] = p
	t.spawn(func() {
		t.runProbe(p, at, stats, key)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.probed, name)
	})
}

// runProbe probes the connections that stats says are idle, and at least one.
func (t *Transport) runProbe(p *probing, at server, stats *redis.PoolStats, key string) {
	ctx, cancel := context.WithTimeout(t.life, openingLimit)
	defer cancel()
	answered := sync.OnceFunc(func() { close(p.answered) })
	defer answered()
	question := func() redis.Cmder { return once{redis.NewCmd(ctx, evalsha, noScript, 1, key)} }
	onIdle(ctx, at, stats, 1, question, func(err error) {
		if unknownScript(err) {
			answered()
		}
	})
}

// onIdle runs a command on each connection that stats says is idle in the client's pools, on all at once. On the pool
// for single commands it runs at least as many as least says, and calls told with the error of each.
func onIdle(ctx context.Context, at server, stats *redis.PoolStats, least int, command func() redis.Cmder, told func(error)) {
	var wg sync.WaitGroup
	for range max(int(stats.IdleConns), least) {
		wg.Go(func() { told(at.Process(ctx, command())) })
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

// awaitProbe waits for the first answer to a probe, if one is under way: until then no connection is idle, and a new one
// may take longer than a call has time for. If the round trip time is known, it waits twice that from the probe's
// begin. An error says that the call has no time left.
func (t *Transport) awaitProbe(ctx context.Context, timeout time.Duration, server string, known bool) error {
	if !known {
		return nil
	}
	t.mu.Lock()
	p := t.probed[server]
	t.mu.Unlock()
	if p == nil {
		return nil
	}
	rtt := time.Duration(t.rtt.Load())
	wait := timeout
	if rtt > 0 {
		wait = min(2*rtt, timeout/2)
	}
	wait -= time.Since(p.began)
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.answered:
	case <-ctx.Done():
		return leaveError(ctx, false)
	case <-timer.C:
		if rtt == 0 {
			return fmt.Errorf("%w: %w", errConnecting, ErrNoReply)
		}
	}
	return nil
}
