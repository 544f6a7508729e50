package transport

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis sends at most once, whatever MaxRetries
// says. It still follows MOVED and ASK: those answer a command that was not
// run.
type once struct{ *redis.Cmd }

// NoRetry overrides the default of redis.Cmd.
func (once) NoRetry() bool { return true }

// Clone overrides redis.Cmd's, whose copy would be sent again.
func (o once) Clone() redis.Cmder { return once{o.Cmd.Clone().(*redis.Cmd)} }

// led is a command that has a way of its own.
type led struct {
	once
	*passage
}

// Clone overrides that of once.
func (l *led) Clone() redis.Cmder { return &led{once{l.Cmd.Clone().(*redis.Cmd)}, l.passage} }

const (
	evalsha = "evalsha"
	eval    = "eval"
)

// verb is the one of two by which the call is sent, where others go by usual.
func (c *Call) verb(usual string) string {
	if c.InFull {
		return eval
	}
	return usual
}

// body is the script as a verb has it.
func (c *Call) body(verb string) string {
	if verb == eval {
		return c.Script.Source
	}
	return c.Script.SHA
}

// bare is the call as it goes over the wire; made by itself where it is sent in full.
func (c *Call) bare(verb string) bare {
	b := bare{verb: verb, script: c.body(verb), keys: c.Keys, args: c.Args}
	if verb == evalsha {
		b.usual = c.Usual
	}
	return b
}

// command returns verb body numkeys key ... arg ..., where body is the
// script's SHA for EVALSHA, and its source for EVAL.
func command(ctx context.Context, verb string, c *Call) once {
	args := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	args = append(args, nil, c.body(verb), len(c.Keys))
	switch verb { // a constant as an argument costs nothing
	case eval:
		args[0] = eval
	default:
		args[0] = evalsha
	}
	for _, key := range c.Keys {
		args = append(args, key)
	}
	cmd := redis.NewCmd(ctx, append(args, c.Args...)...)
	// Both say where the keys are: without them a Cluster client asks the
	// server by COMMAND, on every call if the ACL forbids that.
	cmd.SetStepCount(1)
	if len(c.Keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	return once{cmd}
}

// run sends one call by its SHA, and with its full text to a server that does
// not know it: on its way, or if that is nil on a connection of the client's. If
// ctx has ended by then nothing is sent.
func (t *Transport) run(ctx context.Context, w *flight, c *Call) Result {
	if !c.InFull {
		if a := t.deliver(ctx, w, evalsha, c); !unknownScript(a.sent) {
			return t.judge(c, a)
		}
		if w != nil {
			w.extend()
		}
	}
	return t.judge(c, t.deliver(ctx, w, eval, c))
}

// An answer is what came back for one command.
type answer struct {
	val  any
	err  error
	sent error // what sending it returned, alone or with others
}

func answerOf(cmd once, sent error) answer { return answer{cmd.Val(), cmd.Err(), sent} }

// deliver sends a call, through the client's hooks if it has any.
func (t *Transport) deliver(ctx context.Context, w *flight, verb string, c *Call) answer {
	if w != nil && t.own.hooks.none.Load() {
		val, err := w.send(ctx, c.bare(verb))
		return answer{val, err, err}
	}
	cmd := command(ctx, verb, c)
	return answerOf(cmd, t.process(ctx, w, cmd))
}

func (t *Transport) process(ctx context.Context, w *flight, cmd once) error {
	if w == nil {
		return t.rdb.Process(ctx, cmd)
	}
	p := &passage{way: w}
	defer p.end()
	return t.own.hooked.Process(ctx, &led{cmd, p})
}

// send sends a batch and hands out the results: each command's own, so that one
// that fails fails alone. Each server has its own cache of scripts, so some calls
// may be known and others not.
func (t *Transport) send(ctx context.Context, b *batch) {
	if len(b.requests) == 1 {
		r := b.requests[0]
		r.answer(t.run(ctx, nil, &r.call))
		return
	}
	cold := t.exec(ctx, evalsha, b.requests)
	if len(cold) == 0 {
		return
	}
	cold = t.remaining(cold)
	for _, r := range t.exec(ctx, eval, cold) {
		r.answer(r.result) // it does not know what it was just told
	}
}

// remaining leaves out requests whose callers have gone: nothing more is sent for them.
func (t *Transport) remaining(requests []*request) []*request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(requests, func(r *request) bool { return r.left })
}

// exec sends requests in one pipeline, and answers all but those whose script
// the server does not know.
func (t *Transport) exec(ctx context.Context, verb string, requests []*request) (cold []*request) {
	if len(requests) == 0 {
		return nil
	}
	p := t.rdb.Pipeline()
	cmds := make([]once, len(requests))
	for i, r := range requests {
		cmds[i] = command(ctx, r.call.verb(verb), &r.call)
		_ = p.Process(ctx, cmds[i]) // only queues
	}
	// Its error is only for a command that has neither reply nor error of its own.
	_, err := p.Exec(ctx)
	for i, r := range requests {
		res := t.judge(&r.call, answerOf(cmds[i], err))
		if unknownScript(res.Err) {
			r.result = res
			cold = append(cold, r)
			continue
		}
		r.answer(res)
	}
	return cold
}

// answer wakes the caller, whose the request is from then on.
func (r *request) answer(result Result) {
	r.result = result
	r.done <- struct{}{}
}

// judge is result, and notes that a Cluster client has found the way, and that a
// server answers.
func (t *Transport) judge(c *Call, a answer) Result {
	if a.sent == nil {
		t.own.answered()
	}
	if t.many != nil && a.sent == nil && !t.routed.Load() {
		t.routed.Store(true)
	}
	return result(c, a)
}

func result(c *Call, a answer) Result {
	if a.err == nil {
		switch v := a.val.(type) {
		case []any:
			return Result{Reply: v}
		case nil:
			// A connection that fails in its handshake leaves the commands
			// of a pipeline without an error.
			a.err = a.sent
		default:
			return Result{Reply: []any{v}}
		}
	}
	if a.err == nil {
		a.err = errNothing
	}
	return Result{Err: named(c, ours(a.err))}
}

// named says in which script err happened.
func named(c *Call, err error) error {
	return fmt.Errorf("script %s: %w", c.Script.Name, err)
}

func unknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
