package lua_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

const (
	benchKeep  = 60_000 // ms
	benchLease = 10_000 // ms, longer than any that is asked for
	benchBack  = 3_000  // ms, that the clock may have stepped back since a TTL was set
)

// A bench is a server of its own, whose clock is set by hand.
type bench struct {
	*miniredis.Miniredis
	rdb     *redis.Client
	sources map[string]string
	inboxes *redis.PubSub
	last    string // what the inboxes were told by the latest script
}

func newBench(t *testing.T) *bench {
	b := &bench{Miniredis: miniredis.RunT(t), sources: map[string]string{}}
	b.ClockTTL(true)
	b.rdb = redis.NewClient(&redis.Options{Addr: b.Addr()})
	t.Cleanup(func() { b.rdb.Close() })
	for _, name := range []string{"acquire", "hold", "release", "usual"} {
		b.sources[name] = script.MustLoad(lua.FS, name).Source
	}
	return b
}

// run returns a reply of one value as a list too, and an error as its text.
func (b *bench) run(t *testing.T, name string, keys []string, args ...any) []any {
	t.Helper()
	reply, err := b.rdb.Eval(t.Context(), b.sources[name], keys, args...).Result()
	if all, ok := reply.([]any); ok {
		return all
	} else if err != nil {
		return []any{err.Error()}
	}
	return []any{reply}
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

// stored is all that a lock's keys contain. A deadline that follows from the instant of
// the grant is written out, and the counts of a session that is past it do not count.
func (b *bench) stored(hash, queue string, now int64) map[string]string {
	got := map[string]string{}
	fields, _ := b.HKeys(hash)
	for _, f := range fields {
		got[f] = b.HGet(hash, f)
	}
	if _, owner, held := strings.Cut(got["holder"], " o:"); held {
		counts := strings.Fields(got["o:"+owner])
		got["until"] = fmt.Sprint(deadline(got["until"], got["token"], counts[3]))
		if whole(got["until"]) <= now {
			got["o:"+owner] = "ended"
		}
	}
	if b.Exists(queue) {
		members, _ := b.SortedSet(queue)
		for m, score := range members {
			got["q "+m] = fmt.Sprintf("%.0f", score)
		}
	}
	return got
}

// lacks says which key does not last for TokenKeep after its last deadline, or lasts
// for longer than the longest lease that anybody asks for, TokenKeep, and as much as the counter
// of tokens may be ahead of the clock.
func (b *bench) lacks(hash, queue string, now int64) string {
	stored, last := b.stored(hash, queue, now), map[string]int64{}
	last[hash] = whole(stored["until"])
	for member, score := range stored {
		if strings.HasPrefix(member, "q -") {
			last[queue] = max(last[queue], -whole(score))
		}
	}
	last[hash] = max(last[hash], last[queue])
	for key, until := range last {
		ttl := b.TTL(key).Milliseconds()
		if b.Exists(key) && (ttl <= 0 || ttl > benchLease+benchKeep+benchBack || until > now && now+ttl < until+benchKeep-benchBack) {
			return fmt.Sprintf("%s lasts %d ms, with a deadline in %d ms", key, ttl, until-now)
		}
	}
	return ""
}

func deadline(until, token, ttl string) int64 {
	if until != "" {
		return whole(until)
	}
	return whole(token)/1000 + whole(ttl)
}

func whole(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// A party is who asks for a lock, and the way in which it names itself: of a semaphore
// with what it wants, and a space behind.
type party struct{ nonce, client, owner, permits string }

func (p party) field() string    { return "o:" + p.owner }
func (p party) identity() string { return p.nonce + " " + p.client + " " + p.permits + p.field() }

// asks is the arguments of an acquire with one request.
func (p party) asks(rng *rand.Rand, now time.Time, kind string, reads bool) []any {
	op, holds, ttl := 1+rng.IntN(9), " 1 0 ", 300+rng.IntN(9000)
	if reads {
		holds = " 0 1 "
	}
	notAfter := now.UnixMicro() + int64(rng.IntN(10_000)-500)*1000*int64(1+rng.IntN(15)/14*6)
	return []any{
		rig.StoredKind(kind), notAfter, fmt.Sprint(benchKeep, " ", rng.IntN(5)/4, " inbox:"),
		p.identity(), p.field(), fmt.Sprint(op, holds, ttl, " "), 1 + 32*rng.IntN(2), ttl + benchKeep, max(rng.IntN(9)-7, -1) * rng.IntN(2),
	}
}

// states is the arguments of a hold for one session.
func (p party) states(ttl, op, writes, reads int) []any {
	return []any{ttl, ttl + benchKeep, p.identity(), p.field(), op, writes, reads}
}

// leaves is the arguments of a release.
func (p party) leaves(until int64) []any {
	return []any{p.identity(), p.field(), until, fmt.Sprint(benchKeep, " inbox:")}
}
