package lua_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// TestCallsMadeTogetherStoreNothingThatLivesForEver: who may not set a TTL any more takes
// no lock. Fails when what a TTL came to is not looked at, of a new name and of an old one.
func TestCallsMadeTogetherStoreNothingThatLivesForEver(t *testing.T) {
	srv := redistest.Real(t)
	admin := srv.Client(t)
	rig.Must(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-pexpire").Err())
	rdb := srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "secret" })
	rig.Must(t, admin.HSet(t.Context(), "{old}", "token", "1000", "kind", rig.StoredKind("plain")).Err())
	rig.Must(t, admin.PExpire(t.Context(), "{old}", time.Hour).Err())
	source := script.MustLoad(lua.FS, "usual").Source
	for _, name := range []string{"{new}", "{old}"} {
		reply, err := rdb.Eval(t.Context(), source, []string{name}, 0, rig.StoredKind("plain"), 33, 900_000,
			time.Now().Add(10*time.Second).UnixMicro(), "nonce client o:me", "o:me", "1 1 0 300 ").Slice()
		if err != nil || len(reply) != 1 || reply[0] != int64(0) {
			t.Errorf("%s: answered %v, %v; want 0, which leaves it to its own script", name, reply, err)
		}
		if admin.HExists(t.Context(), name, "holder").Val() {
			t.Errorf("%s is held, and its key lives for %v", name, admin.PTTL(t.Context(), name).Val())
		}
	}
}
