package transport_test

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// recorder is a hook that keeps what passes. Its users make one call at a
// time and read it after that call, so it needs no mutex.
type recorder struct {
	cmds   []redis.Cmder
	names  []string
	values []any
}

func (r *recorder) note(ctx context.Context, cmds ...redis.Cmder) {
	r.values = append(r.values, ctx.Value(traceKey{}))
	for _, cmd := range cmds {
		r.cmds = append(r.cmds, cmd)
		r.names = append(r.names, cmd.Name())
	}
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.note(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.note(ctx, cmds...)
		return next(ctx, cmds)
	}
}

// after is a hook that is called when a command or pipeline has its reply.
type after func()

func (f after) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f after) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer f()
		return next(ctx, cmd)
	}
}

func (f after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer f()
		return next(ctx, cmds)
	}
}
