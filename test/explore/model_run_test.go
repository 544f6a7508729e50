package explore_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/wire"
)

// A modelRun drives the real scripts and the model through the same steps. Time
// is the run's: the scripts read it from keys instead of the server's clock.
type modelRun struct {
	t      *testing.T
	rdb    *redis.Client
	sub    *redis.PubSub
	keys   key.Keys
	model  modelLock
	micros int64
	steps  []uint32
	seen   map[string]int
	marks  int
	known  map[string]modelRequest // what was handed over, by nonce or ticket
	said   []string                // what each step was
}

const (
	modelPrefix = "model:inbox:"
	modelTTL    = 1000 // ms
)

// modelActors are nonces: whose they are and what they want follows from the index.
var modelActors = func() (all []modelRequest) {
	for i := range 8 {
		r := modelRequest{nonce: fmt.Sprintf("nonce-%016d", i), mode: "w", ttl: modelTTL, block: 1}
		if r.named = i%4 > 1; r.named {
			r.owner = fmt.Sprintf("owner %d", i%4)
		} else {
			r.owner = fmt.Sprintf("~anonymous:%d", i)
		}
		if i%3 == 0 {
			r.block = 33
		}
		if i > 4 {
			r.ttl *= 2
		}
		all = append(all, r)
	}
	return all
}()

// Client 2 has no subscription.
func modelClient(nonce int) string { return fmt.Sprintf("client-%015d", nonce%3) }

func modelIdentity(client, nonce, owner string) string {
	return nonce + " " + client + " o:" + owner
}

// identity is what a client sends; owner may be another.
func (r modelRequest) identity(client, owner string) string {
	if r.permits == 0 {
		return modelIdentity(client, r.nonce, owner)
	}
	return fmt.Sprintf("%s %s %d/%d o:%s", r.nonce, client, r.weight, r.permits, owner)
}

// taken is the answer for a lock that was free in the words of the others.
func taken(got []any, requests []modelRequest) []any {
	if _, failed := got[0].(error); failed || len(got) > 2 {
		return got
	}
	token, block := number(fmt.Sprint(got[0])), requests[0].block
	if len(got) == 2 {
		block = number(fmt.Sprint(got[1]))
	}
	return []any{token / 1000, int64(0), int64(1), token - block + 1, token, requests[0].ttl, ""}
}

// modelSource is a script that reads the run's clock.
func modelSource(t *testing.T, name string) string {
	t.Helper()
	source := wire.Scripts()[name].Source
	const theirs, ours = `redis.call('TIME')`, `{ redis.call('GET', 'model:s'), redis.call('GET', 'model:us') }`
	if !strings.Contains(source, theirs) {
		t.Fatalf("script %s does not read the time", name)
	}
	return strings.ReplaceAll(source, theirs, ours)
}

func newModelRun(t *testing.T, rdb *redis.Client, sub *redis.PubSub) *modelRun {
	t.Helper()
	rig.Must(t, rdb.FlushDB(t.Context()).Err())
	r := &modelRun{
		t: t, rdb: rdb, sub: sub, keys: key.For("relock", "model"), micros: 1_700_000_000_000_000, seen: map[string]int{},
		known: map[string]modelRequest{},
	}
	r.model = newModelLock("client-000000000000002", "-")
	return r
}

// subscribeModel listens for the clients that do.
func subscribeModel(t *testing.T, rdb *redis.Client) *redis.PubSub {
	t.Helper()
	sub := rdb.Subscribe(t.Context(), modelPrefix+"client-000000000000000", modelPrefix+"client-000000000000001", "model:mark")
	t.Cleanup(func() { _ = sub.Close() })
	for range 3 {
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return sub
}

// eval runs a script, with at most the given keys.
func (r *modelRun) eval(name string, keys int, args ...any) []any {
	r.t.Helper()
	all := []string{r.keys.Hash, r.keys.Queue}[:keys]
	reply, err := r.rdb.Eval(r.t.Context(), modelSource(r.t, name), all, args...).Result()
	if err != nil {
		return []any{err} // the model has none
	}
	if all, ok := reply.([]any); ok {
		return all
	}
	return []any{reply}
}

// messages are those published since the last call.
func (r *modelRun) messages() (all []string) {
	r.marks++
	mark := fmt.Sprint(r.marks)
	r.rdb.Publish(r.t.Context(), "model:mark", mark)
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	for {
		m, err := r.sub.ReceiveMessage(ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		if m.Channel == "model:mark" {
			if m.Payload == mark {
				return all
			}
			continue
		}
		all = append(all, strings.TrimPrefix(m.Channel, modelPrefix)+" "+m.Payload)
	}
}

// step makes one step on both sides, and returns how they differ.
func (r *modelRun) step(number uint32) (differ string) {
	n := draws(func(below uint32) uint32 {
		x := number % below
		number /= below
		return x
	})
	if late := n(8); late < 6 && (!r.branches() || late < 4 || n(4) == 0) { // more branches meet where leases last
		r.micros += []int64{1, 0, 977, 10_000, modelTTL * 400, modelTTL * 1001}[late]
	}
	now := r.micros / 1000
	r.rdb.MSet(r.t.Context(), "model:s", r.micros/1_000_000, "model:us", r.micros%1_000_000)
	r.model.begin(r.micros)
	said, got, modelled := r.say(n)
	r.said = append(r.said, fmt.Sprintf("%d %s: %v", r.micros, said, got))
	r.seen[strings.Fields(said)[0]]++
	if len(got) > 2 && strings.HasPrefix(said, "acquire") {
		r.seen[fmt.Sprint("answer ", got[2])]++
	}
	sent := r.messages()
	r.seen["messages"] += len(sent)
	r.seen["runs"] += runs(sent)
	r.seen["unseen"] += r.model.spared
	r.model.spared = 0
	for what, n := range r.model.census {
		r.seen[what] += n
	}
	clear(r.model.census)
	state := r.state()
	switch {
	case fmt.Sprint(got) != fmt.Sprint(modelled):
		return fmt.Sprintf("the reply is %v, the model's %v", got, modelled)
	case !slices.Equal(told(sent), told(r.model.sent)):
		return fmt.Sprintf("published is %v, the model's is %v", sent, r.model.sent)
	case state.text(now) != r.model.text():
		return fmt.Sprintf("redis has\n%s\nthe model\n%s", state.text(now), r.model.text())
	}
	if wrong := cmp.Or(state.miscounted(), state.wrong); wrong != "" {
		return wrong
	}
	return r.inspect(now)
}

// runs counts the grants that name who stands behind.
func runs(messages []string) (n int) {
	for _, m := range messages {
		if strings.Contains(m, " grant ") && len(strings.Fields(m)) > 6 {
			n++
		}
	}
	return n
}

// holding are the actors that have a session, also where it has ended.
func (m *modelLock) holding() (all []int) {
	for i, a := range modelActors {
		if _, _, at := m.find(modelClient(i), a.nonce, ""); at >= 0 {
			all = append(all, i)
		}
	}
	return all
}

func (r *modelRun) state() stored {
	hash := r.rdb.HGetAll(r.t.Context(), r.keys.Hash).Val()
	members := map[string]float64{}
	for _, z := range r.rdb.ZRangeWithScores(r.t.Context(), r.keys.Queue, 0, -1).Val() {
		members[z.Member.(string)] = z.Score
	}
	return decodeLock(hash, members)
}

// told is what messages tell, in whatever order: who is granted the lock by the same
// script needs no look, and a script may know that before it sends one.
func told(messages []string) []string {
	messages = slices.Compact(slices.Sorted(slices.Values(messages)))
	needed := func(m string) bool {
		client, look, _ := strings.Cut(m, " look ")
		return look == "" || !slices.ContainsFunc(messages, func(g string) bool { return strings.HasPrefix(g, client+" grant "+look+" ") })
	}
	var all []string
	for _, m := range messages {
		if needed(m) {
			all = append(all, m)
		}
	}
	slices.Sort(all)
	return all
}
