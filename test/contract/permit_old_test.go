package contract_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// oldServer lets the first question of a client meet what Redis 6.2 is to a script: no
// acl_check_cmd, and no GT, of which it says what 6.2.5 says.
type oldServer struct{ info string }

func (oldServer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (oldServer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o oldServer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	permit := script.MustLoad(lua.FS, "permit").Source
	old := fmt.Sprintf(`local real = redis
local redis = { pcall = function(name, ...)
  if name == 'PEXPIRE' then return { err = 'Wrong number of args calling Redis command From Lua script' } end
  if name == 'INFO' then return %s end
  return real.pcall(name, ...)
end }
`, o.info)
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 1 && args[0] == "eval" && args[1] == permit {
			args[1] = old + permit
		}
		return next(ctx, cmd)
	}
}

// Fails when a server before Redis 7.0 is not told apart.
func TestServerThatIsTooOldIsNamedByItsVersion(t *testing.T) {
	for want, info := range map[string]string{
		"this is 6.2.14": `'# Server\r\nredis_version:6.2.14\r\nredis_git_sha1:0\r\n'`,
		"this is older":  `{ err = 'NOPERM this user has no permissions' }`,
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			rdb := x.Server.Client(t)
			rdb.AddHook(oldServer{info})
			c, err := relock.New(rdb)
			rig.Must(t, err)
			defer func() { _ = c.Close() }()
			for way, call := range everyTry(c) {
				got, err := call(t.Context(), 0)
				if got || err == nil || !strings.Contains(err.Error(), "Redis 7.0 or Valkey is needed, "+want) {
					t.Errorf("%s = %v, %v, want %q", way, got, err, want)
				}
			}
		})
	}
}
