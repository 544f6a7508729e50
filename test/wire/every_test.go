package wire_test

import (
	"fmt"
	"testing"
	"time"
)

// Every statement is made in every state of a lock, by those who hold and wait and by
// newcomers.
// Fails when a script lets a key end before somebody's lease and TokenKeep have, leaves
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
				x.forgotten()
			}
		}
	}
}

// notIdle: nobody waits for a lock that is free, and the head of the queue knows when it is.
func (x trial) notIdle() {
	x.w.t.Helper()
	s, f := x.say.script, x.after
	if s == "hold" || x.say.hashOnly || s == "downgrade" && x.say.answer(x.answer) == "0" {
		return // they let nobody in
	}
	head, waits := f.waiters()[f.head()]
	if !waits {
		return
	}
	until := f.ends(false)
	if until <= f.now || head.mode == "r" && f.excludes() == "" {
		x.errorf("%s waits, though nobody has the lock or others read; stored %v %v", head.nonce, f.fields, f.queue)
	}
	if head.told > until {
		x.errorf("%s has been told that the lock ends at %d, and it does at %d", head.nonce, head.told, until)
	}
}

// forgotten: a statement that changes something forgets those who held together with others
// and are past their deadlines.
func (x trial) forgotten() {
	x.w.t.Helper()
	if x.say.hashOnly || x.before.stores(x.after) {
		return
	}
	for nonce, s := range x.after.together() {
		if s.until <= x.before.now {
			x.errorf("%s is kept, %d ms after its lease; stored %v", nonce, x.after.now-s.until, x.after.fields)
		}
	}
}

// A release found more dead entries than one call clears away: nobody holds, and who waits
// behind them will be served by the next call.
// Fails when somebody who comes then is let in ahead of those.
func TestEveryStatementLeftOverKeepsNewcomersBehind(t *testing.T) {
	w := parleyWith(t)
	crowd := wireState{name: "a crowd died", kind: "plain", passed: true, said: []say{{script: "acquire", who: "a"}}}
	for i := range 300 {
		crowd.said = append(crowd.said, say{script: "acquire", who: fmt.Sprintf("x%03d", i), ttl: 200 * time.Millisecond})
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
	p := w.root.Pipeline()
	after := w.look(p)
	_, err := p.Exec(w.ctx)
	w.must(err)
	if lone, holds := after.found().alone(); !holds || lone.nonce != wireNonce("c") {
		t.Errorf("who waited longer does not hold, but %q", lone.nonce)
	}
}
