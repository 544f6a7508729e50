package lua_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// usualCases are where a script answers before it has defined what the general case
// needs, and what makes it go on.
var usualCases = []struct{ script, old, new string }{
	{"acquire", "if not (fields.err or fields[1] or", "if false and not (fields.err or fields[1] or"},
	{"acquire", "if queued and fields[1] and", "if false and fields[1] and"},
	{"hold", "local left, waiting = state_alone(1,", "local left, waiting = -5 or state_alone(1,"},
	{"release", "if alone and not fields[2] then", "if false then"},
	{"release", "local queued = alone and KEYS[2] and", "local queued = false and"},
}

func generalBench(t *testing.T) *bench {
	b := newBench(t)
	for _, c := range usualCases {
		source := strings.Replace(b.sources[c.script], c.old, c.new, 1)
		if source == b.sources[c.script] {
			t.Fatalf("%s has no usual case any more: %s", c.script, c.old)
		}
		b.sources[c.script] = source
	}
	return b
}

// A step is what one of the parties says to the lock.
type step struct {
	script string
	keys   []string
	args   []any
}

func (s step) String() string { return fmt.Sprint(s.script, " ", s.keys, " ", s.args) }

// draw makes a step, mostly of one kind of lock and often of who holds it alone. c2 does
// not hear, s.3 hears on another channel.
func draw(rng *rand.Rand, now time.Time, kind, holder string) step {
	who := rng.IntN(8)
	if nonce, _, held := strings.Cut(holder, " "); held && rng.IntN(3) == 0 {
		who = int(nonce[len(nonce)-1] - '0')
	}
	p := party{fmt.Sprintf("n%031d", who), []string{"c0", "c0", "c0", "c1", "c1", "c1", "c2", "s.3"}[who], fmt.Sprint("~owner ", who), ""}
	if who%4 == 1 {
		p.owner = fmt.Sprint("owner ", who/4) // as another may ask too
	} else if who == 2 {
		p.owner = "owner 1"
	}
	if rng.IntN(9) == 0 {
		kind = []string{"plain", "fair", "rw"}[rng.IntN(3)]
	}
	if kind == "semaphore" {
		p.permits = fmt.Sprintf("%d/%d ", 1+who%3, 3+who%2)
	}
	reads := kind == "rw" && rng.IntN(2) == 0 || kind == "semaphore"
	keys := []string{"h", "q"}[:2-rng.IntN(8)/7]
	act := rng.IntN(5)
	if act > 1 && rng.IntN(6) == 0 {
		p.owner = "another"
	}
	switch act {
	case 0, 1:
		return step{"acquire", keys, p.asks(rng, now, kind, reads)}
	case 2:
		return step{"hold", []string{"h", "q"}, p.states(rng.IntN(2)*rng.IntN(900), 1+rng.IntN(30), 1-min(rng.IntN(9), 2)%2+rng.IntN(3), rng.IntN(2))}
	}
	late := int64(0)
	if rng.IntN(4) == 0 {
		late = now.UnixMilli() + 300
	}
	return step{"release", keys, p.leaves(late)}
}

// answer says what a reply means, whichever of its forms it has.
func (s step) answer(reply []any) string {
	switch {
	case s.script == "acquire" && len(reply) < 3:
		token, block, ttl := whole(fmt.Sprint(reply[0])), whole(fmt.Sprint(s.args[6])), strings.Fields(s.args[5].(string))[3]
		if len(reply) == 2 {
			block = whole(fmt.Sprint(reply[1]))
		}
		return fmt.Sprint([]any{token / 1000, 0, 1, token - block + 1, token, ttl, ""})
	case s.script == "release" && reply[0] == int64(2):
		return fmt.Sprint(reply[0], len(reply) == 3 && reply[2] != int64(0))
	case s.script == "hold" && s.args[0] == 0:
		return fmt.Sprint("held: ", reply[len(reply)-1] != int64(0))
	}
	return fmt.Sprint(reply)
}

// code is the number by which an answer is told.
func (s step) code(reply []any) string {
	switch {
	case s.script == "acquire" && len(reply) < 3:
		return "acquire free"
	case s.script == "acquire":
		return fmt.Sprint("acquire ", reply[2])
	case s.script == "hold":
		return fmt.Sprint("hold ", reply[len(reply)-1] != int64(0))
	}
	return fmt.Sprint("release ", reply[0])
}

// ended says that a lock's lone session is past its deadline.
func ended(stored map[string]string, now int64) bool {
	return stored["holder"] != "" && whole(stored["until"]) <= now
}

// both makes a step on two servers. Fails when they answer, tell or store otherwise, or
// keys of the first end too early or too late.
func both(t *testing.T, usual, general *bench, s step, now int64) (reply []any) {
	t.Helper()
	clockless := s.script == "hold" && s.args[0] == 0 && ended(usual.stored("h", "q", now), now)
	a, b := usual.run(t, s.script, s.keys, s.args...), general.run(t, s.script, s.keys, s.args...)
	if s.answer(a) != s.answer(b) && !clockless {
		t.Fatalf("%v: %v in the usual case, %v in the general", s, a, b)
	}
	if x, y := usual.told(t), general.told(t); x != y {
		t.Fatalf("%v told %q in the usual case, %q in the general", s, x, y)
	}
	if x, y := usual.stored("h", "q", now), general.stored("h", "q", now); !maps.Equal(x, y) {
		t.Fatalf("%v answered %v, and left\n%v in the usual case,\n%v in the general", s, a, x, y)
	}
	if lacks := usual.lacks("h", "q", now); lacks != "" {
		t.Fatalf("%v: %s", s, lacks)
	}
	return a
}

// TestTheUsualCaseAnswersAsTheGeneralCaseDoes sends the same requests to two
// servers, one of which has scripts without the usual case. Only a statement that
// leaves a lease as it is reads no clock in the usual case: it is told that a session
// whose lease has ended is held, while its record is there.
func TestTheUsualCaseAnswersAsTheGeneralCaseDoes(t *testing.T) {
	usual, general := newBench(t), generalBench(t)
	usual.listen(t, "inbox:c0", "inbox:c1")
	general.listen(t, "inbox:c0", "inbox:c1")
	rng := rand.New(rand.NewPCG(1, 2))
	now := time.UnixMicro(1_800_000_000_000_340)
	seen := map[string]int{}
	for n := range 5000 {
		now = now.Add(time.Duration(rng.IntN([]int{8, 400_000}[rng.IntN(4)/2])) * time.Microsecond)
		if rng.IntN(200) == 0 {
			now = now.Add(-time.Second) // as a server's clock may
		}
		usual.SetTime(now)
		general.SetTime(now)
		s := draw(rng, now, []string{"plain", "rw", "semaphore"}[n/500%3], usual.HGet("h", "holder"))
		seen[s.code(both(t, usual, general, s, now.UnixMilli()))]++
		if strings.Contains(usual.last, "grant ") && s.script == "release" {
			seen["handed on"]++
		}
	}
	for _, answer := range []string{
		"acquire free", "acquire 1", "acquire 2", "acquire 3", "hold true", "hold false", "release 2", "release 1", "release 0", "handed on",
	} {
		if seen[answer] < 10 {
			t.Errorf("%s was answered %d times: too few to say anything (%v)", answer, seen[answer], seen)
		}
	}
	t.Log(seen)
}
