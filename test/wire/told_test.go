package wire_test

import (
	"fmt"
	"slices"
	"strings"
)

// asks says whether a nonce's request is answered by the statement: its reply is its message.
func (x trial) asks(nonce string) bool {
	return x.say.script == "acquire" && (nonce == wireNonce(x.say.who) || nonce == wireNonce(x.say.beside))
}

// mustHear fails unless somebody was told that.
func (x trial) mustHear(format string, args ...any) {
	x.w.t.Helper()
	if message := fmt.Sprintf(format, args...); !slices.Contains(x.told, message) {
		x.errorf("not told %q but %q; stored %v, before %v", message, x.told, x.after.fields, x.before.fields)
	}
}

// wanted: who holds is told that somebody waits when the first one begins to.
func (x trial) wanted() {
	x.w.t.Helper()
	was, waits := x.before.sessions(), len(x.after.waiters()) > 0
	for nonce, s := range x.after.sessions() {
		if _, held := was[nonce]; held && waits && len(x.before.waiters()) == 0 && s.until > x.after.now {
			x.mustHear("%s: wanted %s", s.client, nonce)
		}
	}
	for _, message := range x.told {
		if strings.Contains(message, ": wanted ") && !waits {
			x.errorf("%q, and nobody waits", message)
		}
	}
}

// concerned: who gets the lock, loses it, or has been told of a later end is told so, and
// nobody else.
func (x trial) concerned() {
	x.w.t.Helper()
	was, is, grants, wanted := x.before.sessions(), x.after.sessions(), 0, ""
	if len(x.after.waiters()) > 0 {
		wanted = " +"
	}
	for nonce, s := range is {
		if _, held := was[nonce]; !held && !x.asks(nonce) {
			if nonce == wireNonce("g") {
				x.errorf("passed to somebody who does not hear")
			}
			x.mustHear("%s: grant %s %s %s %s%s", s.client, nonce, s.op, s.low, s.high, wanted)
			grants++
		}
	}
	x.wanted()
	for nonce, s := range was {
		if _, holds := is[nonce]; !holds && x.say.script == "force" && x.say.answer(x.answer) == "1" && s.until > x.after.now {
			x.mustHear("%s: lost %s", s.client, nonce)
		}
	}
	before := x.before.waiters()
	for nonce, q := range x.after.waiters() {
		if old, waited := before[nonce]; waited && !x.asks(nonce) && old.told != q.told {
			x.mustHear("%s: look %s", q.client, nonce)
		}
	}
	sent := 0
	for _, message := range x.told {
		sent += bit(strings.Contains(message, ": grant "))
	}
	if sent != grants {
		x.errorf("%q, for %d who hold now", x.told, grants)
	}
	if echo := slices.Contains(x.told, wireClient(x.say.who)+": echo seen"); x.say.script == "acquire" && x.say.answer(x.answer) == "2" && echo != x.say.echo {
		x.errorf("an echo is %v, told %q", echo, x.told)
	}
}

// want fails unless ok.
func (x trial) want(ok bool, format string, args ...any) {
	x.w.t.Helper()
	if !ok {
		x.errorf(format+"; stored %v", append(args, x.after.fields)...)
	}
}

// number is one of those of the reply.
func (x trial) number(i int) (n int64) {
	if reply := x.say.reply(x.answer); i < len(reply) {
		_, _ = fmt.Sscan(fmt.Sprint(reply[i]), &n)
	}
	return n
}

// isStored: the answer is what is stored, and that is what was said. Others' sessions
// are as they were, and tokens grow.
func (x trial) isStored() {
	x.w.t.Helper()
	switch got := x.say.answer(x.answer); x.say.script + got {
	case "acquire1":
		s, holds := x.after.sessions()[wireNonce(x.say.who)]
		x.want(holds && s.until == x.number(0)+x.number(5), "until %d, answered %d", s.until, x.number(0)+x.number(5))
		x.want(fmt.Sprint(x.number(3), " ", x.number(4)) == s.low+" "+s.high, "tokens %s to %s", s.low, s.high)
	case "acquire2", "acquire3":
		x.waitsAsTold(got == "2")
	case "hold1", "downgrade1":
		x.holdsAsTold()
	case "hold-5":
		x.want(x.say.hashOnly || x.say.many, "the queue was named")
		x.want(x.before.stores(x.after), "something has changed")
	default:
		x.holdsNot(got)
	}
	if x.say.script == "release" && !x.say.anonymous && !x.say.hashOnly {
		x.releases()
	}
	x.othersStay()
	x.tokensGrow()
}

// waitsAsTold: one who was told to wait, or that the lock is busy, knows when to ask again.
func (x trial) waitsAsTold(queued bool) {
	x.w.t.Helper()
	nonce, told := wireNonce(x.say.who), x.number(0)+x.number(4)
	x.want(told == x.after.ends(x.say.mode == "r" && queued), "told %d", told)
	ghost := x.after.longest()
	if _, lone := x.after.alone(); !lone && x.after.excludes() == "" || ghost.client != wireClient(x.say.who) {
		ghost.nonce = ""
	}
	x.want(x.say.reply(x.answer)[6] == ghost.nonce, "the ghost is %v, want %q", x.say.reply(x.answer)[6], ghost.nonce)
	q, waits := x.after.waiters()[nonce]
	x.want(waits == queued, "it waits: %v", waits)
	if !queued {
		_, holds := x.after.sessions()[nonce]
		x.want(!holds, "it holds")
		return
	}
	x.want(q.place == fmt.Sprint(x.number(3)) && q.told == told, "place %s, told %d", q.place, q.told)
	first := x.after.head() == nonce
	x.want((x.number(5) == 1) == first || first && x.say.place == 0, "first: %d, the head is %s", x.number(5), x.after.head())
	if before, waited := x.before.waiters()[nonce]; waited {
		x.want(q.place == before.place, "its place was %s", before.place)
	}
	x.want(q.until >= x.number(0)+x.say.ttl.Milliseconds(), "its lease ends at %d", q.until)
}

// holdsAsTold: what a session states is stored, but where a downgrade has overtaken it.
func (x trial) holdsAsTold() {
	x.w.t.Helper()
	nonce := wireNonce(x.say.who)
	before, session := x.before.sessions()[nonce], x.after.sessions()[nonce]
	now, until := x.number(0), max(before.until, x.number(0)+x.say.ttl.Milliseconds())
	if x.say.still {
		until = before.until
	}
	if now == 0 && before.nonce == "" {
		lone, _ := x.before.alone()
		x.want(x.say.still && lone.nonce == nonce, "it does not hold") // no clock was read
		return
	}
	if before.writes == 0 && x.say.writes > 0 && x.after.excludes() != before.owner {
		before.mode = session.mode // it read what another wrote
		x.want(session == before, "it reads, and was %v", before)
		return
	}
	x.want(session.until == until && session.op == "4", "until %d, op %s, want %d", session.until, session.op, until)
	x.want(session.writes == x.say.writes && session.reads == x.say.reads, "%d writes, %d reads", session.writes, session.reads)
	x.want(now == 0 || now+x.number(1) == until, "until %d, answered %d", until, now+x.number(1))
	x.want(now > 0 || x.say.still, "no time")
	writes := 0
	for _, s := range x.after.sessions() {
		writes += s.writes
	}
	x.want(session.mode == "r" || writes > 0, "nobody writes any more, and others cannot read")
}

// holdsNot: who was told that it neither holds nor waits does not.
func (x trial) holdsNot(got string) {
	x.w.t.Helper()
	nonce := wireNonce(x.say.who)
	_, holds := x.after.sessions()[nonce]
	_, waits := x.after.waiters()[nonce]
	_, waited := x.before.waiters()[nonce]
	x.want(!holds || x.say.script == "force" || strings.HasPrefix(got, "-"), "it holds")
	x.want(!waits || waited && x.say.script != "release" || x.say.hashOnly, "it waits")
}

// releases: it says what it has found, and what a copy may still ask for is refused.
func (x trial) releases() {
	x.w.t.Helper()
	nonce, found := wireNonce(x.say.who), "0"
	lone, _ := x.before.alone()
	if _, held := x.before.sessions()[nonce]; held || lone.nonce == nonce {
		found = "2" // or has held: while its record is there, nobody has held since
	} else if _, waited := x.before.waiters()[nonce]; waited {
		found = "1"
	}
	x.want(x.say.answer(x.answer) == found, "want %s", found)
	x.want(x.say.copies == 0 || x.after.fields["e:"+nonce] != "", "copies of it are not refused")
}

// othersStay: a statement changes no session but that of who makes it.
func (x trial) othersStay() {
	x.w.t.Helper()
	is := x.after.sessions()
	for other, s := range x.before.sessions() {
		if now, ok := is[other]; ok && other != wireNonce(x.say.who) {
			x.want(now.until == s.until && now.op == s.op && now.writes == s.writes && now.reads == s.reads, "another's session %v was %v", now, s)
		} else if !ok && x.say.script != "force" && other != wireNonce(x.say.who) {
			x.want(s.until <= x.after.now, "another's session %v is gone", s)
		}
	}
}

// tokensGrow: who begins to hold has a token after all before, or its owner's.
func (x trial) tokensGrow() {
	x.w.t.Helper()
	was, held := x.before.sessions(), map[string]string{}
	for _, s := range was {
		held[s.owner] = s.low
	}
	for nonce, s := range x.after.sessions() {
		_, holds := was[nonce]
		low, joins := held[s.owner]
		joins = joins && low == s.low && !strings.HasPrefix(s.owner, "~")
		x.want(holds || joins || whole(s.low) > whole(x.before.fields["token"]), "token %s after %s", s.low, x.before.fields["token"])
		x.want(whole(x.after.fields["token"]) >= whole(s.high), "token %s is issued, the counter is at %s", s.high, x.after.fields["token"])
	}
}
