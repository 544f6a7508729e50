package relock_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// shardedWords are the permissions that docs/operations.md adds for the option.
func shardedWords(t *testing.T) []string {
	t.Helper()
	words := strings.Fields(strings.Trim(documentedLine(t, shardedGrants), "`"))
	if !slices.Contains(words, "+ssubscribe") {
		t.Fatalf("documented for the option: %q", words)
	}
	return words
}

func TestShardedPermissionsAreEnoughAndEachIsNamed(t *testing.T) {
	srv := redistest.Real(t)
	admin := srv.Client(t)
	words := shardedWords(t)
	full := withSharded(t, documentedACL(t))
	user := func(t *testing.T) *relock.Client {
		return open(t, srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "secret" }), relock.ShardedPubSub())
	}
	permit(t, admin, full)
	queueUp(t, user(t), user(t), "a", "b").pass()
	for _, word := range append(words, "&relock:*") {
		t.Run(word, func(t *testing.T) {
			must(t, admin.Do(t.Context(), "ACL", "DELUSER", "app").Err())
			permit(t, admin, strings.Replace(full+" ", " "+word+" ", " ", 1))
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
	must(t, c.Client(t).ForEachShard(t.Context(), func(_ context.Context, node *redis.Client) error {
		permit(t, node, withSharded(t, documentedLine(t, clusterLine)))
		return nil
	}))
	return func() redis.UniversalClient {
		return c.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "cluster", "secret" })
	}
}

// withSharded is a documented line with what the option changes in it.
func withSharded(t *testing.T, line string) string {
	t.Helper()
	return strings.Replace(line, " +subscribe ", " ", 1) + " " + strings.Join(shardedWords(t), " ")
}
