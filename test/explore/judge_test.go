package explore_test

import (
	"reflect"
	"slices"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/room"
)

// judge checks what one command has made of the locks.
func (w *world) judge(f *flight, before map[string]stored) {
	m, now := w.srv.Direct(), time.Now().UnixMilli()
	w.say("execute %s: %v %v", f.label, f.reply, errText(f.err))
	w.seeReply(f)
	all := w.look()
	for _, name := range w.names {
		after := all[name]
		keys := key.For("relock", name)
		for _, k := range []string{keys.Hash, keys.Queue} {
			if m.Exists(k) && m.TTL(k) <= 0 {
				w.violate("%s has no TTL after %s", k, f.label)
			}
		}
		w.judgeHolders(name, after.live(now))
		w.judgeCount(name, after)
		if after.wrong != "" {
			w.violate("%s: %s", name, after.wrong)
		}
		w.judgeBranches(f, name, before[name], after, now)
		w.judgeStep(f, before[name], after, now)
		if w.trace != nil && f.err == nil {
			w.sayState(before[name], after, now)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// judgeHolders checks that Redis itself grants the lock to nobody beside a writer.
func (w *world) judgeHolders(name string, grants map[string]storedGrant) {
	for owner, g := range grants {
		for other, o := range grants {
			if g.mode == "w" && owner != other && (!related(owner, other) || g.low != o.low) {
				w.violate("redis has %s, who writes, and %s as holders of %s", owner, other, name)
			}
		}
	}
}

// judgeStep checks one step of a lock's state.
func (w *world) judgeStep(f *flight, before, after stored, now int64) {
	if before.exists && after.exists && after.token < before.token {
		w.violate("the token counter falls from %d to %d", before.token, after.token)
	}
	for nonce := range after.sessions(func(x storedSession) bool { return x.expiry <= now }) {
		if _, known := before.sessions(func(storedSession) bool { return true })[nonce]; !known {
			w.violate("%s is granted for no time", nonce)
		}
	}
	w.judgeGrants(f, before, after, now)
	w.judgeOrder(f, before, after, now)
	w.judgeIdle(f, after, now)
}

// judgeCount checks that the hash counts who is in the queue. Those whose queue has expired
// are counted until a release finds nobody there; back in it they may be counted twice.
func (w *world) judgeCount(name string, after stored) {
	exact := !after.exists || after.queued == int64(after.places)
	if after.over > 0 && !w.expired[name] {
		w.census.count("queues that expired before their hash")
	}
	w.expired[name] = after.over > 0 || w.expired[name] && !exact
	if !exact && (!w.expired[name] || after.queued < int64(after.places)) {
		w.violate("the hash counts %d waiters, the queue has %d", after.queued, after.places)
	}
}

// judgeOrder checks that nobody is granted the lock past one who waits for longer.
func (w *world) judgeOrder(f *flight, before, after stored, now int64) {
	had, has, owners := before.holding(now), after.holding(now), before.live(now)
	old, left := before.waiting(now), after.waiting(now)
	for nonce, owner := range has {
		if _, held := had[nonce]; held {
			continue
		}
		// Who holds re-enters past the queue, also when it came to hold in this very step.
		if _, again := owners[owner]; again || f.joins(nonce, owner, has) || entersBy(owner, after.live(now)) != "" {
			continue
		}
		for _, other := range old {
			if other == nonce {
				w.census.count("hand-overs at the server")
				break
			}
			if place := f.place(nonce); place > 0 && before.place(other) >= place {
				break // it is back under the place that it has, or has from the other
			}
			if _, in := has[other]; !in && slices.Contains(left, other) {
				w.violate("%s is granted past %s, which came earlier and waits", nonce, other)
			}
		}
	}
	for _, nonce := range left {
		if !slices.Contains(old, nonce) && f.place(nonce) > 0 {
			w.census.count("re-insertions under a place")
		}
	}
}

// judgeGrants checks that a grant that was changed has no session that had ended. A session
// that holds alone is told other counts without a look at the clock: they may be counts of
// what has ended, whose lease that does not lengthen.
func (w *world) judgeGrants(f *flight, before, after stored, now int64) {
	if f.states() {
		return
	}
	for owner, g := range after.grants {
		if reflect.DeepEqual(g, before.grants[owner]) {
			continue
		}
		for _, x := range g.sessions {
			if x.expiry <= now {
				w.violate("the grant of %s is kept with session %s, which has ended", owner, x.nonce)
			}
		}
	}
}

// judgeIdle checks that a step that serves the queue leaves nobody waiting who could hold.
func (w *world) judgeIdle(f *flight, after stored, now int64) {
	if f.err != nil || f.script != "release" && f.script != "force" && f.script != "downgrade" || len(after.queue) == 0 {
		return
	}
	if raw, _ := f.reply.([]any); f.script == "downgrade" && len(raw) > 1 && raw[1] == int64(0) {
		return // it found nothing to downgrade, and served nobody
	}
	head, writing, reading, holders := after.queue[0], false, false, after.live(now)
	for owner, g := range holders {
		if g.isLeftBehind(holders) && room.Root(owner) == room.Root(head.owner) {
			return // it is in the way of its flow until its client has heard of that
		}
		writing, reading = writing || g.mode == "w", reading || g.mode == "r"
	}
	if head.expiry > now && !writing && (head.mode == "r" || !reading) && f.touches(after) {
		w.violate("%s leaves the lock to nobody while %s waits", f.script, head.nonce)
	}
}
