package explore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	mini "github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/test/mutation"
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
	said   []string // what each step was
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
	source := rig.Scripts()[name].Source
	const theirs, ours = `redis.call('TIME')`, `{ redis.call('GET', 'model:s'), redis.call('GET', 'model:us') }`
	if !strings.Contains(source, theirs) {
		t.Fatalf("script %s does not read the time", name)
	}
	return strings.ReplaceAll(source, theirs, ours)
}

func newModelRun(t *testing.T, rdb *redis.Client, sub *redis.PubSub) *modelRun {
	t.Helper()
	if err := rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	r := &modelRun{
		t: t, rdb: rdb, sub: sub, keys: key.For("relock", "model"), micros: 1_700_000_000_000_000, seen: map[string]int{},
	}
	r.model = modelLock{
		grants: map[string]*storedGrant{}, byName: map[string][]string{}, deaf: map[string]bool{"client-000000000000002": true},
	}
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
	n := func(below uint32) uint32 { // draws from the number
		x := number % below
		number /= below
		return x
	}
	if late := n(8); late < 6 {
		r.micros += []int64{1, 0, 977, 10_000, modelTTL * 400, modelTTL * 1001}[late]
	}
	now := r.micros / 1000
	r.rdb.MSet(r.t.Context(), "model:s", r.micros/1_000_000, "model:us", r.micros%1_000_000)
	m := &r.model
	m.begin(r.micros)
	what, i := n(16), int(n(uint32(len(modelActors))))
	if holding := m.holding(); what >= 7 && len(holding) > 0 && n(4) > 0 {
		i = holding[i%len(holding)]
	}
	a, client := modelActors[i], modelClient(i)
	if what >= 7 && n(16) == 15 {
		client = modelClient(i + 1) // whose nonce it is not
	}
	kind := []string{"plain", "fair", "rw", "fair rw"}[r.steps[0]%4]
	if isShared(kind) && n(2) == 0 {
		a.mode = "r"
	}
	var got, modelled []any
	var said string
	switch {
	case what < 7:
		if n(24) == 0 {
			kind = []string{"plain", "rw"}[n(2)]
		}
		echo := n(2)
		requests := []modelRequest{r.place(a, n)}
		if n(4) == 0 && modelClient((i+3)%8) == client {
			requests = append(requests, r.place(modelActors[(i+3)%8], n))
		}
		notAfter := r.micros + 1000*[]int64{10_000, 60_000, 10_000, 10_000, 10_000, 10_000, 0, 60_001}[n(8)]
		args := []any{kind, notAfter, fmt.Sprint(600_000, " ", echo, " ", modelPrefix)}
		for _, q := range requests {
			counts := " 1 0 "
			if q.mode == "r" {
				counts = " 0 1 "
			}
			args = append(args, modelIdentity(client, q.nonce, q.owner), "o:"+q.owner, fmt.Sprint(q.op, counts, q.ttl, " "), q.block, q.ttl+600_000, q.place)
		}
		keys := keysOf(n)
		said = fmt.Sprint("acquire ", args, " keys ", keys)
		got, modelled = r.eval("acquire", keys, args...), m.acquire(kind, client, notAfter, echo == 1, keys == 2, requests)
		got = taken(got, requests)
	case what < 10:
		op, ttl, writes, reads, keys := int64(n(9)), int64(n(3))*modelTTL, int64(1+n(2)), int64(n(2)), 1+int(n(2))
		if isShared(kind) && n(2) == 0 {
			writes, reads = 0, reads+1
		}
		said = fmt.Sprint("hold ", a.nonce, " op ", op, " writes ", writes, " reads ", reads, " ttl ", ttl, " keys ", keys)
		got = r.eval("hold", keys, ttl, ttl+600_000, modelIdentity(client, a.nonce, a.owner), "o:"+a.owner, op, writes, reads)
		modelled = m.hold(client, a.nonce, a.owner, op, writes, reads, ttl, keys == 2)
	case what < 11 && isShared(kind):
		op, reads, ttl := int64(n(9)), int64(1+n(2)), int64(n(2))*modelTTL
		said = fmt.Sprint("downgrade ", a.nonce, " op ", op, " reads ", reads)
		got = r.eval("downgrade", 2, modelIdentity(client, a.nonce, a.owner), op, reads, ttl, 600_000, modelPrefix)
		modelled = m.downgrade(client, a.nonce, a.owner, op, reads, ttl)
	case what < 15:
		owner, until := a.owner, int64(0)
		if n(6) == 0 {
			owner = ""
		}
		if n(8) == 0 {
			until = now + int64(n(3))*400
		}
		keys := keysOf(n)
		said = fmt.Sprint("release ", a.nonce, " owner ", owner, " until ", until, " keys ", keys)
		got = r.eval("release", keys, modelIdentity(client, a.nonce, owner), "o:"+owner, until, "600000 "+modelPrefix)
		modelled = m.release(client, a.nonce, owner, until, keys == 2)
		if len(got) == 1 {
			modelled = modelled[:1] // nobody waited: there is no more to say
		}
	default:
		token := m.token
		if g := m.grants[a.owner]; g != nil {
			token = g.low - int64(n(4)/3) // of the grant, or of none
		}
		said = fmt.Sprint("force ", a.owner, " ", token)
		got, modelled = r.eval("force", 2, a.owner, token, 0, 600_000, modelPrefix), m.force(a.owner, token)
	}
	r.said = append(r.said, fmt.Sprintf("%d %s: %v", r.micros, said, got))
	r.seen[strings.Fields(said)[0]]++
	if len(got) > 2 && strings.HasPrefix(said, "acquire") {
		r.seen[fmt.Sprint("answer ", got[2])]++
	}
	sent := r.messages()
	r.seen["messages"] += len(sent)
	state := r.state()
	switch {
	case fmt.Sprint(got) != fmt.Sprint(modelled):
		return fmt.Sprintf("the reply is %v, the model's %v", got, modelled)
	case !slices.Equal(told(sent), told(m.sent)):
		return fmt.Sprintf("published is %v, the model's is %v", sent, m.sent)
	case state.text(now) != m.text():
		return fmt.Sprintf("redis has\n%s\nthe model\n%s", state.text(now), m.text())
	}
	return r.inspect(now)
}

// holding are the actors that have a session, also where it has ended.
func (m *modelLock) holding() (all []int) {
	for i, a := range modelActors {
		if g := m.grants[a.owner]; g != nil && slices.ContainsFunc(g.sessions, func(s storedSession) bool { return s.nonce == a.nonce }) {
			all = append(all, i)
		}
	}
	return all
}

// keysOf is how many keys a script is told: one in a slot that migrates.
func keysOf(n func(uint32) uint32) int { return 2 - int(n(5)/4) }

// place makes a a request under some number, with or without a ticket.
func (r *modelRun) place(a modelRequest, n func(uint32) uint32) modelRequest {
	a.op = int64(1 + n(8))
	switch n(5) {
	case 0:
		a.place = -1
	case 1, 2:
		a.place = r.micros - int64(n(3))*1000 // one that it may have had
		if q := r.model.waiter(a.nonce); q != nil {
			a.place = q.ticket
		}
	}
	return a
}

func (r *modelRun) state() stored {
	hash := r.rdb.HGetAll(r.t.Context(), r.keys.Hash).Val()
	members := map[string]float64{}
	for _, z := range r.rdb.ZRangeWithScores(r.t.Context(), r.keys.Queue, 0, -1).Val() {
		members[z.Member.(string)] = z.Score
	}
	return decodeLock(hash, members)
}

// inspect compares what the two scripts say that only read.
func (r *modelRun) inspect(now int64) string {
	m := &r.model
	if len(r.said)%8 != 0 {
		return ""
	}
	var holders []string
	owners := map[string]bool{}
	for owner := range m.grants {
		if g := m.grantOf(owner); len(g.sessions) > 0 {
			var holds, until int64
			for _, s := range g.sessions {
				holds, until = holds+s.writes+s.reads, max(until, s.expiry)
			}
			holders = append(holders, fmt.Sprint(owner, g.mode, holds, g.low, g.high, until-now))
			owners[owner] = true
		}
	}
	var waiters []string
	for _, q := range m.queue {
		if q.expiry > now {
			waiters = append(waiters, fmt.Sprint(q.owner, q.mode, q.ticket))
		}
	}
	info := r.eval("info", 2, 0, 250)
	var gotHolders, gotWaiters []string
	for i := 4; i+5 < len(info); i += 6 {
		gotHolders = append(gotHolders, fmt.Sprint(info[i:i+6]...))
	}
	page := r.eval("waiters", 2, 0, 500)
	for i := 2; i+2 < len(page); i += 3 {
		gotWaiters = append(gotWaiters, fmt.Sprint(page[i:i+3]...))
	}
	slices.Sort(holders)
	slices.Sort(gotHolders)
	if a, b := strings.Join(gotHolders, "\n"), strings.Join(holders, "\n"); a != b {
		return fmt.Sprintf("info names %q, the model %q", a, b)
	}
	if a, b := strings.Join(gotWaiters, "\n"), strings.Join(waiters, "\n"); a != b || info[2] != int64(len(waiters)) {
		return fmt.Sprintf("waiters and info name %q and %v, the model %q", a, info[2], b)
	}
	return ""
}

// play makes all steps of a run until the two sides differ.
func (r *modelRun) play(steps []uint32) (differ string) {
	r.steps = steps
	for _, n := range steps[1:] {
		if differ = r.step(n); differ != "" {
			return differ
		}
	}
	return ""
}

// compare plays runs against one server until they differ or enough is done.
func compare(t *testing.T, rdb *redis.Client, enough func(steps int) bool) (differ string, steps int, seen map[string]int) {
	t.Helper()
	sub := subscribeModel(t, rdb)
	seen = map[string]int{}
	for seed := uint64(envInt(t, "RELOCK_MODEL_SEED", 1)); !enough(steps); seed++ {
		draw := rand.New(rand.NewPCG(seed, 77))
		run := make([]uint32, 60)
		for i := range run {
			run[i] = draw.Uint32()
		}
		r := newModelRun(t, rdb, sub)
		differ = r.play(run)
		steps += len(r.said)
		for what, n := range r.seen {
			seen[what] += n
		}
		if differ == "" {
			continue
		}
		for i := 1; i < len(run); { // drop steps that are not needed
			c := slices.Delete(slices.Clone(run), i, i+1)
			again := newModelRun(t, rdb, sub)
			if d := again.play(c); d != "" {
				run, r, differ = c, again, d
			} else {
				i++
			}
		}
		return fmt.Sprintf("seed %d: after\n%s\n%s", seed, strings.Join(r.said, "\n"), differ), steps, seen
	}
	return "", steps, seen
}

// modelled compares for some time, in which everything has to happen.
func modelled(t *testing.T, rdb *redis.Client, limit time.Duration) {
	began := time.Now()
	differ, steps, seen := compare(t, rdb, func(steps int) bool { return steps > 1000 && time.Since(began) > limit })
	if differ != "" {
		t.Fatal(differ)
	}
	t.Logf("%d steps, no divergence: %v", steps, seen)
	for _, what := range []string{
		"acquire", "hold", "release", "force", "downgrade", "messages",
		"answer 1", "answer 2", "answer 3", "answer -2", "answer -3", "answer -4", "answer -5",
	} {
		if seen[what] == 0 {
			t.Errorf("%s: never seen", what)
		}
	}
}

// TestModelMissesEveryRuleThatIsGone: else it would agree with anything.
func TestModelMissesEveryRuleThatIsGone(t *testing.T) {
	for _, m := range mutation.Further {
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			defer rig.SwapScripts(broken(t, m))()
			const most = 6000
			differ, steps, _ := compare(t, modelServer(t), func(steps int) bool { return steps > most })
			if differ == "" {
				t.Fatalf("%d steps do not miss the rule", steps)
			}
			t.Logf("missed after %d steps", steps)
		})
	}
}

// told is what messages tell, in whatever order: who is granted the lock by the same
// script needs no look, and a script may know that before it sends one.
func told(messages []string) []string {
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

func modelServer(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: mini.RunT(t).Addr(), Protocol: 2})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestScriptsDoWhatTheModelSays(t *testing.T) {
	limit := envDuration(t, "RELOCK_MODEL_FOR", 4*time.Second)
	t.Run("miniredis", func(t *testing.T) {
		modelled(t, modelServer(t), limit)
	})
	t.Run("redis", func(t *testing.T) {
		modelled(t, redistest.Real(t).Client(t, func(o *redis.Options) { o.Protocol = 2 }), limit)
	})
}
