package deploy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestCommandThatTheServerLacksIsNamedAtTheFirstCall has servers whose operators
// took a command away, as hosters do. They say so in other words than of a
// permission, and each server has words of its own: none of them counts.
func TestCommandThatTheServerLacksIsNamedAtTheFirstCall(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"hdel", "zrem", "publish", "pubsub"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Real(t, "--rename-command", command, "")
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err := rig.Open(t, srv.Client(t)).NewLock("job").Lock(ctx)
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), command) {
				t.Errorf("the first call says %v, want what is missing: %s", err, command)
			}
			if keys := srv.Client(t).Keys(t.Context(), "*").Val(); len(keys) > 0 {
				t.Errorf("%q are left of a call that was refused before it took anything", keys)
			}
		})
	}
}

// TestFirstCallToAServerThatDoesNotWriteIsNoMatterOfPermissions: what passes by
// itself is told as what it is.
func TestFirstCallToAServerThatDoesNotWriteIsNoMatterOfPermissions(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]struct{ made, undo, code string }{
		"a foreign key":    {"SET relock:h:{job} mine", "DEL relock:h:{job}", "WRONGTYPE"},
		"out of memory":    {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", ""}, // which stops no lock
		"a replica":        {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY"},
		"too few replicas": {"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "NOREPLICAS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Real(t)
			admin := srv.Client(t)
			rig.Permit(t, admin, state.made)
			l := rig.Open(t, srv.Client(t)).NewLock("job")
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			err := l.Lock(ctx)
			if (err == nil) != (state.code == "") {
				t.Errorf("the first call says %v, want %q", err, state.code)
			}
			if err == nil {
				rig.Must(t, l.Unlock())
			} else if !strings.Contains(err.Error(), state.code) || strings.Contains(err.Error(), "may not run") {
				t.Errorf("the first call says %v, want %s, and nothing of permissions", err, state.code)
			}
			rig.Permit(t, admin, state.undo)
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
		})
	}
}

// TestServerThatIsNotClusteredIsAskedForNothingItLacks: it would answer CLUSTER
// with an error, and count it, which operators watch.
func TestServerThatIsNotClusteredIsAskedForNothingItLacks(t *testing.T) {
	t.Parallel()
	srv := redistest.Real(t)
	admin := srv.Client(t)
	a, b := rig.RealActor(t, srv), rig.RealActor(t, srv)
	first, second := a.NewLock("job"), b.NewLock("job")
	rig.Must(t, first.Lock(t.Context()))
	waits := rig.Beside(func() error { return second.Lock(t.Context()) })
	rig.Queued(t, first, 1)
	rig.Must(t, first.Unlock())
	rig.Must(t, <-waits)
	rig.Must(t, second.Unlock())
	rig.Must(t, admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
	rig.Soon(t, func() string { // the new link makes it ask at once who has its releases
		if a.Sent("where") == 0 {
			return "the client has not asked where its inbox is"
		}
		return ""
	})
	for line := range strings.Lines(admin.Info(t.Context(), "commandstats").Val()) {
		if strings.HasPrefix(line, "cmdstat_cluster") {
			t.Errorf("the server was asked: %s", line)
		}
	}
}

// TestServerWithoutClusterCommandsServes: hosters take them all away.
func TestServerWithoutClusterCommandsServes(t *testing.T) {
	t.Parallel()
	srv := redistest.Real(t, "--rename-command", "cluster", "")
	rdb := func() redis.UniversalClient { return srv.Client(t) }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d := &deployed{T: t, ctx: ctx, a: rig.Open(t, rdb()), b: rig.Open(t, rdb()), rdb: rdb, name: "job"}
	d.handOff()
	d.deadWaiter()
}
