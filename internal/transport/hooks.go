package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// redirect is the innermost hook, behind those of the client. It sends the command of a call on the stream. Other
// commands come from the client's hooks themselves: they belong to no call, so they go to a client without hooks.
type redirect struct {
	others *redis.Client // the client's pool, without hooks
	found  *hooks        // where detect records what it finds
}

func (redirect) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r redirect) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if l, ok := cmd.(*sharedCmd); ok {
			r.found.detect()
			return l.process(ctx, l.once)
		}
		return r.others.Process(ctx, cmd)
	}
}

// A passage takes one command of a call from the hooks to the stream. It returns errTwice if a hook sends the command
// twice at the same time, as a hedge, or after its call has ended.
type passage struct {
	call  sharedCall
	using sync.Mutex // held while the command is in flight; guards over
	over  bool       // the call no longer waits for the command
}

// errTwice has the outcome Unknown: the script may have run when the command was first sent.
var errTwice = errors.New("a hook of the redis client has sent a command of relock once more that is under way, or over; relock repeats its commands itself")

func (p *passage) process(ctx context.Context, cmd once) error {
	if !p.using.TryLock() {
		return errTwice
	}
	defer p.using.Unlock()
	if p.over {
		return errTwice
	}
	if !encodable(cmd.Args()) { // a hook has put in an argument that appendArg does not know
		return fmt.Errorf("%w: an argument of a type that redis has not", errNotSent)
	}
	val, err := p.call.send(ctx, rawCmd{args: cmd.Args()})
	if err == nil {
		cmd.SetVal(val)
	}
	return err
}

// end closes the passage. First it waits for a sending that a hook has begun and not waited for.
func (p *passage) end() {
	p.using.Lock()
	defer p.using.Unlock()
	p.over = true
}

func (redirect) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// hooks records whether the client has hooks that see commands, because go-redis does not tell. known is set once that
// has been found out. absent is set if there are none: then calls on a stream need no go-redis command.
type hooks struct{ known, absent atomic.Bool }

const goRedis = "github.com/redis/go-redis/v9."

// detect finds out whether there are hooks, from the stack above a command that has passed them. If the first function
// there outside go-redis is Transport.process, no hook is in between.
func (h *hooks) detect() {
	if h.known.Load() {
		return
	}
	var stack [32]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(3, stack[:])]) // from the caller of redirect or scout on
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, goRedis) {
			h.absent.Store(strings.HasSuffix(frame.Function, sender))
			break
		}
		if !more {
			break
		}
	}
	h.known.Store(true)
}

// sender is the end of the name of Transport.process, which hands commands to the hooks.
const sender = "/internal/transport.(*Transport).process"
