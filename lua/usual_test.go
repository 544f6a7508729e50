package lua_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// usualCases are the conditions under which a script answers before it has
// defined what the general case needs.
var usualCases = map[string]string{
	"acquire": "if not (fields.err or",
	"hold":    "if not KEYS[2] and fields[6] then",
	"release": "if fields[6] and not fields[7] and",
}

// A bench has one lock in a server of its own, whose clock is set by hand.
type bench struct {
	*miniredis.Miniredis
	rdb     *redis.Client
	sources map[string]string
}

func newBench(t *testing.T, general bool) *bench {
	b := &bench{Miniredis: miniredis.RunT(t), sources: map[string]string{}}
	b.ClockTTL(true)
	b.rdb = redis.NewClient(&redis.Options{Addr: b.Addr()})
	t.Cleanup(func() { b.rdb.Close() })
	for name, condition := range usualCases {
		source := script.MustLoad(lua.FS, name).Source
		if !strings.Contains(source, condition) {
			t.Fatalf("%s has no usual case any more: %s", name, condition)
		}
		if general {
			source = strings.Replace(source, condition, "if false and"+strings.TrimPrefix(condition, "if"), 1)
		}
		b.sources[name] = source
	}
	return b
}

func (b *bench) run(t *testing.T, name string, keys []string, args ...any) string {
	reply, err := b.rdb.Eval(t.Context(), b.sources[name], keys, args...).Result()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return fmt.Sprint(reply)
}

// state is all that is stored but 'queued', which the general case writes as 0
// where the usual case leaves it out.
func (b *bench) state() map[string]string {
	if !b.Exists("h") {
		return nil
	}
	fields, _ := b.HKeys("h")
	got := map[string]string{"ttl": b.TTL("h").String()}
	for _, f := range fields {
		if v := b.HGet("h", f); f != "queued" || v != "0" {
			got[f] = v
		}
	}
	if b.Exists("q") {
		members, _ := b.SortedSet("q")
		for m, score := range members {
			got["q "+m] = fmt.Sprintf("%.0f", score)
		}
	}
	return got
}

// TestTheUsualCaseAnswersAsTheGeneralCaseDoes sends the same requests to two
// servers, one of which has scripts without the usual case.
func TestTheUsualCaseAnswersAsTheGeneralCaseDoes(t *testing.T) {
	usual, general := newBench(t, false), newBench(t, true)
	const client = "cccccccccccccccccccccccccccccccc"
	keys := []string{"h", "q"}
	rng := rand.New(rand.NewPCG(1, 2))
	now := time.UnixMilli(1_800_000_000_000)
	seen := map[string]int{}
	for step := range 4000 {
		now = now.Add(time.Duration(rng.IntN(40_000)) * 10 * time.Microsecond)
		usual.SetTime(now)
		general.SetTime(now)
		nonce, owner := fmt.Sprintf("n%031d", rng.IntN(4)), fmt.Sprint("owner ", rng.IntN(3))
		kind := []string{"plain", "plain", "plain", "fair", "rw"}[rng.IntN(5)]
		var name string
		var args []any
		with := keys
		switch rng.IntN(5) {
		case 0, 1:
			name = "acquire"
			args = []any{
				"inbox:", kind, client, now.UnixMilli() + int64(rng.IntN(10_000)) - 500, 60000, rng.IntN(2),
				nonce, 1 + rng.IntN(9), owner, rng.IntN(2), "w", 300 + rng.IntN(900), 1 + 32*rng.IntN(2), rng.IntN(2) - 1,
			}
		case 2:
			name, with = "hold", keys[:1]
			args = []any{client, nonce, owner, 1 + rng.IntN(30), 1 + rng.IntN(3), rng.IntN(2), rng.IntN(900), 60000}
		default:
			name = "release"
			late := int64(0)
			if rng.IntN(4) == 0 {
				late = now.UnixMilli() + 300
			}
			args = []any{"inbox:", client, nonce, owner, late, 60000}
		}
		a, b := usual.run(t, name, with, args...), general.run(t, name, with, args...)
		if a != b {
			t.Fatalf("step %d: %s %v: %s in the usual case, %s in the general", step, name, args, a, b)
		}
		if x, y := usual.state(), general.state(); !maps.Equal(x, y) {
			t.Fatalf("step %d: %s %v answered %s, and left\n%v in the usual case,\n%v in the general", step, name, args, a, x, y)
		}
		seen[name+" "+strings.Fields(strings.Trim(a, "[]"))[map[string]int{"acquire": 2}[name]]]++
	}
	for _, answer := range []string{"acquire 1", "acquire 2", "acquire 3", "hold 1", "hold 0", "release 2", "release 1", "release 0"} {
		if seen[answer] < 10 {
			t.Errorf("%s was answered %d times: too few to say anything (%v)", answer, seen[answer], seen)
		}
	}
}
