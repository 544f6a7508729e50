package wire_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// A further is a statement that the table of wireStates leaves out: of conditions, of tickets, of a Quorum, and of many
// locks at once. Each is made in a state in which it does something.
type further struct {
	script string
	state  wireState
	before []func(w *parley) (script string, args []any) // made after what the state says
	args   func(w *parley) []any
	late   int  // the place of its not-after in args, or 0
	hash   bool // it has no other key
}

func furtherStatements() []further {
	held := wireState{name: "held", kind: "plain", said: []say{{script: "acquire", who: "e"}, {script: "release", who: "e"}, {script: "acquire", who: "a", block: 4}}}
	awaited := wireState{name: "held and awaited", kind: "plain", said: append(slices.Clone(held.said), say{script: "acquire", who: "b"})}
	free := wireState{name: "free", kind: "plain", said: []say{{script: "acquire", who: "a"}, {script: "release", who: "a"}}}
	fair, read := wireState{name: "held", kind: "fair", said: held.said}, wireState{name: "read", kind: "rw"}
	for _, who := range []string{"a", "b"} {
		read.said = append(read.said, say{script: "acquire", who: who, mode: "r"})
	}
	waits := func(w *parley) (string, []any) { return "await", w.awaits() }
	ticket := func(w *parley) (string, []any) { return "detach", w.detaches(0) }
	readTicket := func(w *parley) (string, []any) { return "detach", w.detaches(1) }
	next := func(w *parley) (string, []any) {
		_, args := w.phrase(say{script: "acquire", who: "b", ttl: wireLong, op: 1})
		return "acquire", args
	}
	before := func(all ...func(w *parley) (string, []any)) []func(w *parley) (string, []any) { return all }
	signal := func(w *parley) []any {
		return []any{wireIdentity("b"), 7, "c", 1, wireKeep.Milliseconds(), key.Inbox("relock", "")}
	}
	abandon := func(*parley) []any { return []any{wireIdentity("a"), wireKeep.Milliseconds(), key.Inbox("relock", "")} }
	raise := func(w *parley) []any {
		return []any{wireIdentity("a"), "o:~the owner a", w.low["~the owner a"] + 1e9, (wireShort + wireKeep).Milliseconds()}
	}
	resume := func(*parley) []any {
		return []any{"ticket", wireIdentity("e")[:len(wireIdentity("e"))-1] + "a", 1, notAfter(), wireShort.Milliseconds(), wireKeep.Milliseconds(), key.Inbox("relock", "")}
	}
	takes := func(w *parley) []any {
		return []any{0, rig.StoredKind(w.kind), 4, (wireShort + wireKeep).Milliseconds(), notAfter(), wireIdentity("e"), "o:~the owner e", fmt.Sprint("1 1 0 ", wireShort.Milliseconds(), " ")}
	}
	force := func(w *parley) []any {
		return []any{"~the owner a", w.low["~the owner a"], 0, wireKeep.Milliseconds(), key.Inbox("relock", "")}
	}
	return []further{
		{script: "await", state: held, args: (*parley).awaits},
		{script: "await", state: awaited, args: (*parley).awaits},
		{script: "signal", state: held, before: before(waits, next), args: signal},
		{script: "abandon", state: held, before: before(waits), args: abandon},
		{script: "abandon", state: held, before: before(waits, next), args: abandon},
		{script: "detach", state: held, args: func(w *parley) []any { return w.detaches(0) }},
		{script: "detach", state: awaited, args: func(w *parley) []any { return w.detaches(0) }},
		{script: "detach", state: read, args: func(w *parley) []any { return w.detaches(1) }},
		{script: "resume", state: held, before: before(ticket), args: resume, late: 3},
		{script: "resume", state: awaited, before: before(ticket), args: resume, late: 3},
		{script: "resume", state: read, before: before(readTicket), args: resume, late: 3},
		{script: "raise", state: held, args: raise, hash: true},
		{script: "usual", state: free, args: takes, late: 4, hash: true},
		{script: "usual", state: wireState{name: "new", kind: "plain"}, args: takes, late: 4, hash: true},
		{script: "usual", state: held, args: func(*parley) []any { return []any{1, wireIdentity("a"), "o:~the owner a"} }, hash: true},
		{script: "force", state: fair, args: force},
	}
}

func wireIdentity(who string) string {
	return wireNonce(who) + " " + wireClient(who) + " o:~the owner " + who
}

func notAfter() int64 { return time.Now().Add(20 * time.Second).UnixMicro() }

// awaits is the arguments of an await of a, on the condition c.
func (w *parley) awaits() []any {
	return []any{wireIdentity("a"), 2, 1, wireShort.Milliseconds(), "c", wireKeep.Milliseconds(), key.Inbox("relock", ""), w.low["~the owner a"]}
}

// detaches is the arguments of a detach of a.
func (w *parley) detaches(reads int) []any {
	return []any{wireIdentity("a"), "ticket", w.low["~the owner a"], reads, wireShort.Milliseconds(), 0, wireKeep.Milliseconds(), key.Inbox("relock", "")}
}

// A deed is what a further statement has made of a lock.
type deed struct {
	further
	before, after found
	answer        *redis.Cmd
}

// do reaches the state of a statement, and makes it. around, unless nil, puts commands around it, and may change its
// arguments.
func (f further) do(w *parley, around func(p redis.Pipeliner, args []any, speak func(args []any) *redis.Cmd) *redis.Cmd) (d deed) {
	w.t.Helper()
	w.reach(f.state, func(int) time.Duration { return wireLong })
	w.keys = wireFirst
	for _, say := range f.before {
		name, args := say(w)
		w.must(w.root.EvalSha(w.ctx, w.shas[name], []string{w.keys.Hash, w.keys.Queue}, args...).Err())
	}
	p := w.root.Pipeline()
	first, args := w.look(p), f.args(w)
	speak := func(args []any) *redis.Cmd {
		keys := []string{w.keys.Hash, w.keys.Queue}
		if f.hash {
			keys = keys[:1]
		}
		return p.EvalSha(w.ctx, w.shas[f.script], keys, args...)
	}
	d.further = f
	if around == nil {
		d.answer = speak(args)
	} else {
		d.answer = around(p, args, speak)
	}
	last := w.look(p)
	_, _ = p.Exec(w.ctx) // each answer has its error
	d.before, d.after = first.found(), last.found()
	return d
}

func (d deed) errorf(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Errorf("%s of a lock that is %s: "+format, append([]any{d.script, d.state.name}, args...)...)
}

// Fails when a statement of a condition, a ticket or a Quorum is refused by a Redis that is out of memory.
func TestEveryFurtherStatementWorksWhenRedisIsOutOfMemory(t *testing.T) {
	w := parleyWith(t)
	w.must(w.root.ConfigSet(w.ctx, "maxmemory-policy", "noeviction").Err())
	for _, f := range furtherStatements() {
		roomy := f.do(w, nil)
		tight := f.do(w, func(p redis.Pipeliner, args []any, speak func([]any) *redis.Cmd) *redis.Cmd {
			p.ConfigSet(w.ctx, "maxmemory", "1")
			defer p.ConfigSet(w.ctx, "maxmemory", "0")
			return speak(args)
		})
		switch {
		case roomy.answer.Err() != nil || roomy.before.stores(roomy.after):
			roomy.errorf(t, "%v, and changes nothing: this test shows nothing", roomy.answer)
		case tight.answer.Err() != nil:
			tight.errorf(t, "%v", tight.answer.Err())
		case tight.after.names() != roomy.after.names():
			tight.errorf(t, "stored %s, with memory %s", tight.after.names(), roomy.after.names())
		}
	}
}

// Fails when such a statement leaves a key without a TTL, or has changed anything before it is refused one.
func TestEveryFurtherStatementLeavesNoKeyWithoutALifetime(t *testing.T) {
	w := parleyWith(t)
	w.must(w.root.Do(w.ctx, "ACL", "SETUSER", "limited", "on", "nopass", "~*", "&*", "+@all", "-pexpire").Err())
	for _, f := range furtherStatements() {
		d := f.do(w, func(p redis.Pipeliner, args []any, speak func([]any) *redis.Cmd) *redis.Cmd {
			p.Do(w.ctx, "AUTH", "limited", "x")
			defer p.Do(w.ctx, "AUTH", "default", "")
			return speak(args)
		})
		if d.after.hashEnds == -1 || d.after.queueEnds == -1 {
			d.errorf(t, "a key without a TTL")
		}
		if d.answer.Err() != nil && !d.before.stores(d.after) {
			d.errorf(t, "%v, half way: %s, before %s", d.answer.Err(), d.after.names(), d.before.names())
		}
		if d := f.do(w, nil); d.after.hashEnds == -1 || d.after.queueEnds == -1 {
			d.errorf(t, "a key without a TTL, though one may be set")
		}
	}
}

// Fails when such a statement changes a key of another type, or finds only half way that the queue is one.
func TestEveryFurtherStatementLeavesKeysOfAnotherTypeAlone(t *testing.T) {
	w := parleyWith(t)
	for _, theirs := range []string{wireFirst.Hash, wireFirst.Queue} {
		for _, f := range furtherStatements() {
			var was, is *redis.StringCmd
			d := f.do(w, func(p redis.Pipeliner, args []any, speak func([]any) *redis.Cmd) *redis.Cmd {
				p.Del(w.ctx, theirs)
				p.RPush(w.ctx, theirs, "mine")
				p.PExpire(w.ctx, theirs, wireShort)
				was = p.Dump(w.ctx, theirs)
				defer func() { is = p.Dump(w.ctx, theirs) }()
				return speak(args)
			})
			if was.Val() != is.Val() {
				d.errorf(t, "%s is changed: %v", theirs, d.answer)
			}
			for field := range d.before.fields {
				if _, ok := d.after.fields[field]; !ok && d.answer.Err() != nil && theirs == wireFirst.Queue {
					d.errorf(t, "%v: %s is gone", d.answer.Err(), field)
				}
			}
		}
	}
}

// Fails when such a request is carried out after its time, or so long before it that the clock cannot be right.
func TestEveryFurtherRequestHasANotAfter(t *testing.T) {
	w := parleyWith(t)
	for _, f := range furtherStatements() {
		for _, off := range []time.Duration{-time.Second, 2 * time.Minute} {
			if f.late == 0 {
				continue
			}
			d := f.do(w, func(_ redis.Pipeliner, args []any, speak func([]any) *redis.Cmd) *redis.Cmd {
				args[f.late] = time.Now().Add(off).UnixMicro()
				return speak(args)
			})
			if d.answer.Err() != nil || !d.before.stores(d.after) {
				d.errorf(t, "%v after its time it is carried out: %v", -off, d.answer)
			}
		}
	}
}

// Fails when a counter that is ahead goes back to the token of a Quorum, or somebody who does not hold moves it.
func TestARaiseNeverLowersACounter(t *testing.T) {
	w := parleyWith(t)
	for _, f := range furtherStatements() {
		for who, change := range map[string]func(args []any){
			"a smaller token": func(args []any) { args[2] = w.low["~the owner a"] - 1 },
			"another's token": func(args []any) { args[0], args[1] = wireIdentity("e"), "o:~the owner e" },
		} {
			if f.script != "raise" {
				continue
			}
			d := f.do(w, func(_ redis.Pipeliner, args []any, speak func([]any) *redis.Cmd) *redis.Cmd {
				change(args)
				return speak(args)
			})
			if d.answer.Err() != nil || !d.before.stores(d.after) {
				d.errorf(t, "%s: %v, stored %v, before %v", who, d.answer, d.after.fields, d.before.fields)
			}
		}
	}
}

// Fails when a resume whose call has given it up takes the ticket's grant.
func TestAResumeThatWasGivenUpGetsNothing(t *testing.T) {
	w := parleyWith(t)
	for _, f := range furtherStatements() {
		if f.script != "resume" {
			continue
		}
		var ended *redis.Cmd
		d := f.do(w, func(p redis.Pipeliner, args []any, speak func([]any) *redis.Cmd) *redis.Cmd {
			keys, release := w.phrase(say{script: "release", who: "e", owner: "~the owner a", op: 1, copies: 10 * time.Second})
			ended = p.EvalSha(w.ctx, w.shas["release"], keys, release...)
			return speak(args)
		})
		w.must(ended.Err())
		if got, err := d.answer.Slice(); err != nil || fmt.Sprint(got[2]) != "-4" {
			d.errorf(t, "%v, %v, want that it has ended", got, err)
		}
	}
}

// Fails when the head of the queue sleeps on until the end of a ticket, though the hold that was resumed ends sooner.
func TestWhoWaitsIsToldOfAShorterHoldAfterAResume(t *testing.T) {
	w := parleyWith(t)
	for _, f := range furtherStatements() {
		if f.script != "resume" || f.state.name != "held and awaited" {
			continue
		}
		d := f.do(w, func(p redis.Pipeliner, args []any, speak func([]any) *redis.Cmd) *redis.Cmd {
			args[4] = time.Second.Milliseconds()
			p.Publish(w.ctx, key.Inbox("relock", wireClient("a")), "told")
			defer p.Publish(w.ctx, key.Inbox("relock", wireClient("a")), "told")
			return speak(args)
		})
		w.told() // what the ticket has told
		if told := w.told(); d.answer.Err() != nil || !slices.Contains(told, wireClient("b")+": look "+wireNonce("b")) {
			d.errorf(t, "%v, told %q, want that b looks", d.answer, told)
		}
	}
}

// Fails when a script sends a ticket a message. No client has its inbox, which is not in the slot of the keys.
func TestNobodyTellsATicket(t *testing.T) {
	w := parleyWith(t)
	inbox := w.root.Subscribe(w.ctx, key.Inbox("relock", "-"))
	t.Cleanup(func() { _ = inbox.Close() })
	_, err := inbox.Receive(w.ctx)
	w.must(err)
	for _, f := range furtherStatements() {
		if f.script != "detach" {
			continue
		}
		d := f.do(w, nil)
		w.must(d.answer.Err())
		_, acquire := w.phrase(say{script: "acquire", who: "d", ttl: wireLong, op: 1})
		_, force := w.phrase(say{script: "force", who: "a"})
		keys := []string{w.keys.Hash, w.keys.Queue}
		w.must(w.root.EvalSha(w.ctx, w.shas["acquire"], keys, acquire...).Err())
		if forced, err := w.root.EvalSha(w.ctx, w.shas["force"], keys, force...).Slice(); err != nil || forced[0] != int64(1) {
			d.errorf(t, "the ticket's grant is not forced to end: %v, %v", forced, err)
		}
		w.must(w.root.Publish(w.ctx, key.Inbox("relock", "-"), "told").Err())
		for {
			m, err := inbox.ReceiveMessage(w.ctx)
			w.must(err)
			if m.Payload == "told" {
				break
			}
			d.errorf(t, "the ticket is told %q", m.Payload)
		}
	}
}

// Fails when a session whose lease has ended is found by a statement, and signals or holds on.
func TestNoStatementFindsALeaseThatHasEnded(t *testing.T) {
	w := parleyWith(t)
	dead := wireState{name: "dead", kind: "rw", passed: true, said: []say{{script: "acquire", who: "a", ttl: gone}}}
	for script, args := range map[string][]any{
		"signal":    {wireIdentity("a"), 7, "c", 1, wireKeep.Milliseconds(), key.Inbox("relock", "")},
		"downgrade": {wireIdentity("a"), 7, 1, wireShort.Milliseconds(), wireKeep.Milliseconds(), key.Inbox("relock", "")},
	} {
		w.reach(dead, func(int) time.Duration { return wireLong })
		got, err := w.root.EvalSha(w.ctx, w.shas[script], []string{wireFirst.Hash, wireFirst.Queue}, args...).Slice()
		if err != nil || got[1] != int64(0) || got[2] != int64(0) {
			t.Errorf("%s: %v, %v, want that it does not hold", script, got, err)
		}
	}
}
