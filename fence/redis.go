package fence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Script is a Lua script, made by NewScript, that Redis runs only for a token that is not stale: see Run. It may be
// used from any goroutine, and several times.
type Script struct {
	text   string // the comparison, and the source
	script *redis.Script
}

// refusal is how the error of a stale token begins. It is no word that a source's own error would begin with.
const refusal = "RELOCK-STALE "

// compare refuses a stale token, and takes the fence's key and the token away from the script that follows. Lua's
// numbers are not exact for a token's many digits: so it compares the lengths of the texts, and then the texts.
const compare = `
local last, token = redis.call('GET', KEYS[1]), ARGV[1]
if last and not string.match(last, '^[1-9]%d*$') then
  return redis.error_reply('ERR the fence has no token')
end
if last and (#last > #token or #last == #token and last > token) then
  return redis.error_reply('` + refusal + `' .. last)
end
redis.call('SET', KEYS[1], token)
table.remove(KEYS, 1)
table.remove(ARGV, 1)
`

// NewScript returns a script that runs the given Lua source only for a token that is not stale: see Run. It does no
// I/O: an error in the source is returned by Run. The source finds in KEYS and ARGV only the keys and args of Run, not
// the fence and the token. To set a value: NewScript("return redis.call('SET', KEYS[1], ARGV[1])").
func NewScript(source string) *Script {
	text := compare + source
	return &Script{text, redis.NewScript(text)}
}

// Run compares the token with the largest that the key fence has seen. It refuses a smaller one with an error that
// matches ErrStale, and the source does not run. Else it stores the token and runs the source with keys and args, and
// returns its reply. An equal token passes. A reply of nil is the error redis.Nil, as go-redis has it. A token of zero
// or less is refused with another error, and so is a fence whose value is no token.
//
// Redis does all of that in one step. Run does not repeat it: if no reply comes, Run returns the error of go-redis.
// Then the source may have run, or may yet run. If the source fails at run time, what it wrote and the token stay: Run
// returns its error. A source's own errors must not begin with MOVED, ASK, READONLY or NOSCRIPT: go-redis or Run would
// send the script again.
//
// rdb is a client: a pipeline is refused, and nothing is queued. It may be of another Redis than the locks. A type of
// yours needs the method Process of go-redis' clients. If it lacks that, go-redis may repeat the script after a lost
// reply: then the source may run twice, and may have run before an ErrStale.
//
// Writes outside of the script are not protected, also after a successful Run. In a Cluster, fence and keys must have
// one hash tag. The key fence must not expire or be evicted while a late holder may still write. A failover that loses
// writes may lose the newest token.
func (s *Script) Run(ctx context.Context, rdb redis.Scripter, fence string, token int64, keys []string, args ...any) (any, error) {
	if token <= 0 {
		return nil, failed(fence, errNoToken)
	}
	if _, is := rdb.(redis.Pipeliner); is {
		return nil, failed(fence, errPipeline)
	}
	text := strconv.FormatInt(token, 10)
	reply, err := s.run(ctx, rdb, append([]string{fence}, keys...), append([]any{text}, args...))
	if answer, is := errors.AsType[redis.Error](err); is {
		if newer, is := strings.CutPrefix(answer.Error(), refusal); is {
			return nil, stale(fence, token, newer)
		}
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("fence: %q: %w", fence, err)
	}
	return reply, err
}

// run sends the script by its hash, and in full if Redis does not know it.
func (s *Script) run(ctx context.Context, rdb redis.Scripter, keys []string, args []any) (any, error) {
	client, is := rdb.(processor)
	if !is {
		return s.script.Run(ctx, rdb, keys, args...).Result()
	}
	reply, err := send(ctx, client, "evalsha", s.script.Hash(), keys, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return send(ctx, client, "eval", s.text, keys, args)
	}
	return reply, err
}

// A processor sends any command, as all clients of go-redis do.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// once is a command that go-redis sends at most once, whatever MaxRetries says. Else a source may write twice.
type once struct{ *redis.Cmd }

// NoRetry overrides the method of redis.Cmd, which returns false.
func (once) NoRetry() bool { return true }

// send sends one command and returns its reply.
func send(ctx context.Context, client processor, verb, script string, keys []string, args []any) (any, error) {
	words := []any{verb, script, len(keys)}
	for _, key := range keys {
		words = append(words, key)
	}
	cmd := redis.NewCmd(ctx, append(words, args...)...)
	cmd.SetFirstKeyPos(3) // else a Cluster client asks a server where the keys are
	cmd.SetStepCount(1)
	if err := client.Process(ctx, once{cmd}); err != nil {
		return nil, err
	}
	return cmd.Result()
}
