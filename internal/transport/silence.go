package transport

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Connections that lead over one firewall, or to one address that another machine
// has taken over, fall silent together, and say nothing of it. The client would
// hand them out one after the other, each for as long as one try is waited for:
// a pool of twenty outlasts a lease. So when a call is not answered, all
// connections that idle are asked something at once. They are in use then, until
// they answer or the client's ReadTimeout closes them, and the next call dials.

// probeTimeout bounds the question, where the client looks at its context.
const probeTimeout = 2 * time.Second

// noScript is a digest that no script has. To say so needs no permission but that
// of every call, changes nothing, and is an answer.
var noScript = strings.Repeat("0", 40)

// probe asks the idle connections to the server of a key of which a call was not answered,
// unless that is under way. It does not wait.
func (t *Transport) probe(key string) {
	name, at := "", t.single
	switch {
	case t.many != nil && !t.routed.Load():
		return // the client would ask for the layout first, and wait for it
	case t.many != nil:
		master, err := t.many.MasterForKey(context.Background(), key)
		if err != nil {
			return
		}
		name, at = master.Options().Addr, master
	case at == nil:
		return // which connections are to the server cannot be said
	}
	stats := at.PoolStats()
	alone, piped := int(stats.IdleConns), 0
	if stats.PipelineStats != nil {
		piped = int(stats.PipelineStats.IdleConns)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.probed[name] || alone+piped == 0 {
		return
	}
	t.probed[name] = true
	t.workers++
	t.running++
	go func() {
		defer t.depart()
		ask(at, key, alone, piped)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.probed, name)
	}()
}

// ask asks so many connections of the pool and so many of that for pipelines.
func ask(at server, key string, alone, piped int) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	question := func() redis.Cmder { return once{redis.NewCmd(ctx, evalsha, noScript, 1, key)} }
	var wg sync.WaitGroup
	for range alone {
		wg.Go(func() { _ = at.Process(ctx, question()) })
	}
	for range piped {
		wg.Go(func() {
			p := at.Pipeline()
			_ = p.Process(ctx, question()) // only queues
			_, _ = p.Exec(ctx)
		})
	}
	wg.Wait()
}
