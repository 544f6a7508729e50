package transport

import (
	"context"
	"fmt"

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

// command returns verb body numkeys key ... arg ..., where body is the
// script's SHA for EVALSHA, and its source for EVAL.
func command(ctx context.Context, verb, body string, c Call) once {
	args := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	args = append(args, verb, body, len(c.Keys))
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
// not know it. If ctx has ended by then go-redis sends nothing.
func (t *Transport) run(ctx context.Context, c Call) Result {
	if !c.InFull {
		cmd := command(ctx, "evalsha", c.Script.SHA, c)
		if err := t.rdb.Process(ctx, cmd); !unknownScript(err) {
			return result(c, cmd, err)
		}
	}
	cmd := command(ctx, "eval", c.Script.Source, c)
	return result(c, cmd, t.rdb.Process(ctx, cmd))
}

// runAll is run for a batch. Each server has its own cache of scripts, so some
// calls may be known and others not.
func (t *Transport) runAll(ctx context.Context, calls []Call) []Result {
	results := make([]Result, len(calls))
	var cold []int
	cmds := make([]once, len(calls))
	for i, c := range calls {
		cmds[i] = command(ctx, "evalsha", c.Script.SHA, c)
	}
	err := t.exec(ctx, cmds)
	for i, c := range calls {
		results[i] = result(c, cmds[i], err)
		if unknownScript(results[i].Err) {
			cold = append(cold, i)
		}
	}
	if len(cold) == 0 {
		return results
	}
	cmds = cmds[:0]
	for _, i := range cold {
		cmds = append(cmds, command(ctx, "eval", calls[i].Script.Source, calls[i]))
	}
	err = t.exec(ctx, cmds)
	for n, i := range cold {
		results[i] = result(calls[i], cmds[n], err)
	}
	return results
}

// exec sends commands in one pipeline. Its error is of the pipeline, and only
// to be used for a command that has neither reply nor error of its own.
func (t *Transport) exec(ctx context.Context, cmds []once) error {
	p := t.rdb.Pipeline()
	for _, cmd := range cmds {
		_ = p.Process(ctx, cmd) // only queues
	}
	_, err := p.Exec(ctx)
	return err
}

// result reads what came back for one command. sendErr is what sending it
// returned, alone or with others.
func result(c Call, cmd once, sendErr error) Result {
	err := cmd.Err()
	if err == nil {
		switch v := cmd.Val().(type) {
		case []any:
			return Result{Reply: v}
		case nil:
			// A connection that fails in its handshake leaves the commands
			// of a pipeline without an error.
			err = sendErr
		default:
			return Result{Reply: []any{v}}
		}
	}
	if err == nil {
		err = errNothing
	}
	return Result{Err: named(c, ours(err))}
}

// named says in which script err happened.
func named(c Call, err error) error {
	return fmt.Errorf("script %s: %w", c.Script.Name, err)
}

func unknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
