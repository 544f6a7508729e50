package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Who has given up a request of which a copy is under way says so. Then every statement is
// made, and then the copy arrives.
// Fails when anything but time makes a script forget a request that has ended.
func TestEveryStatementLeavesEndedRequestsEnded(t *testing.T) {
	const under = 3 * time.Second
	w := parleyWith(t)
	copies := map[string]*redis.Cmd{}
	end := func(p redis.Pipeliner, s say, speak func(say) *redis.Cmd) *redis.Cmd {
		speak(say{script: "release", who: "x", copies: under})
		answer := speak(s)
		copies[s.String()] = speak(say{script: "acquire", who: "x", ttl: wireShort})
		return answer
	}
	for _, state := range wireStates() {
		w.reach(state, inTurns)
		for _, x := range w.each("ended", state, wireShort, end) {
			late := x.after.now > x.before.now+under.Milliseconds()/2 // the machine stood still
			if got := (say{script: "acquire"}).answer(copies[x.say.String()]); got != "-4" && !late {
				x.errorf("the copy is answered %s; stored %v", got, x.after.fields)
			}
		}
	}
}

// Fails when a request that has ended is kept for longer than copies of it count, though
// others are noted or somebody waits.
func TestEndedRequestIsForgottenInTheEnd(t *testing.T) {
	w := parleyWith(t)
	held := wireState{kind: "plain", passed: true, said: []say{
		{script: "acquire", who: "a"},
		{script: "acquire", who: "b"},
		{script: "release", who: "x", copies: gone, ttl: gone},
	}}
	w.reach(held, inTurns)
	forgets := 0
	for _, x := range w.each("ended", held, wireShort, nil) {
		_, kept := x.after.fields["e:"+wireNonce("x")]
		for field := range x.after.fields {
			if !kept && strings.HasPrefix(field, "n:") && x.say.copies == 0 {
				x.errorf("its number is kept: %v", x.after.fields)
			}
		}
		switch x.say.script {
		case "release", "acquire":
			if waits := x.say.echo && x.say.answer(x.answer) == "2"; kept && (waits || x.say.copies > 0) {
				x.errorf("it is kept: %v", x.after.fields)
			}
		}
		if !kept {
			forgets++
		}
	}
	if forgets < 5 {
		t.Errorf("forgotten by %d statements only", forgets)
	}
}
