package relock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Every statement is made in every state of a lock, by those who hold and wait and by
// newcomers.
// Fails when a script lets a key end before somebody's lease and the keep time have, leaves
// one without an end, or one that lasts for longer than anybody needs; leaves a record of
// somebody who is gone, or none of somebody who is there; leaves a lock idle, or alone with
// its holder, that who waits could have; does not tell those whom it concerns, or tells others;
// and answers what it has not stored.
func TestEveryStatementLeavesALockAsIsPromised(t *testing.T) {
	w := parleyWith(t)
	for _, order := range []struct {
		name string
		step func(int) time.Duration
		then time.Duration
	}{
		{"short after long", inTurns, 2 * wireShort},
		{"long after short", func(int) time.Duration { return wireShort }, wireLong},
	} {
		for _, state := range wireStates() {
			w.reach(state, order.step)
			for _, x := range w.each(order.name, state, order.then, nil) {
				if x.answer.Err() != nil {
					x.errorf("%v", x.answer.Err())
				}
				for _, problem := range x.after.disagreements() {
					x.errorf("%s; stored %v %v", problem, x.after.fields, x.after.queue)
				}
				x.lifetimes()
				x.notIdle()
				x.concerned()
				x.isStored()
			}
		}
	}
}

// notIdle: nobody waits for a lock that is free, and the head of the queue knows when it is.
func (x trial) notIdle() {
	x.w.t.Helper()
	s, f := x.say.script, x.after
	if s == "hold" || s == "renew" || x.say.oneKey || s == "downgrade" && x.say.answer(x.answer) == "0" {
		return // they let nobody in
	}
	head := f.head()
	words := strings.Fields(f.fields["w:"+head])
	if head == "" || len(words) < 9 {
		return
	}
	until := f.ends(false)
	if until <= f.now || words[4] == "r" && f.fields["holder"] == "" {
		x.errorf("%s waits, though nobody has the lock or others read; stored %v %v", head, f.fields, f.queue)
	}
	if words[6] > fmt.Sprint(until) {
		x.errorf("%s has been told that the lock ends at %s, and it does at %d", head, words[6], until)
	}
}

// A release found more dead entries than one call clears away: nobody holds, and who waits
// behind them will be served by the next call.
// Fails when somebody who comes then is let in ahead of those.
func TestEveryStatementLeftOverKeepsNewcomersBehind(t *testing.T) {
	w := parleyWith(t)
	crowd := wireState{name: "a crowd died", kind: "plain", passed: true, said: []say{{script: "acquire", who: "a"}}}
	for i := range 300 {
		crowd.said = append(crowd.said, say{script: "acquire", who: fmt.Sprintf("x%03d", i), ttl: gone})
	}
	crowd.said = append(crowd.said, say{script: "acquire", who: "c"})
	w.reach(crowd, inTurns)
	w.keys = wireFirst
	if reply, err := w.say(w.root, say{script: "release", who: "a"}).Slice(); err != nil || fmt.Sprint(reply[2]) != "1" {
		t.Fatalf("release: %v, %v, want more to do", reply, err)
	}
	s := say{script: "acquire", who: "e", ttl: wireShort}
	if got := s.answer(w.say(w.root, s)); got != "2" {
		t.Errorf("a newcomer is answered %s, want that it waits", got)
	}
	if n, err := w.root.HExists(w.ctx, w.keys.Hash, "o:the owner c").Result(); err != nil || !n {
		t.Errorf("who waited longer holds: %v, %v", n, err)
	}
}
