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
	deadEntries  = 10_000
	deadTTL      = 3 * time.Second
	stepCommands = 2_000 // of one script that drops 250 entries, twice what it is today
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
				late := time.Hour
				for round := 0; round < 3 && late > row.bound; round++ { // a busy machine can delay any of them
					late = min(late, behindTheDead(t, row.rdb, row.server(kind), kind))
				}
				if late > row.bound {
					t.Errorf("the live waiter held %v after the release, want %v", late, row.bound)
				}
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

// behindTheDead returns how long after the release the live waiter held, or an hour if the dead could not be buried in
// time.
func behindTheDead(t *testing.T, rdb func() redis.UniversalClient, server *redistest.RealServer, kind string) (late time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	holder, waiter := mortal(rig.Open(t, rdb()), kind), mortal(rig.Open(t, rdb()), kind)
	rig.Must(t, holder.Lock(ctx))
	raw, began := rdb(), time.Now()
	bury(t, raw, kind, kind, "w")
	buried := time.Now()
	if buried.Sub(began) > deadTTL/2 { // a busy machine: the leases would end before anybody waits behind them
		rig.Must(t, holder.Unlock())
		keys := key.For("relock", kind)
		rig.Must(t, raw.Del(ctx, keys.Hash, keys.Queue).Err())
		return time.Hour
	}
	waits := rig.Beside(func() error { return waiter.Lock(ctx) })
	rig.Soon(t, func() string {
		if n := raw.ZCard(ctx, key.For("relock", kind).Queue).Val(); n < 2*deadEntries+2 {
			return fmt.Sprint(n, " members")
		}
		return ""
	})
	admin := server.Client(t)
	before := countCommands(t, admin)
	released := time.Now()
	rig.Must(t, holder.Unlock())
	rig.Must(t, <-waits)
	late = time.Since(released)
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
	wantShortScripts(t, countCommands(t, admin).since(before))
	rig.WantBare(t, raw, kind)
	t.Logf("held after %v, all gone after %v", late, time.Since(buried))
	return late
}

// commandCount is how many scripts a server has run, and how many commands they and its clients
// have called.
type commandCount struct{ scripts, commands int }

func (c commandCount) since(before commandCount) commandCount {
	return commandCount{c.scripts - before.scripts, c.commands - before.commands}
}

func countCommands(t *testing.T, admin *redis.Client) (c commandCount) {
	t.Helper()
	info, err := admin.InfoMap(t.Context(), "commandstats").Result()
	rig.Must(t, err)
	for name, stat := range info["Commandstats"] {
		var calls int
		_, err := fmt.Sscanf(stat, "calls=%d", &calls)
		rig.Must(t, err)
		if strings.HasPrefix(name, "cmdstat_eval") {
			c.scripts += calls
		} else {
			c.commands += calls
		}
	}
	return c
}

// wantShortScripts fails when a script drops more than 250 dead entries. It counts commands, which
// are the same on each machine; a clock would count what else the machine does.
func wantShortScripts(t *testing.T, c commandCount) {
	t.Helper()
	if c.commands < 2*deadEntries {
		t.Fatalf("%d commands dropped %d entries: they were not there", c.commands, deadEntries)
	}
	if each := c.commands / c.scripts; each > stepCommands {
		t.Errorf("%d scripts called %d commands each, want up to %d", c.scripts, each, stepCommands)
	} else {
		t.Logf("%d scripts, %d commands each", c.scripts, each)
	}
}

// TestDeadEntriesStopTheServerForNoLongerThanAStep compares the longest call among ten thousand
// dead entries with the longest among five hundred: in commands, and in the processor time that
// it takes of the server. Other programs slow down some calls, so one of three rounds is enough.
func TestDeadEntriesStopTheServerForNoLongerThanAStep(t *testing.T) {
	srv := redistest.Real(t)
	for state, lease := range map[string]time.Duration{"past their leases": -time.Hour, "within their leases": time.Hour} {
		t.Run(state, func(t *testing.T) {
			few, many := step{work: time.Hour}, step{work: time.Hour}
			for round := 0; round < 3 && (round == 0 || many.work > 3*few.work); round++ {
				few = few.least(settling(t, srv.Client(t), fmt.Sprint("few ", state, round), 500, lease))
				many = many.least(settling(t, srv.Client(t), fmt.Sprint("many ", state, round), deadEntries, lease))
			}
			if many.commands > stepCommands {
				t.Errorf("a call ran %d commands, want up to %d", many.commands, stepCommands)
			}
			if many.work > 3*few.work {
				t.Errorf("a call kept the server for %v, among few entries for %v, want less than three times that", many.work, few.work)
			}
			t.Logf("the longest call: %+v among %d entries, %+v among 500", many, deadEntries, few)
		})
	}
}

// step is what one call costs the server.
type step struct {
	commands int
	work     time.Duration
}

func (s step) least(other step) step { return step{other.commands, min(s.work, other.work)} }

// settling buries n entries and returns the longest call that drops some of them.
func settling(t *testing.T, rdb *redis.Client, name string, n int, lease time.Duration) step {
	t.Helper()
	c := &deadCrowd{t: t, rdb: rdb, keys: key.For("relock", name)}
	c.buryUntil(1, lease, n)
	return c.longestSettling()
}

// longestSettling releases until nobody is left in the queue.
func (c *deadCrowd) longestSettling() (longest step) {
	c.t.Helper()
	release := script.MustLoad(lua.FS, "release")
	for calls, more := 1, true; more; calls++ {
		ran, before := countCommands(c.t, c.rdb), worked(c.t, c.rdb)
		reply, err := c.rdb.Eval(c.t.Context(), release.Source, []string{c.keys.Hash, c.keys.Queue},
			"nobody's client o:", "o:", 0, "600000 "+key.Inbox("relock", "")).Int64Slice()
		rig.Must(c.t, err)
		longest.work = max(longest.work, worked(c.t, c.rdb)-before)
		longest.commands = max(longest.commands, countCommands(c.t, c.rdb).since(ran).commands)
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
