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
// defined what the general case needs, and what makes each of them false.
var usualCases = map[string][2]string{
	"acquire": {"local usual = ", "local usual = false and "},
	"hold":    {"if not KEYS[2] and fields[6] then", "if false then"},
	"release": {"local usual = ", "local usual = false and "},
}

// A bench has one lock in a server of its own, whose clock is set by hand.
type bench struct {
	*miniredis.Miniredis
	rdb     *redis.Client
	sources map[string]string
	inboxes *redis.PubSub
	last    string // what the inboxes were told by the latest script
}

func newBench(t *testing.T, general bool) *bench {
	b := &bench{Miniredis: miniredis.RunT(t), sources: map[string]string{}}
	b.ClockTTL(true)
	b.rdb = redis.NewClient(&redis.Options{Addr: b.Addr()})
	t.Cleanup(func() { b.rdb.Close() })
	for name, condition := range usualCases {
		source := script.MustLoad(lua.FS, name).Source
		if !strings.Contains(source, condition[0]) {
			t.Fatalf("%s has no usual case any more: %s", name, condition[0])
		}
		if general {
			source = strings.Replace(source, condition[0], condition[1], 1)
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

// listen subscribes to inboxes, and to where told finds the end.
func (b *bench) listen(t *testing.T, inboxes ...string) {
	b.inboxes = b.rdb.Subscribe(t.Context(), append(inboxes, "end")...)
	t.Cleanup(func() { b.inboxes.Close() })
	for range len(inboxes) + 1 {
		if _, err := b.inboxes.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// told is what the inboxes have been told since it was last asked for.
func (b *bench) told(t *testing.T) string {
	if err := b.rdb.Publish(t.Context(), "end", "").Err(); err != nil {
		t.Fatal(err)
	}
	b.last = ""
	for {
		m, err := b.inboxes.ReceiveMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m.Channel == "end" {
			return b.last
		}
		b.last += m.Channel + ": " + m.Payload + "\n"
	}
}

// state is all that is stored but 'queued', which the general case writes as 0
// where the usual case leaves it out.
func (b *bench) state() map[string]string {
	if !b.Exists("h") {
		return nil
	}
	fields, _ := b.HKeys("h")
	got := map[string]string{"ttl": b.TTL("h").Round(time.Millisecond).String()}
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
	clients := []string{"c0", "c1", "c2", "s.3"} // c2 does not hear, s.3 hears on another channel
	usual.listen(t, "inbox:c0", "inbox:c1")
	general.listen(t, "inbox:c0", "inbox:c1")
	keys := []string{"h", "q"}
	rng := rand.New(rand.NewPCG(1, 2))
	now := time.UnixMicro(1_800_000_000_000_340)
	seen := map[string]int{}
	for step := range 8000 {
		now = now.Add(time.Duration(rng.IntN(400)) * time.Millisecond)
		usual.SetTime(now)
		general.SetTime(now)
		if rng.IntN(200) == 0 {
			now = now.Add(-time.Second) // as a server's clock may
		}
		who := rng.IntN(8)
		nonce, owner := fmt.Sprintf("n%031d", who), fmt.Sprint("owner ", rng.IntN(2)+who)
		client := clients[[]int{0, 0, 0, 1, 1, 1, 2, 3}[who]]
		kind := []string{"plain", "plain", "plain", "plain", "plain", "plain", "plain", "fair", "rw"}[rng.IntN(9)]
		mode := "w"
		if kind == "rw" && rng.IntN(2) == 0 {
			mode = "r"
		}
		var name string
		var args []any
		with := keys
		switch rng.IntN(5) {
		case 0, 1:
			name = "acquire"
			args = []any{
				"inbox:", kind, client, now.UnixMilli() + int64(rng.IntN(10_000)) - 500, 60000, rng.IntN(5) / 4,
				nonce, 1 + rng.IntN(9), owner, rng.IntN(5) / 4, mode, 300 + rng.IntN(9000), 1 + 32*rng.IntN(2), max(rng.IntN(9)-7, -1) * rng.IntN(2),
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
		if x, y := usual.told(t), general.told(t); x != y {
			t.Fatalf("step %d: %s %v told %q in the usual case, %q in the general", step, name, args, x, y)
		}
		if x, y := usual.state(), general.state(); !maps.Equal(x, y) {
			t.Fatalf("step %d: %s %v answered %s, and left\n%v in the usual case,\n%v in the general", step, name, args, a, x, y)
		}
		if strings.Contains(usual.last, "grant ") {
			seen["handed on"]++
		}
		seen[name+" "+strings.Fields(strings.Trim(a, "[]"))[map[string]int{"acquire": 2}[name]]]++
	}
	for _, answer := range []string{"acquire 1", "acquire 2", "acquire 3", "hold 1", "hold 0", "release 2", "release 1", "release 0", "handed on"} {
		if seen[answer] < 10 {
			t.Errorf("%s was answered %d times: too few to say anything (%v)", answer, seen[answer], seen)
		}
	}
	t.Log(seen)
}
