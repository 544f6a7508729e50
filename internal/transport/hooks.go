package transport

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// redirect is a hook behind all others. What they send by themselves goes to a
// client without hooks: that of a hook is not for its own connection.
type redirect struct {
	others *redis.Client
	found  *hooks
}

func (redirect) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r redirect) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if l, ok := cmd.(*led); ok {
			r.found.look()
			return l.way.process(ctx, l.once)
		}
		return r.others.Process(ctx, cmd)
	}
}

func (redirect) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// process sends a command that has come through the hooks.
func (f *flight) process(ctx context.Context, cmd once) error {
	val, err := f.send(ctx, bare{args: cmd.Args()})
	if err == nil {
		cmd.SetVal(val)
	}
	return err
}

// hooks is whether the client has any that see commands. go-redis does not say. Where it
// has none, the command that they would see need not be made.
type hooks struct{ known, none atomic.Bool }

const goRedis = "github.com/redis/go-redis/v9."

// look finds out, as the first command has come through the hooks: nobody but go-redis
// stands on the stack between the Transport that sent it and the redirection.
func (h *hooks) look() {
	if h.known.Load() {
		return
	}
	var stack [32]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(3, stack[:])]) // above the redirection
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, goRedis) {
			h.none.Store(strings.HasSuffix(frame.Function, sender))
			break
		}
		if !more {
			break
		}
	}
	h.known.Store(true)
}

// sender is who hands a command to the hooks.
const sender = "/internal/transport.(*Transport).process"
