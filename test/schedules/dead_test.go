package schedules_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

const (
	deadEntries = 10_000
	deadTTL     = 3 * time.Second
	stall       = 10 * time.Millisecond
)

// bury puts entries into a lock's queue whose clients are gone: what processes
// leave that are killed while they wait. Their names are those of no client.
func bury(t *testing.T, rdb redis.UniversalClient, kind, name, mode string) {
	t.Helper()
	acquire := script.MustLoad(lua.FS, "acquire")
	keys := key.For("relock", name)
	rig.Must(t, rdb.ScriptLoad(t.Context(), acquire.Source).Err())
	pipe := rdb.Pipeline()
	for i := range deadEntries {
		id := fmt.Sprintf("dead%018d", i)
		r := rig.Raw{T: t, ID: id}
		pipe.EvalSha(t.Context(), acquire.SHA, []string{keys.Hash, keys.Queue}, r.Request(kind, id, "~owner "+id, mode, deadTTL, 1, 1, 0)...)
		if i%500 == 499 {
			_, err := pipe.Exec(t.Context())
			rig.Must(t, err)
		}
	}
}

// TestDeadEntriesDelayNobodyForLong has a live waiter behind ten thousand dead.
func TestDeadEntriesDelayNobodyForLong(t *testing.T) {
	srv := redistest.Real(t)
	cluster := redistest.StartCluster(t)
	for where, row := range map[string]struct {
		rdb    func() redis.UniversalClient
		server func(name string) *redistest.RealServer
		bound  time.Duration
	}{
		"one server": {
			func() redis.UniversalClient { return srv.Client(t) },
			func(string) *redistest.RealServer { return srv }, time.Second,
		},
		"cluster": {
			func() redis.UniversalClient { return cluster.Client(t) },
			func(name string) *redistest.RealServer {
				return cluster.Serving(cluster.Slot(key.For("relock", name).Hash))
			}, 2 * deadTTL, // one lease, and what a busy machine adds
		},
	} {
		for _, kind := range []string{"plain", "rw"} {
			t.Run(where+", "+kind, func(t *testing.T) {
				behindTheDead(t, row.rdb, row.server(kind), kind, row.bound)
			})
		}
	}
}

// mortal is a lock whose waiters' leases end soon, by the name of its kind.
func mortal(c *relock.Client, kind string) *relock.Lock {
	switch kind {
	case "rw":
		return c.NewRWLock(kind, relock.TTL(deadTTL)).WLocker()
	case "fair":
		return c.NewLock(kind, relock.TTL(deadTTL), relock.Fair())
	}
	return c.NewLock(kind, relock.TTL(deadTTL))
}

func behindTheDead(t *testing.T, rdb func() redis.UniversalClient, server *redistest.RealServer, kind string, bound time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	holder, waiter := mortal(rig.Open(t, rdb()), kind), mortal(rig.Open(t, rdb()), kind)
	rig.Must(t, holder.Lock(ctx))
	raw := rdb()
	bury(t, raw, kind, kind, "w")
	buried := time.Now()
	waits := rig.Beside(func() error { return waiter.Lock(ctx) })
	rig.Soon(t, func() string {
		if n := raw.ZCard(ctx, key.For("relock", kind).Queue).Val(); n < 2*deadEntries+2 {
			return fmt.Sprint(n, " members")
		}
		return ""
	})
	admin := server.Client(t)
	rig.Must(t, admin.ConfigSet(ctx, "slowlog-log-slower-than", "1000").Err())
	rig.Must(t, admin.ConfigSet(ctx, "slowlog-max-len", "1000").Err())
	rig.Must(t, admin.Do(ctx, "SLOWLOG", "RESET").Err())
	before := worked(t, admin)
	released := time.Now()
	rig.Must(t, holder.Unlock())
	rig.Must(t, <-waits)
	if late := time.Since(released); late > bound {
		t.Errorf("the live waiter held %v after the release, want %v", late, bound)
	}
	rig.Must(t, waiter.Unlock())
	rig.Soon(t, func() string {
		if n := raw.ZCard(ctx, key.For("relock", kind).Queue).Val(); n > 0 {
			return fmt.Sprint(n, " members of the queue are left")
		}
		return ""
	})
	if gone := time.Since(buried); gone > 2*deadTTL {
		t.Errorf("the dead were gone after %v, want two leases", gone)
	}
	wantShortScripts(t, admin, worked(t, admin)-before)
	rig.WantBare(t, raw, kind)
	t.Logf("held after %v, all gone after %v", time.Since(released), time.Since(buried))
}

// wantShortScripts fails when scripts keep the server for longer than it may stand
// still. All that clear away the dead do the same number of steps, and share what it has
// worked: the clock would count what else the machine ran meanwhile.
func wantShortScripts(t *testing.T, admin *redis.Client, work time.Duration) {
	t.Helper()
	slow, err := admin.SlowLogGet(t.Context(), -1).Result()
	rig.Must(t, err)
	scripts := 0
	for _, entry := range slow {
		if strings.HasPrefix(entry.Args[0], "eval") {
			scripts++
		}
	}
	if scripts < deadEntries/250/2 {
		t.Fatalf("%d scripts took a millisecond: the dead were not there", scripts)
	}
	if each := work / time.Duration(scripts); each > stall {
		t.Errorf("%d scripts kept the server for %v each, want %v", scripts, each, stall)
	} else {
		t.Logf("%d scripts, %v each", scripts, each)
	}
}

// TestDeadEntriesStopTheServerForNoLongerThanAStep counts the processor time that
// each call takes of the server. Other programs take its caches, so that one of three
// rounds of the same work is enough.
func TestDeadEntriesStopTheServerForNoLongerThanAStep(t *testing.T) {
	srv := redistest.Real(t)
	for state, lease := range map[string]time.Duration{"past their leases": -time.Hour, "within their leases": time.Hour} {
		t.Run(state, func(t *testing.T) {
			c := &deadCrowd{t: t, rdb: srv.Client(t), keys: key.For("relock", state)}
			best := time.Hour
			for round := 0; round < 3 && best > stall; round++ {
				c.buryUntil(1, lease)
				best = min(best, c.longestSettling())
			}
			if best > stall {
				t.Errorf("a call kept the server for %v, want %v", best, stall)
			}
			t.Logf("the longest call took %v", best)
		})
	}
}

// longestSettling releases until nobody is left in the queue, and returns how long the
// server worked on the longest call.
func (c *deadCrowd) longestSettling() (longest time.Duration) {
	c.t.Helper()
	release := script.MustLoad(lua.FS, "release")
	for calls, more := 1, true; more; calls++ {
		before := worked(c.t, c.rdb)
		reply, err := c.rdb.Eval(c.t.Context(), release.Source, []string{c.keys.Hash, c.keys.Queue},
			"nobody's client o:", "o:", 0, "600000 "+key.Inbox("relock", "")).Int64Slice()
		rig.Must(c.t, err)
		longest = max(longest, worked(c.t, c.rdb)-before)
		if more = reply[2] == 1; calls > deadEntries {
			c.t.Fatal("there is no end to it")
		}
	}
	if n := c.entries(); n != 0 {
		c.t.Errorf("%d entries are left", n)
	}
	return longest
}

// worked is how long the server's main thread has worked.
func worked(t *testing.T, rdb *redis.Client) (total time.Duration) {
	t.Helper()
	info, err := rdb.Info(t.Context(), "cpu").Result()
	rig.Must(t, err)
	for _, mode := range []string{"user", "sys"} {
		_, rest, ok := strings.Cut(info, "used_cpu_"+mode+"_main_thread:")
		line, _, _ := strings.Cut(rest, "\r\n")
		seconds, err := strconv.ParseFloat(line, 64)
		if !ok || err != nil {
			t.Fatalf("no time of the main thread in %q", info)
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total
}
