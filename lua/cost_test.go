package lua_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
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
// that do nothing but take the same arguments. What is of interest is "us/op".
func BenchmarkServerTime(b *testing.B) {
	rdb := redistest.Real(b).Client(b)
	inbox := rdb.Subscribe(b.Context(), "relock:inbox:"+costClient) // else the waiter counts as one that does not hear
	defer inbox.Close()
	if _, err := inbox.Receive(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, op := range costed() {
		b.Run(op.name, func(b *testing.B) { serverTime(b, rdb, op) })
	}
}

const costClient = "FXJnQhqfyPnY4Lt1EIEMwQ"

func costed() []scripted {
	source := func(name string) string { return script.MustLoad(lua.FS, name).Source }
	acquire, release, hold := source("acquire"), source("release"), source("hold")
	both := []string{"relock:h:{job}", "relock:q:{job}"}
	hash := both[:1]
	owner := func(who int) string { return "39afb93b-0804-4fd8-bc61-67dbb494037a:" + strconv.Itoa(who) }
	nonce := func(who int) string { return "al0CIP1oLZLH8PbWpJvUU" + strconv.Itoa(who) }
	ask := func(who int) []any {
		return []any{
			"relock:inbox:", "fair", costClient, time.Now().UnixMilli() + 10_000, 600_000, 0,
			nonce(who), 1, owner(who), 0, "w", 30_000, 1, 0,
		}
	}
	leave := func(who int) []any { return []any{"relock:inbox:", costClient, nonce(who), owner(who), 0, 600_000} }
	state := func(op, holds int) []any {
		return []any{costClient, nonce(1), owner(1), op, holds, 0, 30_000, 600_000}
	}
	op := 1
	return []scripted{
		{"pair/by hand", []string{
			"return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
			"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
		}, func(int) [][]any { return [][]any{{nonce(1), 30_000}, {nonce(1)}} }, [][]string{hash, hash}},
		{"pair/arguments alone", []string{"return 1", "return 1"}, func(int) [][]any { return [][]any{ask(1), leave(1)} }, [][]string{both, both}},
		{"pair/relock", []string{acquire, release}, func(int) [][]any { return [][]any{ask(1), leave(1)} }, [][]string{both, both}},
		{"a pair in a pair", []string{acquire, hold, hold, release}, func(int) [][]any {
			op += 2
			return [][]any{ask(1), state(op, 2), state(op+1, 1), leave(1)}
		}, [][]string{both, hash, hash, both}},
		{"a pair and two hand-offs", []string{acquire, acquire, release, acquire, release, release}, func(int) [][]any {
			return [][]any{ask(1), ask(2), leave(1), ask(1), leave(2), leave(1)}
		}, [][]string{both, both, both, both, both, both}},
	}
}

// serverTime runs op in pipelines of 50.
func serverTime(b *testing.B, rdb *redis.Client, op scripted) {
	ctx := b.Context()
	shas := make([]string, len(op.scripts))
	for i, s := range op.scripts {
		sha, err := rdb.ScriptLoad(ctx, s).Result()
		if err != nil {
			b.Fatal(err)
		}
		shas[i] = sha
	}
	rdb.ConfigResetStat(ctx)
	n := 0
	for b.Loop() {
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
		n += 50
	}
	stats, err := rdb.Info(ctx, "commandstats").Result()
	m := evalshaTime.FindStringSubmatch(stats)
	if err != nil || m == nil {
		b.Fatal(err, stats)
	}
	usec, _ := strconv.ParseFloat(m[2], 64)
	b.ReportMetric(usec/float64(n), "us/op")
	b.ReportMetric(0, "ns/op")
}
