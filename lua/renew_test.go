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

// hashes returns all that a server stores, but for the queues.
func hashes(m *miniredis.Miniredis, keys []string) map[string]string {
	all := map[string]string{}
	for _, key := range keys {
		if !m.Exists(key) {
			continue
		}
		if m.Type(key) != "hash" {
			all[key] = m.Type(key)
			continue
		}
		fields, _ := m.HKeys(key)
		for _, f := range fields {
			all[key+" "+f] = m.HGet(key, f)
		}
		all[key] = m.TTL(key).String()
	}
	return all
}

// TestRenewDoesToEachWhatHoldDoes sends the same requests to two servers. Sessions
// are renewed by one command on the first; on the other one, hold renews those that
// it says it has renewed, and nobody touches the rest.
// Fails when renew renews a session that is another's, late, or not the only one,
// when it leaves a usual one, and when one lock's error ends the others' renewal.
func TestRenewDoesToEachWhatHoldDoes(t *testing.T) {
	const client, locks = "cccccccccccccccccccccccccccccccc", 6
	var servers [2]*miniredis.Miniredis
	var clients [2]*redis.Client
	for i := range servers {
		servers[i] = miniredis.RunT(t)
		servers[i].ClockTTL(true)
		clients[i] = redis.NewClient(&redis.Options{Addr: servers[i].Addr()})
		t.Cleanup(func() { clients[i].Close() })
		_, _ = servers[i].Push("h5", "the last lock's key is another's")
	}
	run := func(i int, name string, keys []string, args ...any) []any {
		reply, err := clients[i].Eval(t.Context(), script.MustLoad(lua.FS, name).Source, keys, args...).Slice()
		if err != nil {
			t.Fatalf("%s %v: %v", name, args, err)
		}
		return reply
	}
	var keys []string
	for i := range locks {
		keys = append(keys, fmt.Sprint("h", i))
	}
	rng := rand.New(rand.NewPCG(3, 4))
	now := time.UnixMilli(1_800_000_000_000)
	renewed, left := 0, 0
	for step := range 600 {
		now = now.Add(time.Duration(rng.IntN(20_000)) * 10 * time.Microsecond)
		for _, m := range servers {
			m.SetTime(now)
		}
		one := rng.IntN(locks - 1)
		nonce := fmt.Sprintf("n%021d", rng.IntN(2))
		owner := []string{"a", "an owner with blanks 1 2\nand more", "größer"}[rng.IntN(3)]
		with := []string{keys[one], fmt.Sprint("q", one)}
		switch rng.IntN(4) {
		case 0, 1:
			args := []any{
				"inbox:", []string{"plain", "plain", "fair", "rw"}[rng.IntN(4)], client, now.UnixMilli() + 10_000, 60000, 0,
				nonce, 1 + rng.IntN(9), owner, 1, "w", 300 + rng.IntN(900), 1, 0,
			}
			for i := range servers {
				run(i, "acquire", with, args...)
			}
		case 2:
			for i := range servers {
				run(i, "release", with, "inbox:", client, nonce, owner, 0, 60000)
			}
		default:
			op, writes, ttl := 1+rng.IntN(30), 1+rng.IntN(3), 1+rng.IntN(900)
			var text strings.Builder
			for range keys {
				fmt.Fprintf(&text, "%s %d %d 0 %d %s", nonce, op, writes, len(owner), owner)
			}
			reply := run(0, "renew", keys, client, ttl, 60000, text.String())[1:]
			for i, key := range keys {
				if len(reply) > 0 && reply[0] == int64(i+1) {
					reply = reply[1:]
					left++
					continue
				}
				renewed++
				got := run(1, "hold", []string{key}, client, nonce, owner, op, writes, 0, ttl, 60000)
				if got[0] != int64(1) || got[4].(int64) < int64(ttl) {
					t.Fatalf("step %d: renew has renewed %s for %s, and hold says %v", step, key, owner, got)
				}
			}
		}
		if a, b := hashes(servers[0], keys), hashes(servers[1], keys); !maps.Equal(a, b) {
			t.Fatalf("step %d: renew left\n%v, hold\n%v", step, a, b)
		}
	}
	if renewed < 20 || left < 20 {
		t.Errorf("%d renewed, %d left: too few to say anything", renewed, left)
	}
}
