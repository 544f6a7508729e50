package transport

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// DoAcked runs scripts, each at most once. Then it waits until the given number of replicas have acknowledged the
// scripts' writes, but no longer than wait. timeout bounds the whole call.
//
// WAIT counts the replicas that have the writes of its own connection. So it follows the scripts in the same pipeline.
// In a Cluster each primary has one pipeline. If WAIT fails, each call before it fails, though its script has run.
func (t *Transport) DoAcked(ctx context.Context, timeout time.Duration, replicas int, wait time.Duration, calls ...Call) []Result {
	results, err := runDetached(t, ctx, timeout, func(ctx context.Context) ([]Result, error) {
		return t.runAcked(ctx, &acks{replicas, wait}, calls), nil
	})
	if err != nil {
		results = make([]Result, len(calls))
		for i, c := range calls {
			results[i].Err = inScript(&c, err)
		}
	}
	for i, c := range calls {
		results[i].Err = t.concluded(&c, results[i].Err)
	}
	return results
}

// runDetached runs fn on a goroutine and returns its results, or an error once ctx ends or timeout has passed. Then fn
// goes on alone, bounded by the client's own timeouts. fn's own context has the values of ctx. It does not have the
// deadline of ctx, which would make some clients drop a good connection. It ends when runDetached returns, so that a
// command that still waits for a connection is never sent.
func runDetached[T any](t *Transport, ctx context.Context, timeout time.Duration, fn func(context.Context) (T, error)) (v T, err error) { //nolint:revive // a method has no parameters of type
	if ctx.Err() != nil {
		return v, notSent(ctx)
	}
	run, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	type results struct {
		v   T
		err error
	}
	reply := make(chan results, 1) // fn's goroutine must end even if nobody receives
	t.mu.Lock()
	t.spawn(func() {
		v, err := fn(run)
		reply <- results{v, err}
	})
	t.mu.Unlock()
	select {
	case r := <-reply:
		return r.v, r.err
	case <-ctx.Done():
	case <-run.Done():
	}
	select {
	case r := <-reply: // both came at once, and a reply is worth more
		return r.v, r.err
	default:
	}
	return v, leaveError(ctx, true)
}

// acks are the arguments of WAIT.
type acks struct {
	replicas int
	wait     time.Duration
}

// A node is a server, or a client of one, whose pipelines stay on one connection.
type node interface{ Pipeline() redis.Pipeliner }

// runAcked runs each call on the server that has its key. A call whose server is not known gets an error.
func (t *Transport) runAcked(ctx context.Context, w *acks, calls []Call) []Result {
	if t.many == nil {
		return t.runAckedOn(ctx, t.rdb, w, calls)
	}
	parts, unknown := make(map[*redis.Client][]int), make(map[int]error)
	for i, c := range calls {
		if master, err := t.many.MasterForKey(ctx, c.Keys[0]); err == nil {
			parts[master] = append(parts[master], i)
		} else {
			unknown[i] = inScript(&c, forCaller(fmt.Errorf("%w: %w", errNotSent, err)))
		}
	}
	results := inParts(calls, parts, func(at *redis.Client, own []Call) []Result { return t.runAckedOn(ctx, at, w, own) })
	for i, err := range unknown {
		results[i].Err = err
	}
	return results
}

// runAckedOn runs calls on one server. It sends a redirected call to the other server itself, with a WAIT. A Cluster
// client would redirect the script alone, and WAIT would not reach the other server.
func (t *Transport) runAckedOn(ctx context.Context, at node, w *acks, calls []Call) []Result {
	send := func(at node, asking bool, calls []Call) []Result {
		return withTexts(calls, func(verb string, calls []Call) []Result { return exchange(ctx, at, w, asking, verb, calls) })
	}
	results := send(at, false, calls)
	for i, r := range results {
		if to, asking := t.redirected(ctx, r.Err); to != nil {
			results[i] = send(to, asking, calls[i:i+1])[0]
		}
	}
	return results
}

// withTexts sends calls by SHA. It sends a call again, with the text, if the server does not know its script.
func withTexts(calls []Call, send func(verb string, calls []Call) []Result) []Result {
	results := send(evalsha, calls)
	var cold []int
	var again []Call
	for i, r := range results {
		if hasCode(r.Err, "NOSCRIPT") {
			cold, again = append(cold, i), append(again, calls[i])
		}
	}
	if len(again) > 0 {
		for n, r := range send(eval, again) {
			results[cold[n]] = r
		}
	}
	return results
}

// exchange sends one pipeline: the calls, each behind ASKING if asking is set, and WAIT if w is set.
func exchange(ctx context.Context, at node, w *acks, asking bool, verb string, calls []Call) []Result {
	p := at.Pipeline()
	cmds := make([]once, len(calls))
	for i, c := range calls {
		if asking {
			_ = p.Process(ctx, once{redis.NewCmd(ctx, "asking")})
		}
		cmds[i] = command(ctx, verb, &c)
		_ = p.Process(ctx, cmds[i]) // only queues
	}
	var wait once
	if w != nil {
		wait = once{redis.NewCmd(ctx, "wait", w.replicas, w.wait.Milliseconds())}
		_ = p.Process(ctx, wait)
	}
	_, err := p.Exec(ctx)
	results := make([]Result, len(calls))
	for i, c := range calls {
		val, failed := cmds[i].Result()
		if failed == nil && val == nil {
			failed = err // if the handshake of a connection fails, go-redis sets no error on the commands of a pipeline
		}
		results[i] = result(&c, val, failed)
		if w == nil || results[i].Err != nil {
			continue
		}
		n, failed := wait.Int()
		if results[i].Acks = n; failed != nil {
			results[i] = Result{Err: inScript(&c, fmt.Errorf("%w: %w", errOnlyWaitFailed, forCaller(failed)))}
		}
	}
	return results
}

// redirected returns the server that a MOVED or ASK in err names, and whether ASKING must come first. It returns nil
// for any other error, and for an unknown server. After MOVED or ASK nothing has run, so the caller tries again.
func (t *Transport) redirected(ctx context.Context, err error) (to node, asking bool) {
	addr, moved := redis.IsMovedError(err)
	if moved {
		t.Reload() // for later calls
	} else if addr, asking = redis.IsAskError(err); !asking {
		return nil, false
	}
	all, _ := t.Primaries(ctx, openingLimit)
	for _, p := range all {
		if strings.EqualFold(p.Addr, addr) {
			return p.rdb, asking
		}
	}
	return nil, false
}
