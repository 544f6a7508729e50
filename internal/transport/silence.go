package transport

import (
	"context"
	"fmt"
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

// noScript is a digest that no script has. To say so needs no permission but that
// of every call, changes nothing, and is an answer.
var noScript = strings.Repeat("0", 40)

// A probing is the question to the idle connections of one server.
type probing struct {
	began    time.Time
	answered chan struct{} // closed at the first answer, or at the end
}

// probe asks the idle connections to the server of a key of which a call was not answered,
// unless that is under way. Where there is none it has the client make one: the call that gave up
// may have ended before its connection was ready. It does not wait.
func (t *Transport) probe(key string) {
	name, at, ok := t.nodeOf(key)
	if !ok {
		return
	}
	stats := at.PoolStats()
	alone, piped := int(stats.IdleConns), 0
	if stats.PipelineStats != nil {
		piped = int(stats.PipelineStats.IdleConns)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.probed[name] != nil || t.over {
		return
	}
	p := &probing{began: time.Now(), answered: make(chan struct{})}
	t.probed[name] = p
	t.workers++
	t.running++
	go func() {
		defer t.depart()
		t.ask(p, at, key, max(alone, 1), piped)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.probed, name)
	}()
}

// ask asks so many connections of the pool and so many of that for pipelines.
func (t *Transport) ask(p *probing, at server, key string, alone, piped int) {
	ctx, cancel := context.WithTimeout(t.life, openingLimit)
	defer cancel()
	answered := sync.OnceFunc(func() { close(p.answered) })
	defer answered()
	question := func() redis.Cmder { return once{redis.NewCmd(ctx, evalsha, noScript, 1, key)} }
	var wg sync.WaitGroup
	for range alone {
		wg.Go(func() {
			if unknownScript(at.Process(ctx, question())) {
				answered()
			}
		})
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

// asked waits for the first answer to such a question, if the client has no connection that is
// idle: a new one may cost more than a call has time for. Where answers have come before, it waits
// no longer than one takes. An error says that the call has no time left.
func (t *Transport) asked(ctx context.Context, timeout time.Duration, server string, known bool) error {
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
	wait := 2 * rtt
	if rtt == 0 {
		wait = timeout
	} else if timeout > 0 {
		wait = min(wait, timeout/2)
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
		return leaving(ctx, false)
	case <-timer.C:
		if rtt == 0 {
			return fmt.Errorf("%w: %w", errConnecting, ErrNoReply)
		}
	}
	return nil
}
