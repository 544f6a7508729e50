package relock_test

import (
	"fmt"
	"slices"
	"strings"
)

// A session is what the records tell of who holds.
type session struct {
	client, owner, op, mode, low, high string
	writes, reads                      int
	until                              int64
}

// sessions are those whose leases run, by nonce.
func (f found) sessions() map[string]session {
	all := map[string]session{}
	for name, value := range f.fields {
		owner, holds := strings.CutPrefix(name, "o:")
		words := strings.Fields(value)
		for i := 3; holds && i+5 < len(words); i += 6 {
			s := session{client: words[i], owner: owner, op: words[i+2], mode: words[0], low: words[1], high: words[2]}
			_, _ = fmt.Sscan(strings.Join(words[i+3:i+6], " "), &s.writes, &s.reads, &s.until)
			if s.until > f.now {
				all[words[i+1]] = s
			}
		}
	}
	return all
}

// concerned: who gets the lock, loses it, or has been told of a later end is told so, and
// nobody else.
func (x trial) concerned() {
	x.w.t.Helper()
	want := func(format string, args ...any) {
		if message := fmt.Sprintf(format, args...); !slices.Contains(x.told, message) {
			x.errorf("not told %q but %q; stored %v, before %v", message, x.told, x.after.fields, x.before.fields)
		}
	}
	asks := func(nonce string) bool { // its reply is its message
		return x.say.script == "acquire" && (nonce == wireNonce(x.say.who) || nonce == wireNonce(x.say.beside))
	}
	was, is, grants := x.before.sessions(), x.after.sessions(), 0
	for nonce, s := range is {
		if _, held := was[nonce]; !held && !asks(nonce) {
			if nonce == wireNonce("g") {
				x.errorf("passed to somebody who does not hear")
			}
			want("%s: grant %s %s %s %s", s.client, nonce, s.op, s.low, s.high)
			grants++
		}
	}
	for nonce, s := range was {
		if _, holds := is[nonce]; !holds && x.say.script == "force" && strings.HasPrefix(x.say.answer(x.answer), "1") {
			want("%s: lost %s", s.client, nonce)
		}
	}
	for name, value := range x.after.fields {
		if nonce, waits := strings.CutPrefix(name, "w:"); waits && !asks(nonce) {
			before, after := strings.Fields(x.before.fields[name]), strings.Fields(value)
			if len(before) > 6 && before[6] != after[6] {
				want("%s: look %s", after[0], nonce)
			}
		}
	}
	sent := 0
	for _, message := range x.told {
		if strings.Contains(message, ": grant ") {
			sent++
		}
	}
	if sent != grants {
		x.errorf("%q, for %d who hold now", x.told, grants)
	}
	if echo := slices.Contains(x.told, wireClient(x.say.who)+": echo"); x.say.script == "acquire" && x.say.answer(x.answer) == "2" && echo != x.say.echo {
		x.errorf("an echo is %v, told %q", echo, x.told)
	}
}

// isStored: the answer is what is stored, and that is what was said. Others' sessions
// are as they were, and tokens grow.
func (x trial) isStored() {
	x.w.t.Helper()
	nonce, was, is := wireNonce(x.say.who), x.before.sessions(), x.after.sessions()
	session, holds := is[nonce]
	reply, _ := x.answer.Slice()
	number := func(i int) (n int64) {
		if i < len(reply) {
			_, _ = fmt.Sscan(fmt.Sprint(reply[i]), &n)
		}
		return n
	}
	want := func(ok bool, format string, args ...any) {
		if !ok {
			x.errorf(format+"; stored %v", append(args, x.after.fields)...)
		}
	}
	held := func(now, remaining int64) {
		want(holds && session.until == now+remaining, "until %d, answered %d", session.until, now+remaining)
	}
	stated := func(now int64) {
		before := was[nonce]
		if want(holds, "no session"); before.mode == "r" && x.say.writes > 0 {
			return // a downgrade has overtaken it
		}
		until := max(before.until, now+x.say.ttl.Milliseconds())
		if x.say.still {
			until = before.until
		}
		want(session.until == until && session.op == "4", "until %d, op %s, want %d", session.until, session.op, until)
		want(session.writes == x.say.writes && session.reads == x.say.reads, "%d writes, %d reads", session.writes, session.reads)
	}
	switch got := x.say.answer(x.answer); x.say.script + got {
	case "acquire1":
		held(number(0), number(5))
		want(fmt.Sprint(number(3), " ", number(4)) == session.low+" "+session.high, "tokens %s to %s", session.low, session.high)
	case "acquire2", "acquire3":
		want(number(0)+number(4) == x.after.ends(x.say.mode == "r" && got == "2"), "told %d", number(0)+number(4))
		words := strings.Fields(x.after.fields["holder"] + " 0 0 0 0")
		want(reply[6] == words[2] || reply[6] == "" && words[1] != wireClient(x.say.who), "the ghost is %v, the holder %v", reply[6], words)
		if got == "3" {
			want(!holds, "it holds")
			return
		}
		words = strings.Fields(x.after.fields["w:"+nonce] + " 0 0 0 0 0 0 0")
		want(words[2] == fmt.Sprint(number(3)) && words[6] == fmt.Sprint(number(0)+number(4)), "ticket %s, told %s", words[2], words[6])
		if before := x.before.queue[nonce]; before > 0 && x.before.fields["w:"+nonce] != "" {
			want(words[2] == fmt.Sprint(before), "its place was %d", before)
		}
		want(words[3] >= fmt.Sprint(number(0)+x.say.ttl.Milliseconds()), "its lease ends at %s", words[3])
	case "acquire-2", "acquire-3", "acquire-4", "acquire-5", "acquire-6", "release0", "release1", "release2", "hold0", "downgrade0":
		_, waits := x.after.fields["w:"+nonce]
		waited := x.before.queue[nonce] > 0 && x.say.script != "release"
		want(!holds || x.say.script == "hold" || x.say.script == "downgrade" || strings.HasPrefix(got, "-"), "it holds")
		want(!waits || waited, "it waits")
	case "renewfalse":
		want(session == was[nonce], "left alone, and was %v", was[nonce])
	case "hold1":
		held(number(1), number(4))
		stated(number(1))
	case "downgrade1":
		held(number(1), number(4))
		stated(number(1))
	case "renewtrue":
		stated(number(0))
	}
	if x.say.script == "release" && !x.say.anonymous && !x.say.oneKey {
		_, held := was[nonce]
		_, waited := x.before.fields["w:"+nonce]
		found := "0"
		if held {
			found = "2"
		} else if waited {
			found = "1"
		}
		want(x.say.answer(x.answer) == found, "want %s", found)
		want(x.say.copies == 0 || x.after.fields["e:"+nonce] != "", "copies of it are not refused")
	}
	if writes := 0; holds && session.mode == "w" && (x.say.script == "hold" || x.say.script == "downgrade") {
		for _, s := range is {
			writes += s.writes
		}
		want(writes > 0 || x.say.writes > 0, "nobody writes any more, and others cannot read")
	}
	for other, s := range was {
		if now, ok := is[other]; ok && other != nonce {
			want(now.until == s.until && now.op == s.op && now.writes == s.writes && now.reads == s.reads, "another's session %v was %v", now, s)
		} else if !ok && x.say.script != "force" && other != nonce {
			want(s.until <= x.after.now, "another's session %v is gone", s)
		}
	}
	var token int64
	_, _ = fmt.Sscan(x.before.fields["token"], &token)
	for other, s := range is {
		var low int64
		_, _ = fmt.Sscan(s.low, &low)
		_, joined := x.before.fields["o:"+s.owner]
		_, held := was[other]
		want(held || joined || low > token, "token %d after %d", low, token)
		want(x.after.fields["token"] >= s.high, "token %s is issued, the counter is at %s", s.high, x.after.fields["token"])
	}
}

// ends is when the lock may come free by itself. One who reads may pass the head of the
// queue when that dies.
func (f found) ends(reads bool) int64 {
	var until int64
	if _, _ = fmt.Sscan(f.fields["holder"], &until); until > 0 {
		return until
	}
	for member, score := range f.queue {
		if strings.HasPrefix(member, "r") {
			until = max(until, -score-100_000_000_000_000)
		}
	}
	if head := f.head(); reads && head != "" {
		until = min(until, -f.queue["-"+head])
	}
	return until
}

// head is who waits at the head of the queue.
func (f found) head() (head string) {
	for member, score := range f.queue {
		if score > 0 && (head == "" || score < f.queue[head]) {
			head = member
		}
	}
	return head
}
