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
type Script struct{ script *redis.Script }

// compare refuses a stale token, and takes the fence's key and the token away from the script that follows. Lua's
// numbers are not exact for a token's many digits: so it compares the lengths of the texts, and then the texts.
const compare = `
local last, token = redis.call('GET', KEYS[1]), ARGV[1]
if last and not string.match(last, '^[1-9]%d*$') then
  return redis.error_reply('ERR the fence has no token')
end
if last and (#last > #token or #last == #token and last > token) then
  return redis.error_reply('STALE ' .. last)
end
redis.call('SET', KEYS[1], token)
table.remove(KEYS, 1)
table.remove(ARGV, 1)
`

// NewScript returns a script that runs the given Lua source only for a token that is not stale: see Run. It does no
// I/O: an error in the source is returned by Run. The source finds in KEYS and ARGV only the keys and args of Run, not
// the fence and the token. To set a value: NewScript("return redis.call('SET', KEYS[1], ARGV[1])").
func NewScript(source string) *Script { return &Script{redis.NewScript(compare + source)} }

// Run compares the token with the largest that the key fence has seen. It refuses a smaller one with an error that
// matches ErrStale, and the source does not run. Else it stores the token and runs the source with keys and args, and
// returns its reply. An equal token passes. A reply of nil is the error redis.Nil, as go-redis has it. A token of zero
// or less is refused with another error, and so is a fence whose value is no token.
//
// Redis does all of that in one step. If the source fails, Run returns its error: what it wrote before stays, and so
// does the token. Writes outside of the script are not protected, also after a successful Run. rdb need not be the
// Redis of the locks. In a Cluster, fence and keys must have one hash tag. The key fence must not expire or be evicted
// while a late holder may still write. A failover that loses writes may lose the newest token.
func (s *Script) Run(ctx context.Context, rdb redis.Scripter, fence string, token int64, keys []string, args ...any) (any, error) {
	if token <= 0 {
		return nil, failed(fence, errNoToken)
	}
	text := strconv.FormatInt(token, 10)
	reply, err := s.script.Run(ctx, rdb, append([]string{fence}, keys...), append([]any{text}, args...)...).Result()
	if answer, is := errors.AsType[redis.Error](err); is {
		if newer, is := strings.CutPrefix(answer.Error(), "STALE "); is {
			return nil, stale(fence, token, newer)
		}
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("fence: %q: %w", fence, err)
	}
	return reply, err
}
