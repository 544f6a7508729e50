package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Fails when a script's first write is one that Redis refuses when it is out of memory.
func TestEveryStatementWorksWhenRedisIsOutOfMemory(t *testing.T) {
	w := parleyWith(t)
	w.must(w.root.ConfigSet(w.ctx, "maxmemory-policy", "noeviction").Err())
	full := func(p redis.Pipeliner, s say, speak func(say) *redis.Cmd) *redis.Cmd {
		p.ConfigSet(w.ctx, "maxmemory", "1")
		defer p.ConfigSet(w.ctx, "maxmemory", "0")
		return speak(s)
	}
	for _, state := range wireStates() {
		w.reach(state, inTurns)
		roomy, tight := w.each("with memory", state, wireShort, nil), w.each("without memory", state, wireShort, full)
		for i, x := range tight {
			y := roomy[i]
			if got, want := x.say.answer(x.answer), y.say.answer(y.answer); got != want {
				x.errorf("%s, with memory %s", got, want)
			} else if got, want := x.after.names(), y.after.names(); got != want {
				x.errorf("stored %s, with memory %s", got, want)
			}
		}
	}
}

// The first of a client's scripts names the permissions that its user lacks. Here one
// is taken away later.
// Fails when a script leaves a key without a TTL, or has changed anything of a
// holder or a waiter, before it is refused one.
func TestEveryStatementLeavesNoKeyWithoutALifetime(t *testing.T) {
	w := parleyWith(t)
	w.must(w.root.Do(w.ctx, "ACL", "SETUSER", "limited", "on", "nopass", "~*", "&*", "+@all", "-pexpire").Err())
	as := func(p redis.Pipeliner, s say, speak func(say) *redis.Cmd) *redis.Cmd {
		p.Do(w.ctx, "AUTH", "limited", "x")
		defer p.Do(w.ctx, "AUTH", "default", "")
		return speak(s)
	}
	for _, state := range wireStates() {
		w.reach(state, inTurns)
		for _, x := range w.each("without pexpire", state, wireShort, as) {
			if x.after.hashEnds == -1 || x.after.queueEnds == -1 {
				x.errorf("a key without a TTL")
			}
			if x.answer.Err() != nil && !x.before.stores(x.after) && x.say.script != "release" {
				x.errorf("refused half way: %s, before %s", x.after.names(), x.before.names())
			}
		}
	}
}

// Fails when a script changes a key of another type, or its TTL; and when it finds only
// half way that the queue is one, so that somebody has lost a hold or a place.
func TestEveryStatementLeavesKeysOfAnotherTypeAlone(t *testing.T) {
	w := parleyWith(t)
	for _, theirs := range []string{wireTried.Hash, wireTried.Queue} {
		var was, is map[string][2]redis.Cmder
		see := func(p redis.Pipeliner) [2]redis.Cmder {
			return [2]redis.Cmder{p.Dump(w.ctx, theirs), p.Do(w.ctx, "PEXPIRETIME", theirs)}
		}
		replace := func(p redis.Pipeliner, s say, speak func(say) *redis.Cmd) *redis.Cmd {
			p.Del(w.ctx, theirs)
			p.RPush(w.ctx, theirs, "mine")
			p.PExpire(w.ctx, theirs, wireShort)
			was[s.String()] = see(p)
			answer := speak(s)
			is[s.String()] = see(p)
			return answer
		}
		for _, state := range wireStates() {
			w.reach(state, inTurns)
			was, is = map[string][2]redis.Cmder{}, map[string][2]redis.Cmder{}
			for _, x := range w.each(theirs+" is a list", state, wireLong, replace) {
				for i, before := range was[x.say.String()] {
					if after := is[x.say.String()][i]; fmt.Sprint(before) != fmt.Sprint(after) {
						x.errorf("%v, before %v", after, before)
					}
				}
				x.loseNothing(theirs)
			}
		}
	}
}

// loseNothing: what was stored before a statement that failed is there after it.
func (x trial) loseNothing(theirs string) {
	x.w.t.Helper()
	if theirs == wireTried.Hash && x.answer.Err() == nil && !x.say.many { // that says whom it left
		x.errorf("as if the key were relock's")
	}
	if x.answer.Err() == nil || theirs == wireTried.Hash {
		return
	}
	for field := range x.before.fields {
		if _, ok := x.after.fields[field]; !ok {
			x.errorf("%v: %s is gone", x.answer.Err(), field)
		}
	}
}

func inTurns(i int) time.Duration { return []time.Duration{wireLong, wireShort}[i%2] }
