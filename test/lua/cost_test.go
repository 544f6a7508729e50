package lua_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

var evalshaTime = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),usec=(\d+)`)

// A run of scripts is one operation, as a client sends it.
type scripted struct {
	name    string
	scripts []string
	args    func(i int) [][]any
	keys    [][]string // of each script
}

// BenchmarkServerTime measures what an operation costs the server by its own
// statistics, warm and in pipelines, which leaves out sockets and cold caches: the
// least that it can cost. Beside it the same for a lock by hand, and for scripts
// that do nothing but take the same arguments. Of each it takes the best of many short
// rounds in turns, so that what else the machine does falls on none alone. "us" is what
// an operation takes, "by-hand" that by what a pair by hand takes.
func BenchmarkServerTime(b *testing.B) {
	rdb := redistest.Real(b).Client(b)
	inbox := rdb.Subscribe(b.Context(), "relock:inbox:"+costClient) // else the waiter counts as one that does not hear
	defer inbox.Close()
	if _, err := inbox.Receive(b.Context()); err != nil {
		b.Fatal(err)
	}
	ops := costed()
	best := make([]float64, len(ops))
	for range 60 {
		for i, op := range ops {
			if us := serverTime(b, rdb, op, 30); best[i] == 0 || us < best[i] {
				best[i] = us
			}
		}
	}
	for i, op := range ops {
		b.Run(op.name, func(b *testing.B) {
			b.ReportMetric(best[i], "us")
			b.ReportMetric(best[i]/best[0], "by-hand")
			b.ReportMetric(0, "ns/op")
		})
	}
}

const costClient = "FXJnQhqfyPnY4Lt1EIEMwQ"

// A cost is a caller, by number.
type cost int

func (who cost) nonce() string { return "al0CIP1oLZLH8PbWpJvUU" + strconv.Itoa(int(who)) }

func (who cost) field() string {
	return "o:~Qhqf4Lt1:" + strconv.Itoa(int(who))
}

func (who cost) identity() string { return who.nonce() + " " + costClient + " " + who.field() }

func (who cost) asks(mode string) []any {
	return []any{
		rig.StoredKind("rw"), time.Now().UnixMicro() + 10_000_000, "600000 0 relock:inbox:",
		who.identity(), who.field(), "1" + mode + "30000 ", 1, 630_000, 0,
	}
}

func (who cost) leaves() []any {
	return []any{who.identity(), who.field(), 0, "600000 relock:inbox:"}
}

func costed() []scripted {
	source := func(name string) string { return script.MustLoad(lua.FS, name).Source }
	acquire, release, hold := source("acquire"), source("release"), source("hold")
	both := []string{"relock:h:{job}", "relock:q:{job}"}
	hash := both[:1]
	ask := func(who cost) []any { return who.asks(" 1 0 ") }
	one, leave := cost(1), cost.leaves
	state := func(op, holds int) []any {
		return []any{0, 600_000, one.identity(), one.field(), op, holds, 0}
	}
	op := 1
	return []scripted{
		{"pair/by hand", []string{
			"return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
			"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
		}, func(int) [][]any { return [][]any{{one.nonce(), 30_000}, {one.nonce()}} }, [][]string{hash, hash}},
		{"pair/arguments alone", []string{"return 1", "return 1"}, func(int) [][]any { return [][]any{ask(1), leave(1)} }, [][]string{both, both}},
		{"pair/relock", []string{acquire, release}, func(int) [][]any { return [][]any{ask(1), leave(1)} }, [][]string{both, both}},
		{"a pair in a pair", []string{acquire, hold, hold, release}, func(int) [][]any {
			op += 2
			return [][]any{ask(1), state(op, 2), state(op+1, 1), leave(1)}
		}, [][]string{both, hash, hash, both}},
		{"a renewal in a pair", []string{acquire, hold, release}, func(int) [][]any {
			op++
			return [][]any{ask(1), {30_000, 630_000, one.identity(), one.field(), op, 1, 0}, leave(1)}
		}, [][]string{both, hash, both}},
		{"a pair for reading", []string{acquire, release}, func(int) [][]any {
			return [][]any{one.asks(" 0 1 "), leave(1)}
		}, [][]string{both, both}},
		{"a pair and two hand-offs", []string{acquire, acquire, release, acquire, release, release}, func(int) [][]any {
			return [][]any{ask(1), ask(2), leave(1), ask(1), leave(2), leave(1)}
		}, [][]string{both, both, both, both, both, both}},
	}
}

// serverTime runs op in so many pipelines of 50, and returns the microseconds of one.
func serverTime(b *testing.B, rdb *redis.Client, op scripted, pipelines int) float64 {
	ctx := b.Context()
	rdb.FlushDB(ctx)
	shas := make([]string, len(op.scripts))
	for i, s := range op.scripts {
		sha, err := rdb.ScriptLoad(ctx, s).Result()
		if err != nil {
			b.Fatal(err)
		}
		shas[i] = sha
	}
	rdb.ConfigResetStat(ctx)
	for range pipelines {
		p := rdb.Pipeline()
		for i := range 50 {
			args := op.args(i)
			for j, sha := range shas {
				p.EvalSha(ctx, sha, op.keys[j], args[j]...)
			}
		}
		if _, err := p.Exec(ctx); err != nil {
			b.Fatal(fmt.Errorf("%s: %w", op.name, err))
		}
	}
	stats, err := rdb.Info(ctx, "commandstats").Result()
	m := evalshaTime.FindStringSubmatch(stats)
	if err != nil || m == nil {
		b.Fatal(err, stats)
	}
	usec, _ := strconv.ParseFloat(m[2], 64)
	return usec / float64(50*pipelines)
}
