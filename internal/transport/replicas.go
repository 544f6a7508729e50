package transport

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Acked is what one Call came to, and how many replicas have what it wrote.
type Acked struct {
	Reply []any
	Acks  int
	Err   error
}

// DoAcked runs scripts, each at most once, and then waits until so many replicas
// have acknowledged what they wrote, but no longer than wait. timeout bounds both.
//
// WAIT speaks of its own connection's writes, so it goes out behind the scripts
// in one pipeline: on another connection it would count replicas that have
// something else. In a Cluster there is one pipeline for each primary. A WAIT
// that fails is an error of every call before it, which have run.
func (t *Transport) DoAcked(ctx context.Context, timeout time.Duration, replicas int, wait time.Duration, calls ...Call) []Acked {
	results, err := beside(t, ctx, timeout, func(ctx context.Context) []Acked {
		return t.runAcked(ctx, acks{replicas, wait}, calls)
	})
	if err != nil {
		results = make([]Acked, len(calls))
		for i, c := range calls {
			results[i].Err = named(&c, err)
		}
	}
	for i, c := range calls {
		results[i].Err = t.failed(&c, results[i].Err)
	}
	return results
}

// ReadTimeout returns how long the client waits for a reply, 0 where nothing
// bounds that or it is not known. A WAIT must be shorter.
func (t *Transport) ReadTimeout() time.Duration {
	switch {
	case t.single != nil:
		return max(t.single.Options().ReadTimeout, 0)
	case t.many != nil:
		return max(t.many.Options().ReadTimeout, 0)
	}
	return 0
}

// beside returns what fn returns, or an error once ctx ends or timeout has passed;
// fn then goes on alone, as long as the client's own timeouts let it. Its context
// has ctx's values, but not its deadline, which would make some clients drop a
// good connection; it ends with the call: what still waits for a connection then
// is never sent.
func beside[T any](t *Transport, ctx context.Context, timeout time.Duration, fn func(context.Context) T) (v T, err error) { //nolint:revive // a method has no parameters of type
	if ctx.Err() != nil {
		return v, notSent(ctx)
	}
	run, cancel := detach(ctx, timeout)
	defer cancel()
	reply := make(chan T, 1) // so that fn's goroutine ends when nobody listens
	t.mu.Lock()
	t.workers++
	t.running++
	t.mu.Unlock()
	go func() {
		defer t.depart()
		reply <- fn(run)
	}()
	select {
	case v = <-reply:
		return v, nil
	case <-ctx.Done():
	case <-run.Done():
	}
	select {
	case v := <-reply: // both were ready: a known outcome is worth more
		return v, nil
	default:
	}
	return v, leaving(ctx, true)
}

// detach returns a context with ctx's values that ends after timeout, or when
// cancelled.
func detach(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	run := context.WithoutCancel(ctx)
	if timeout <= 0 {
		return context.WithCancel(run)
	}
	return context.WithTimeout(run, timeout)
}

// depart notes that a goroutine has ended that was never a worker of a lane.
func (t *Transport) depart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.workers--; t.workers == 0 {
		t.idle.Broadcast()
	}
}

// acks are what a WAIT asks for.
type acks struct {
	replicas int
	wait     time.Duration
}

// A node has pipelines that stay on one connection.
type node interface{ Pipeline() redis.Pipeliner }

func (t *Transport) runAcked(ctx context.Context, w acks, calls []Call) []Acked {
	results := make([]Acked, len(calls))
	parts := t.parts(ctx, calls, results)
	var wg sync.WaitGroup
	for _, p := range parts {
		own := make([]Call, len(p.calls))
		for n, i := range p.calls {
			own[n] = calls[i]
		}
		run := func() {
			for n, r := range t.ackedAt(ctx, p.at, w, own) {
				results[p.calls[n]] = r
			}
		}
		if len(parts) == 1 {
			run()
			break
		}
		wg.Go(run) // one that waits for its replicas holds up no other's
	}
	wg.Wait()
	return results
}

// A part is the calls whose keys one server has, by index.
type part struct {
	at    node
	calls []int
}

// parts sorts calls by the server that has their keys. Where that cannot be
// said, the result has the error.
func (t *Transport) parts(ctx context.Context, calls []Call, results []Acked) map[string]*part {
	parts := make(map[string]*part)
	for i, c := range calls {
		name, at := "", node(t.rdb)
		if t.many != nil {
			master, err := t.many.MasterForKey(ctx, c.Keys[0])
			if err != nil {
				results[i].Err = named(&c, ours(fmt.Errorf("%w: %w", errNotSent, err)))
				continue
			}
			name, at = master.Options().Addr, master
		}
		if parts[name] == nil {
			parts[name] = &part{at: at}
		}
		parts[name].calls = append(parts[name].calls, i)
	}
	return parts
}

// ackedAt runs calls on one server, and follows where it sends them: a Cluster
// client would do that for single commands, but then WAIT would stay behind.
func (t *Transport) ackedAt(ctx context.Context, at node, w acks, calls []Call) []Acked {
	results := warm(ctx, at, w, false, calls)
	for i, r := range results {
		if to, asking := t.redirected(ctx, r.Err); to != nil {
			results[i] = warm(ctx, to, w, asking, calls[i:i+1])[0]
		}
	}
	return results
}

// warm sends calls by their SHA, and again in full those that the server does not know.
func warm(ctx context.Context, at node, w acks, asking bool, calls []Call) []Acked {
	results := exchange(ctx, at, w, asking, calls, false)
	for i, r := range results {
		if unknownScript(r.Err) {
			results[i] = exchange(ctx, at, w, asking, calls[i:i+1], true)[0]
		}
	}
	return results
}

// exchange makes one pipeline, and so one connection, of the calls and WAIT.
func exchange(ctx context.Context, at node, w acks, asking bool, calls []Call, full bool) []Acked {
	p := at.Pipeline()
	cmds := make([]once, len(calls))
	for i, c := range calls {
		if asking {
			_ = p.Process(ctx, once{redis.NewCmd(ctx, "asking")})
		}
		if full {
			cmds[i] = command(ctx, eval, &c)
		} else {
			cmds[i] = command(ctx, evalsha, &c)
		}
		_ = p.Process(ctx, cmds[i]) // only queues
	}
	wait := once{redis.NewCmd(ctx, "wait", w.replicas, w.wait.Milliseconds())}
	_ = p.Process(ctx, wait)
	_, err := p.Exec(ctx)

	results := make([]Acked, len(calls))
	for i, c := range calls {
		r := result(&c, answerOf(cmds[i], err))
		results[i] = Acked{Reply: r.Reply, Err: r.Err}
		if r.Err != nil {
			continue
		}
		n, failed := wait.Int()
		if failed != nil {
			results[i] = Acked{Err: named(&c, fmt.Errorf("%w: %w", errWaited, ours(failed)))}
			continue
		}
		results[i].Acks = n
	}
	return results
}

// redirected returns the server that a Cluster has named in its answer, and
// whether that has to be asked with ASKING. It is nil where none was named or
// it is not known: the answer then says that nothing ran, to be tried again.
func (t *Transport) redirected(ctx context.Context, err error) (to node, asking bool) {
	if t.many == nil || err == nil {
		return nil, false
	}
	addr, moved := redis.IsMovedError(err)
	if moved {
		t.many.ReloadState(ctx) // for the next call; this one goes on
	} else if addr, asking = redis.IsAskError(err); !asking {
		return nil, false
	}
	var found atomic.Pointer[redis.Client]
	_ = t.many.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		if strings.EqualFold(c.Options().Addr, addr) {
			found.Store(c)
		}
		return nil
	})
	if c := found.Load(); c != nil {
		return c, asking
	}
	return nil, false
}
