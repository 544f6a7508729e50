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

// redirect is the last hook. It sends a call's command on the stream. Commands that the client's hooks send
// themselves go to a client without hooks, because they are not part of a call and have no sharing.
type redirect struct {
	others *redis.Client
	found  *hooks
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

// A passage lets one command of a call through to the stream from behind the hooks. A hook may send the command twice at
// the same time, as a hedge, or after its call has returned.
type passage struct {
	sharing sharing
	using   sync.Mutex // held while the command is in flight; guards over
	over    bool       // the call no longer waits for the command
}

// errTwice has the outcome Unknown: the command's first sending may have run.
var errTwice = errors.New("a hook of the redis client has sent a command of relock once more that is under way, or over; relock repeats its commands itself")

func (p *passage) process(ctx context.Context, cmd once) error {
	if !p.using.TryLock() {
		return errTwice
	}
	defer p.using.Unlock()
	if p.over {
		return errTwice
	}
	if !encodable(cmd.Args()) { // a hook has changed one, and the pool would send other bytes for it
		return fmt.Errorf("%w: an argument of a type that redis has not", errNotSent)
	}
	val, err := p.sharing.send(ctx, rawCmd{args: cmd.Args()})
	if err == nil {
		cmd.SetVal(val)
	}
	return err
}

// end waits for a sending that its hook has not waited for.
func (p *passage) end() {
	p.using.Lock()
	defer p.using.Unlock()
	p.over = true
}

func (redirect) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// hooks records whether the client has hooks that see commands, which go-redis does not tell. If it has none, the
// go-redis command that they would see need not be built.
type hooks struct{ known, none atomic.Bool }

const goRedis = "github.com/redis/go-redis/v9."

// detect runs when the first command has passed the hooks. There are none if the stack between the Transport's call
// and redirect has only frames of go-redis.
func (h *hooks) detect() {
	if h.known.Load() {
		return
	}
	var stack [32]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(3, stack[:])]) // above redirect
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

// sender is the function that hands a command to the hooks.
const sender = "/internal/transport.(*Transport).process"
