package wire_test

import (
	"slices"
	"strings"
	"time"
)

// wireState is a state of a lock: what has been said until it is reached.
type wireState struct {
	name, kind string
	said       []say
	passed     bool // the leases of those who died have ended
}

// gone is the lease of somebody who died.
const gone = 5 * time.Millisecond

func wireStates() []wireState {
	ask := func(who string) say { return say{script: "acquire", who: who} }
	named := func(who string) say { return say{script: "acquire", who: who, owner: "o"} }
	read := func(s say) say { s.mode = "r"; return s }
	dies := func(s say) say { s.ttl = gone; return s }
	a, b, c := ask("a"), ask("b"), ask("c")
	left := say{script: "release", who: "a"}
	return []wireState{
		{name: "new", kind: "plain"},
		{name: "free", kind: "plain", said: []say{a, left}},
		{name: "held", kind: "plain", said: []say{a}},
		{name: "held and awaited", kind: "fair", said: []say{a, b, c}},
		{name: "held and awaited by an owner twice", kind: "plain", said: []say{a, named("b"), named("c")}},
		{name: "held by an owner twice", kind: "plain", said: []say{named("a"), named("b")}},
		{name: "held by an owner twice and awaited", kind: "plain", said: []say{named("a"), named("b"), c}},
		{name: "passed to one of an owner who waits twice", kind: "plain", said: []say{c, named("a"), named("b"), {script: "release", who: "c"}}},
		{name: "the holder died", kind: "plain", said: []say{dies(a), b, c}, passed: true},
		{name: "the next died", kind: "plain", said: []say{a, dies(b), c}, passed: true},
		{name: "the only one who waits died", kind: "fair", said: []say{a, dies(b)}, passed: true},
		{name: "held by a client that asks again", kind: "plain", said: []say{ask("d"), b}},
		{name: "awaited by somebody who does not hear", kind: "plain", said: []say{a, ask("g"), c}},
		{name: "all died", kind: "plain", said: []say{dies(a), dies(named("b")), dies(c)}, passed: true},
		{name: "one of an owner died", kind: "plain", said: []say{named("a"), dies(named("b")), c}, passed: true},
		{name: "new for readers", kind: "rw"},
		{name: "read", kind: "rw", said: []say{read(a), read(b)}},
		{name: "read and awaited", kind: "fair rw", said: []say{read(a), b, read(c)}},
		{name: "read by an owner twice", kind: "rw", said: []say{read(named("a")), read(named("b")), c}},
		{name: "written by one alone", kind: "fair rw", said: []say{a}},
		{name: "written", kind: "rw", said: []say{a, read(b), c}},
		{name: "written and awaited by readers", kind: "rw", said: []say{a, read(b), read(named("c"))}},
		{name: "written and read by an owner", kind: "rw", said: []say{named("a"), read(named("b")), read(c)}},
		{name: "written by an owner twice", kind: "rw", said: []say{named("a"), named("b"), read(c)}},
		{name: "the writing one of an owner died", kind: "rw", said: []say{dies(named("a")), read(named("b")), read(c)}, passed: true},
		{name: "a reader died", kind: "rw", said: []say{dies(read(a)), read(b), c}, passed: true},
		{name: "one of an owner's readers died", kind: "rw", said: []say{read(named("a")), dies(read(named("b"))), c}, passed: true},
		{name: "all readers died", kind: "rw", said: []say{dies(read(a)), dies(read(named("b"))), c}, passed: true},
		{name: "a writer between readers died", kind: "rw", said: []say{read(a), dies(b), read(c)}, passed: true},
	}
}

// statements is what may be said to a lock in the state, by those who hold and wait
// and by e and f, who are new. Who says it may have died or gone.
func (state wireState) statements() []say {
	all := slices.Clone(ofNewcomers)
	for _, who := range []string{"a", "b", "c", "d"} {
		beat := say{script: "acquire", who: who}
		for _, s := range state.said {
			if s.script == "acquire" && s.who == who {
				beat = s
			}
		}
		beat.ttl = 0 // also of those who died
		again := beat
		beat.op, beat.place, beat.echo = 3, 1, true
		all = append(all, again, beat)
		for _, s := range ofAnybody {
			s.who, s.owner = who, beat.owner
			all = append(all, s)
		}
	}
	if state.shared() {
		return all
	}
	return slices.DeleteFunc(all, func(s say) bool {
		return s.mode == "r" || s.script == "downgrade" || s.reads > 0
	})
}

var ofNewcomers = []say{
	{script: "acquire", who: "e"},
	{script: "acquire", who: "e", echo: true},
	{script: "acquire", who: "e", place: -1},
	{script: "acquire", who: "e", block: 10_000_000},
	{script: "acquire", who: "e", hashOnly: true},
	{script: "acquire", who: "e", mode: "r"},
	{script: "acquire", who: "e", mode: "r", echo: true},
	{script: "acquire", who: "e", owner: "o"},
	{script: "acquire", who: "e", owner: "o", mode: "r"},
	{script: "acquire", who: "e", owner: "p"},
	{script: "acquire", who: "e", owner: "~the owner a"},
	{script: "acquire", who: "e", beside: "f"},
	{script: "acquire", who: "e", beside: "f", echo: true, mode: "r"},
	{script: "release", who: "e"},
	{script: "release", who: "e", copies: 10 * time.Second},
	{script: "release", who: "e", anonymous: true},
	{script: "release", who: "e", anonymous: true, hashOnly: true},
}

// ofAnybody is said by each of those who have asked before, as the owner for whom they did.
var ofAnybody = []say{
	{script: "hold", op: 4, writes: 1},
	{script: "hold", op: 4, reads: 1},
	{script: "hold", op: 4, writes: 2, still: true},
	{script: "hold", op: 4, writes: 1, reads: 1},
	{script: "hold", op: 4, writes: 1, hashOnly: true},
	{script: "hold", op: 4, reads: 1, hashOnly: true, still: true},
	{script: "hold", op: 4, writes: 1, many: true},
	{script: "hold", op: 4, writes: 2, many: true, still: true},
	{script: "downgrade", op: 4, reads: 1},
	{script: "downgrade", op: 4, reads: 2, still: true},
	{script: "release"},
	{script: "release", brief: true},
	{script: "release", copies: 10 * time.Second},
	{script: "release", hashOnly: true},
	{script: "force"},
	{script: "force", stale: true},
}

// gone is the lease of those who died in it.
func (state wireState) gone() (lease time.Duration) {
	for _, s := range state.said {
		lease = max(lease, s.ttl)
	}
	return lease
}

func (state wireState) shared() bool { return strings.HasSuffix(state.kind, "rw") }
