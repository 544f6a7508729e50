package deploy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

func TestShardedPermissionsAreEnoughAndEachIsNamed(t *testing.T) {
	srv := redistest.Real(t)
	admin := srv.Client(t)
	words := rig.ShardedWords(t)
	full := withSharded(t, rig.DocumentedACL(t))
	user := func(t *testing.T) *relock.Client {
		return rig.Open(t, srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "secret" }), relock.ShardedPubSub())
	}
	rig.Permit(t, admin, full)
	queueUp(t, user(t), user(t), "a", "b").pass()
	for _, word := range append(words, "&relock:*") {
		t.Run(word, func(t *testing.T) {
			rig.Must(t, admin.Do(t.Context(), "ACL", "DELUSER", "app").Err())
			rig.Permit(t, admin, strings.Replace(full+" ", " "+word+" ", " ", 1))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err := user(t).NewLock("l").Lock(ctx)
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), strings.Trim(word, "+&*")) {
				t.Errorf("the first call says %v, want what is missing: %s", err, word)
			}
			everyKeyHasATTL(t, admin)
		})
	}
}

// shardedCluster is one whose clients may do what the option needs, and no more.
func shardedCluster(t *testing.T) func() redis.UniversalClient {
	c := redistest.StartCluster(t)
	rig.Must(t, c.Client(t).ForEachShard(t.Context(), func(_ context.Context, node *redis.Client) error {
		rig.Permit(t, node, withSharded(t, rig.Documented(t, rig.ClusterLine)))
		return nil
	}))
	return func() redis.UniversalClient {
		return c.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "cluster", "secret" })
	}
}

// withSharded is a documented line with what the option changes in it: it needs no plain
// pub/sub.
func withSharded(t *testing.T, line string) string {
	t.Helper()
	line = strings.NewReplacer(" +subscribe ", " ", " +publish ", " ", " +pubsub|numsub ", " ").Replace(line)
	return line + " " + strings.Join(rig.ShardedWords(t), " ")
}
