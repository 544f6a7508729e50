package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis sends at most once, whatever MaxRetries says. A Cluster client still sends it to
// another server after MOVED, ASK or READONLY: then it has changed nothing.
type once struct{ *redis.Cmd }

// NoRetry overrides the method of redis.Cmd, which returns false.
func (once) NoRetry() bool { return true }

// Clone overrides the method of redis.Cmd, so that the copy is not retried either.
func (o once) Clone() redis.Cmder { return once{o.Cmd.Clone().(*redis.Cmd)} }

// A sharedCmd is a command that passes the client's hooks and is then sent on a stream instead of a pooled connection.
type sharedCmd struct {
	once
	*passage
}

// Clone overrides the method of once, so that the copy keeps its passage.
func (c *sharedCmd) Clone() redis.Cmder {
	return &sharedCmd{c.once.Clone().(once), c.passage}
}

const (
	evalsha = "evalsha"
	eval    = "eval"
)

// body returns the second word of the command: the script's source for EVAL, and its SHA for EVALSHA.
func (c *Call) body(verb string) string {
	if verb == eval {
		return c.Script.Source
	}
	return c.Script.SHA
}

// command returns the go-redis command "verb body numkeys key ... arg ...".
func command(ctx context.Context, verb string, c *Call) once {
	args := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	args = append(args, verb, c.body(verb), len(c.Keys))
	for _, key := range c.Keys {
		args = append(args, key)
	}
	cmd := redis.NewCmd(ctx, append(args, c.Args...)...)
	// Tell go-redis where the keys are. Otherwise a Cluster client asks the server with COMMAND, and repeats that
	// on every call if the ACL forbids it.
	cmd.SetStepCount(1)
	cmd.SetFirstKeyPos(3)
	return once{cmd}
}

// run sends a call by its script's SHA, and again with the text if the server does not know the script. It uses the
// stream of w, or a connection of the client's pool if w is nil. It sends nothing after ctx has ended.
func (t *Transport) run(ctx context.Context, w *sharedCall, c *Call) Result {
	if !c.InFull {
		if val, err := t.deliver(ctx, w, evalsha, c); err == nil || !hasCode(err, "NOSCRIPT") {
			return result(c, val, err)
		}
		if w != nil {
			w.deadline = time.Now().Add(w.timeout) // the second round trip has the whole timeout, too
		}
	}
	val, err := t.deliver(ctx, w, eval, c)
	return result(c, val, err)
}

// deliver sends a call. On a stream, it builds a go-redis command only if the client has hooks, which need one.
func (t *Transport) deliver(ctx context.Context, w *sharedCall, verb string, c *Call) (any, error) {
	if w != nil && w.stream.source.hooks.absent.Load() {
		raw := rawCmd{verb: verb, script: c.body(verb), keys: c.Keys, args: c.Args}
		if verb == evalsha && t.single != nil {
			raw.usual = c.Usual // with EVAL a call must send its own script's text, so it joins no group
		}
		return w.send(ctx, raw)
	}
	cmd := command(ctx, verb, c)
	if err := t.process(ctx, w, cmd); err != nil {
		return nil, err
	}
	return cmd.Result()
}

// process sends a command through the client's hooks, and then on the stream of w, or by the pool if w is nil.
func (t *Transport) process(ctx context.Context, w *sharedCall, cmd once) error {
	if w == nil && t.shards != nil && !t.shards.hooks.known.Load() {
		return t.rdb.Process(ctx, &scout{cmd, &t.shards.hooks})
	}
	if w == nil {
		return t.rdb.Process(ctx, cmd)
	}
	p := &passage{call: *w} // a copy of w, because a hook may use it after the call has ended
	defer func() {
		p.end()
		w.failure = p.call.failure
	}()
	return w.stream.source.hooked.Process(ctx, &sharedCmd{cmd, p})
}

// pipeline sends calls in one pipeline. A second one has the text of the scripts that the server did not know.
func (t *Transport) pipeline(ctx context.Context, timeout time.Duration, calls []Call) []Result {
	began := time.Now()
	results := withTexts(calls, func(verb string, calls []Call) []Result {
		results, err := runDetached(t, ctx, timeout-time.Since(began), func(ctx context.Context) ([]Result, error) {
			return exchange(ctx, t.rdb, nil, false, verb, calls), nil
		})
		if err != nil {
			results = make([]Result, len(calls))
			for i := range calls {
				results[i].Err = inScript(&calls[i], err)
			}
		}
		return results
	})
	for i, r := range results {
		if r.Err == nil {
			t.succeeded(t.source)
		}
		results[i].Err = t.concluded(&calls[i], r.Err)
	}
	return results
}

// result makes a Result of a reply or an error. A reply that is not an array becomes the only element of one.
func result(c *Call, val any, err error) Result {
	if err == nil && val == nil {
		err = errNothing
	}
	if err != nil {
		return Result{Err: inScript(c, forCaller(err))}
	}
	if fields, is := val.([]any); is {
		return Result{Reply: fields}
	}
	return Result{Reply: []any{val}}
}

// inScript adds the name of the call's script to err.
func inScript(c *Call, err error) error {
	return fmt.Errorf("script %s: %w", c.Script.Name, err)
}
