package cost_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

var evalshaUsec = regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`)

// pool are clients that a real server has never seen, each with one request.
type pool struct {
	t    *testing.T
	rdb  *redis.Client
	keys key.Keys
}

// run sends a script for each of n clients, and returns the microseconds of one.
func (p pool) run(name string, n int, args func(i int) []any) float64 {
	p.t.Helper()
	s := script.MustLoad(lua.FS, name)
	rig.Must(p.t, p.rdb.ScriptLoad(p.t.Context(), s.Source).Err())
	work := func() int64 { return evalshaMicros(p.t, p.rdb) }
	before := work()
	for from := 0; from < n; from += 50 {
		pipe := p.rdb.Pipeline()
		for i := from; i < from+50; i++ {
			pipe.EvalSha(p.t.Context(), s.SHA, []string{p.keys.Hash, p.keys.Queue}, args(i)...)
		}
		_, err := pipe.Exec(p.t.Context())
		rig.Must(p.t, err)
	}
	return float64(work()-before) / float64(n)
}

func evalshaMicros(t *testing.T, rdb *redis.Client) (us int64) {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	rig.Must(t, err)
	if m := evalshaUsec.FindStringSubmatch(info); m != nil {
		_, _ = fmt.Sscan(m[1], &us)
	}
	return us
}

// steps are what n clients do: each comes, goes on, and leaves. Returns the microseconds
// of a step.
func (p pool) steps(n int, kind, mode string, owner func(i int) string) float64 {
	p.t.Helper()
	rig.Must(p.t, p.rdb.FlushDB(p.t.Context()).Err())
	who := func(i int) (rig.Raw, string) {
		return rig.Raw{T: p.t, Redis: p.rdb, ID: fmt.Sprintf("client%016d", i)}, fmt.Sprintf("nonce%017d", i)
	}
	comes := p.run("acquire", n, func(i int) []any {
		r, nonce := who(i)
		return r.Request(kind, nonce, owner(i), mode, time.Minute, 1, 1, 0)
	})
	goesOn := p.run("hold", n, func(i int) []any {
		r, nonce := who(i)
		writes := map[string]int{"w": 1, "r": 0}[mode]
		return []any{60_000, 660_000, r.Identity(nonce, owner(i)), "o:" + owner(i), 2, writes, 1 - writes}
	})
	leaves := p.run("release", n, func(i int) []any {
		r, nonce := who(i)
		return []any{r.Identity(nonce, owner(i)), "o:" + owner(i), 0, "600000 " + key.Inbox("relock", "")}
	})
	p.t.Logf("%s %s, %s ...: %.1f us to come, %.1f to go on, %.1f to leave", kind, mode, owner(1), comes, goesOn, leaves)
	return (comes + goesOn + leaves) / 3
}

// TestThousandsOfClientsUnderOneNameCostWhatTheyCostUnderTheirOwn: a worker pool, each of
// whose processes locks by the pool's name.
// Fails when what Redis keeps of them is one text.
func TestThousandsOfClientsUnderOneNameCostWhatTheyCostUnderTheirOwn(t *testing.T) {
	const n = 2000
	p := pool{t: t, rdb: redistest.Real(t).Client(t), keys: key.For("relock", "l")}
	own := func(i int) string { return fmt.Sprint("worker ", i) }
	one := func(int) string { return "pool" }
	apart := p.steps(n, "rw", "r", own)
	for _, crowd := range []struct{ kind, mode string }{{"rw", "r"}, {"rw", "w"}, {"plain", "w"}} {
		if together := p.steps(n, crowd.kind, crowd.mode, one); together > 2*apart {
			t.Errorf("%s %s: a step takes the server %.1f us under one name, and %.1f under names of their own", crowd.kind, crowd.mode, together, apart)
		}
	}
}
