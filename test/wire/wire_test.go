package wire_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// The tests of the wire say by hand, to a real server, what clients say to the
// scripts: every state of a lock meets every statement, and what is promised of all of
// them is looked for in each. wire_record_test.go alone knows how the records are written.

const (
	wireKeep  = 10 * time.Minute
	wireLong  = time.Hour
	wireShort = time.Minute
)

// A parley is one server and the scripts in it.
type parley struct {
	t    *testing.T
	ctx  context.Context
	root *redis.Client
	user *redis.Client // who makes the statement that is tried
	shas map[string]string
	kind string
	keys key.Keys         // of the lock that is spoken of
	low  map[string]int64 // the first token of each owner's grant

	inboxes *redis.PubSub
}

// parleyWith returns a server where all who speak are heard.
func parleyWith(t *testing.T) *parley {
	t.Helper()
	srv := redistest.Real(t)
	w := &parley{t: t, ctx: t.Context(), root: srv.Client(t), shas: map[string]string{}}
	w.user = w.root
	w.inboxes = w.root.Subscribe(w.ctx)
	t.Cleanup(func() { _ = w.inboxes.Close() })
	for _, who := range "abcd" {
		w.must(w.inboxes.Subscribe(w.ctx, key.Inbox("relock", wireClient(string(who)))))
		_, err := w.inboxes.Receive(w.ctx)
		w.must(err)
	}
	for _, name := range []string{
		"acquire", "hold", "release", "downgrade", "force", "info", "await", "signal", "abandon", "detach", "resume", "raise", "usual",
	} {
		sha, err := w.root.ScriptLoad(w.ctx, script.MustLoad(lua.FS, name).Source).Result()
		w.must(err)
		w.shas[name] = sha
	}
	return w
}

func (w *parley) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

var (
	wireFirst = key.For("relock", "first") // where a state is reached
	wireTried = key.For("relock", "tried") // its copy, for one statement
)

// reach brings a lock into the state. lease is that of each step.
func (w *parley) reach(state wireState, lease func(step int) time.Duration) {
	w.t.Helper()
	w.kind, w.keys = state.kind, wireFirst
	tries := 0
	for ; tries < 100 && !w.tryToReach(state, lease); tries++ {
	}
	if tries == 100 {
		w.t.Fatalf("%s: the server took longer than the lease of %v each time", state.name, state.gone())
	}
	for until := w.now() + state.gone().Milliseconds() + 2; state.passed && w.now() < until; {
	}
	w.low = map[string]int64{}
	info, err := w.root.EvalSha(w.ctx, w.shas["info"], []string{w.keys.Hash, w.keys.Queue}, 0, 250).Slice()
	w.must(err)
	for i := 6; i+7 < len(info); i += 8 {
		w.low[info[i].(string)] = info[i+3].(int64)
	}
	w.keys = wireTried
}

// tryToReach reports whether no short lease has ended on the way, on a server that was
// busy with something else: who asks after that finds another state.
func (w *parley) tryToReach(state wireState, lease func(step int) time.Duration) bool {
	w.t.Helper()
	w.must(w.root.Del(w.ctx, w.keys.Hash, w.keys.Queue).Err())
	p := w.root.Pipeline()
	began := p.Time(w.ctx)
	for i, s := range state.said {
		if s.ttl == 0 {
			s.ttl = lease(i)
		}
		w.say(p, s)
	}
	ended := p.Time(w.ctx)
	p.Publish(w.ctx, key.Inbox("relock", wireClient("a")), "told")
	_, err := p.Exec(w.ctx)
	w.must(err)
	w.told()
	return !state.passed || ended.Val().Sub(began.Val()) < state.gone()-time.Millisecond
}

// now is the server's time.
func (w *parley) now() int64 {
	w.t.Helper()
	now, err := w.root.Time(w.ctx).Result()
	w.must(err)
	return now.UnixMilli()
}

// A trial is what one statement has made of a lock.
type trial struct {
	w             *parley
	say           say
	state         wireState
	before, after found
	answer        *redis.Cmd
	what          string
	told          []string // 'client: message', of all
}

func (x trial) errorf(format string, args ...any) {
	x.w.t.Helper()
	x.w.t.Errorf("%s: lock %s, %v, answered %v: "+format, append([]any{x.what, x.state.name, x.say, x.answer.Val()}, args...)...)
}

// each makes every statement to a lock of its own in the state that was reached. what is in the name of
// the failures; around, unless nil, puts further commands around the statement.
func (w *parley) each(what string, state wireState, ttl time.Duration, around func(p redis.Pipeliner, s say, speak func(say) *redis.Cmd) *redis.Cmd) []trial {
	w.t.Helper()
	statements := state.statements()
	p := w.root.Pipeline()
	trials, looks := make([]trial, len(statements)), make([]look, len(statements))
	w.keys = wireFirst
	first := w.look(p)
	w.keys = wireTried
	for i, s := range statements {
		if s.ttl == 0 {
			s.ttl = ttl
		}
		p.Del(w.ctx, wireTried.Hash, wireTried.Queue)
		p.Copy(w.ctx, wireFirst.Hash, wireTried.Hash, 0, true)
		p.Copy(w.ctx, wireFirst.Queue, wireTried.Queue, 0, true)
		x := trial{w: w, say: s, state: state, what: what}
		speak := func(s say) *redis.Cmd { return w.say(p, s) }
		if around == nil {
			x.answer = speak(s)
		} else {
			x.answer = around(p, s, speak)
		}
		looks[i] = w.look(p)
		p.Publish(w.ctx, key.Inbox("relock", wireClient("a")), "told")
		trials[i] = x
	}
	_, _ = p.Exec(w.ctx) // each answer has its error
	for i := range trials {
		trials[i].told = w.told()
		trials[i].before, trials[i].after = first.found(), looks[i].found()
	}
	return trials
}

// told is what the inboxes have been told, up to the mark.
func (w *parley) told() (all []string) {
	w.t.Helper()
	for {
		m, err := w.inboxes.ReceiveMessage(w.ctx)
		w.must(err)
		if m.Payload == "told" {
			return all
		}
		all = append(all, strings.TrimPrefix(m.Channel, key.Inbox("relock", ""))+": "+m.Payload)
	}
}

// A look is what a pipeline reads of the lock that is tried.
type look struct {
	fields              *redis.MapStringStringCmd
	members             *redis.ZSliceCmd
	hashEnds, queueEnds *redis.Cmd
	now                 *redis.TimeCmd
}

func (w *parley) look(p redis.Pipeliner) look {
	return look{
		p.HGetAll(w.ctx, w.keys.Hash), p.ZRangeWithScores(w.ctx, w.keys.Queue, 0, -1),
		p.Do(w.ctx, "PEXPIRETIME", w.keys.Hash), p.Do(w.ctx, "PEXPIRETIME", w.keys.Queue), p.Time(w.ctx),
	}
}

// found is what the keys of a lock contain.
type found struct {
	fields              map[string]string
	queue               map[string]int64 // by member
	hashEnds, queueEnds int64            // in the server's ms: -1 never, -2 there is no such key
	now                 int64
}

func (l look) found() found {
	f := found{fields: l.fields.Val(), queue: map[string]int64{}, now: l.now.Val().UnixMilli()}
	for _, z := range l.members.Val() {
		f.queue[z.Member.(string)] = int64(z.Score)
	}
	f.hashEnds, _ = l.hashEnds.Int64()
	f.queueEnds, _ = l.queueEnds.Int64()
	return f
}

// stores says whether it contains the same.
func (f found) stores(g found) bool {
	return maps.Equal(f.fields, g.fields) && maps.Equal(f.queue, g.queue)
}

// names are those of the fields and members.
func (f found) names() string {
	return fmt.Sprint(slices.Sorted(maps.Keys(f.fields)), slices.Sorted(maps.Keys(f.queue)))
}
