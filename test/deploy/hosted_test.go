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

// What hosters of Redis refuse is played by a proxy in front of a redis-server. docs/servers.md
// names the test of each restriction.

// hosted is a restriction that locks work under, with these options.
type hosted struct {
	refuses redistest.Hosting
	opts    []relock.Option
}

// management is what hosters keep for themselves.
var management = []string{"config", "info", "client", "cluster"}

var restrictions = map[string]hosted{
	"publish within the slot": {
		refuses: redistest.Hosting{SlotPublish: true},
		opts:    []relock.Option{relock.ShardedPubSub()},
	},
	"publish within the slot, no plain publish": {
		refuses: redistest.Hosting{SlotPublish: true, Refuses: []string{"publish", "subscribe", "pubsub|numsub"}},
		opts:    []relock.Option{relock.ShardedPubSub()},
	},
	"no management":     {refuses: redistest.Hosting{Refuses: management}},
	"no script load":    {refuses: redistest.Hosting{Refuses: []string{"script", "function"}}},
	"nobody is counted": {refuses: redistest.Hosting{Uncounted: true, Refuses: []string{"cluster"}}},
	"no hello":          {refuses: redistest.Hosting{Refuses: []string{"hello"}}},
	"database 0 alone":  {refuses: redistest.Hosting{OneDatabase: true}},
}

func TestLockUnderEveryRestriction(t *testing.T) {
	t.Parallel()
	for name, h := range restrictions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Host(t, h.refuses)
			playHosted(t, func() redis.UniversalClient { return srv.Client(t) }, h.opts...)
		})
	}
	t.Run("a cluster behind one address", func(t *testing.T) {
		t.Parallel()
		srv := redistest.HostCluster(t, redistest.Hosting{SlotPublish: true, KeyNeeded: true, Refuses: []string{"config", "psubscribe"}})
		playHosted(t, func() redis.UniversalClient { return srv.ClusterClient(t) }, relock.ShardedPubSub())
	})
}

// playHosted has two applications do what locks do on every deployment.
func playHosted(t *testing.T, rdb func() redis.UniversalClient, opts ...relock.Option) {
	a, b := rig.Open(t, rdb(), opts...), rig.Open(t, rdb(), opts...)
	for what, do := range suite {
		if len(opts) > 0 && what == "a removed hold is told" {
			continue // by its next renewal: TestShardedHolderIsToldOfItsRemoval
		}
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			do(&deployed{T: t, ctx: ctx, a: a, b: b, rdb: rdb, opts: opts, name: what})
		})
	}
}

// TestFirstErrorNamesTheRestriction has the first call say what is refused, and what helps.
func TestFirstErrorNamesTheRestriction(t *testing.T) {
	t.Parallel()
	withinSlot := redistest.Hosting{SlotPublish: true}
	behind := func(h redistest.Hosting, mod ...func(*redis.Options)) func(t *testing.T) redis.UniversalClient {
		return func(t *testing.T) redis.UniversalClient { return redistest.Host(t, h).Client(t, mod...) }
	}
	without := func(commands ...string) func(t *testing.T) redis.UniversalClient {
		return behind(redistest.Hosting{Refuses: commands})
	}
	for name, c := range map[string]struct {
		server func(t *testing.T) redis.UniversalClient
		says   []string
	}{
		"publish within the slot": {behind(withinSlot), []string{"PUBLISH", "slot", "ShardedPubSub"}},
		"publish within the slot of a cluster": {
			func(t *testing.T) redis.UniversalClient { return redistest.HostCluster(t, withinSlot).ClusterClient(t) },
			[]string{"PUBLISH", "slot", "ShardedPubSub"},
		},
		"no publish":           {without("publish"), []string{"PUBLISH", "ShardedPubSub"}},
		"no publish of a kind": {without("publish", "spublish"), []string{"lacks: publish"}},
		"no publish, no hset":  {without("publish", "hset"), []string{"lacks: hset, publish"}},
		"no subscribe":         {without("subscribe"), []string{"needed: subscribe"}},
		"no eval":              {without("eval", "evalsha"), []string{"needed: eval"}},
		"no evalsha":           {without("evalsha"), []string{"unknown command 'evalsha'"}},
		"database 0 alone": {
			behind(redistest.Hosting{OneDatabase: true}, func(o *redis.Options) { o.DB = 2 }),
			[]string{"SELECT", "database 2", "KeyPrefix"},
		},
		"read only": {behind(redistest.ReadOnly()), []string{"READONLY", "connect to the primary"}},
		"TLS only": {
			func(t *testing.T) redis.UniversalClient {
				srv := redistest.StartTLS(t)
				return srv.RealServer.Client(t, func(o *redis.Options) { o.Addr = srv.TLSAddr() })
			},
			[]string{"TLS only", "TLSConfig"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := c.server(t)
			for what, call := range map[string]func(ctx context.Context, c *relock.Client) error{
				"Lock":  func(ctx context.Context, c *relock.Client) error { return c.NewLock("job").Lock(ctx) },
				"Check": func(ctx context.Context, c *relock.Client) error { return c.Check(ctx) },
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				err := call(ctx, rig.Open(t, rdb))
				for _, says := range c.says {
					if err == nil || !strings.Contains(err.Error(), says) {
						t.Errorf("the first call, a %s, says %v, want %q in it", what, err, says)
					}
				}
			}
		})
	}
}

// TestServerThatHasAnsweredIsNotTakenForOneOfTLS: the advice is for a first call that fails.
func TestServerThatHasAnsweredIsNotTakenForOneOfTLS(t *testing.T) {
	t.Parallel()
	srv := redistest.Real(t)
	link := redistest.NewLink(t, srv.Dial)
	l := rig.Open(t, srv.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })).NewLock("job")
	rig.Must(t, l.Lock(t.Context()))
	rig.Must(t, l.Unlock())
	link.OnCommand(func(redistest.Command) redistest.Verdict { return redistest.CutReply })
	if ok, err := l.TryLock(t.Context(), 0); ok || err == nil || strings.Contains(err.Error(), "TLS") {
		t.Errorf("TryLock = %v, %v, want an error without advice on TLS", ok, err)
	}
}
