package transport

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
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
			return l.process(ctx, l.once)
		}
		return r.others.Process(ctx, cmd)
	}
}

// A passage is the way of one call through the hooks. One may use it twice at once, as a
// hedge, or after it has returned.
type passage struct {
	way   *flight
	using sync.Mutex // held while the way is used; protects the following field
	over  bool       // the call has returned, and the way is another's
}

// errTwice is not known to mean that the command has not run: the first may have.
var errTwice = errors.New("a hook of the redis client has sent a command of relock once more that is under way, or over; relock repeats its commands itself")

func (p *passage) process(ctx context.Context, cmd once) error {
	if !p.using.TryLock() {
		return errTwice
	}
	defer p.using.Unlock()
	if p.over {
		return errTwice
	}
	return p.way.process(ctx, cmd)
}

// end waits for a use that its hook has not waited for: the way is another call's after this.
func (p *passage) end() {
	p.using.Lock()
	defer p.using.Unlock()
	p.over = true
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
