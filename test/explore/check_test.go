package explore_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// collect notes calls, releases and downgrades that have ended.
func (w *world) collect() {
	for _, a := range w.calls {
		if !a.ended && closed(a.done) {
			w.returned(a)
		}
	}
	for _, h := range w.holds {
		if h.down != nil {
			select {
			case err := <-h.down:
				h.down = nil
				w.say("p%d: downgrade: %v", h.by.index, err)
				h.read = err == nil || errors.Is(err, relock.ErrUnconfirmed) || h.hold.Err() != nil
				w.census.count("downgrades")
			default:
			}
		}
		if h.state == 1 && closed(h.released) {
			h.state = 2
			w.say("p%d: released (token %d): %v", h.by.index, h.token, h.result)
			if h.result != nil && w.setup.risk == 0 && !strings.Contains(h.what, "without") {
				w.violate("release without any fault: %v", h.result)
			}
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// returned notes what a call came to.
func (w *world) returned(a *wish) {
	a.ended = true
	a.stop()
	if a.err != nil {
		// Which of two timers of one instant comes first is up to the Go scheduler.
		why, _, _ := strings.Cut(a.err.Error(), "could not be asked")
		w.say("p%d: %s: %v", a.by.index, a, why)
		w.census.count("calls without a hold")
		if errors.Is(a.err, errUpset) {
			w.census.count("hooks that did not return")
		}
		if !a.expected(a.err) {
			w.violate("p%d: %s: unexpected error: %v", a.by.index, a, a.err)
		}
		return
	}
	h := &holding{wish: a, token: a.hold.Token(), since: a.at}
	w.say("p%d: %s: holds, token %d, nonce %s", a.by.index, a, h.token, rig.Nonce(a.hold))
	w.census.count("holds")
	if a.first != nil {
		w.violate("p%d: %s: returned a hold that was lost before: %v", a.by.index, a, a.first)
	}
	if a.at > a.began {
		w.census.count("holds after a wait")
	}
	if a.owner != "" && a.hold.Err() == nil {
		for _, x := range w.kept() {
			if x.name == a.name && x.owner == a.owner && x.hold.Err() == nil {
				w.census.count("re-entries")
				break
			}
		}
	}
	if a.hold.Err() == nil {
		w.judgeToken(h)
	}
	w.holds = append(w.holds, h)
}

// judgeToken checks a new hold's token against those before.
func (w *world) judgeToken(h *holding) {
	if w.now() < w.amnesty[h.name] {
		return
	}
	for _, x := range w.holds {
		if x.name != h.name || h.read && !x.wrote() {
			continue
		}
		if same := h.owner != "" && h.owner == x.owner; h.token < x.token || h.token == x.token && !same {
			w.violate("token %d of p%d's %s is not larger than %d of p%d's %s before", h.token, h.by.index, h, x.token, x.by.index, x)
		}
	}
}

// wrote reports whether the hold was exclusive when it was made.
func (h *holding) wrote() bool { return h.rw == nil || !strings.Contains(h.what, "reading") && !h.read }

// check judges who trusts what, now.
func (w *world) check() {
	trusted := map[string][]*holding{}
	for _, h := range w.holds {
		if h.state != 0 || h.by.dead {
			continue
		}
		if err := h.hold.Err(); err != nil {
			if !h.lost {
				h.lost = true
				w.say("p%d has lost its hold, token %d: %v", h.by.index, h.token, err)
				w.census.count("lost holds")
				if h.shares && h.hangs {
					w.census.count("lost holds behind a handle")
				}
				if w.setup.risk == 0 && !strings.Contains(h.what, "without") {
					w.violate("a hold was lost without any fault: %v", err)
				}
			}
			continue
		}
		for _, x := range trusted[h.name] {
			if h.clashes(x) && w.now() >= w.amnesty[h.name] {
				w.violate("two trusted holds of %s: p%d's %s (token %d) and p%d's %s (token %d)",
					h.name, x.by.index, x.wish, x.token, h.by.index, h.wish, h.token)
			}
		}
		trusted[h.name] = append(trusted[h.name], h)
	}
}

func (h *holding) clashes(x *holding) bool {
	if h.owner != "" && h.owner == x.owner {
		return false
	}
	return h.rw == nil || !h.read || !x.read
}

// storeWrite offers a write to the fenced store.
func (w *world) storeWrite(h *holding) {
	s := w.stores[h.name]
	if s == nil {
		s = &store{}
		w.stores[h.name] = s
	}
	owner := h.hold.Owner()
	trusted := h.state == 0 && !h.by.dead && h.hold.Err() == nil
	switch {
	case h.token < s.top:
		w.census.count("stale writes refused")
		if trusted && w.now() >= w.amnesty[h.name] {
			w.violate("the store refuses token %d of a trusted hold: it has seen %d", h.token, s.top)
		}
		return
	case h.token == s.top && owner != s.owner:
		w.violate("two owners write with token %d", h.token)
	}
	w.census.count("writes accepted")
	s.top, s.owner = h.token, owner
}

// look decodes all locks.
func (w *world) look() map[string]stored {
	all := make(map[string]stored, len(w.names))
	m := w.srv.Direct()
	for _, name := range w.names {
		all[name] = readLock(m, name)
	}
	return all
}

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
	writers := 0
	for _, g := range grants {
		if g.mode == "w" {
			writers++
		}
	}
	if writers > 1 || writers == 1 && len(grants) > 1 {
		w.violate("redis has %d holders of %s, %d of them write", len(grants), name, writers)
	}
}

// judgeStep checks one step of a lock's state.
func (w *world) judgeStep(f *flight, before, after stored, now int64) {
	if before.exists && after.exists && after.token < before.token {
		w.violate("the token counter falls from %d to %d", before.token, after.token)
	}
	if after.exists && after.queued != int64(after.places) {
		w.violate("the hash counts %d waiters, the queue has %d", after.queued, after.places)
	}
	for nonce := range after.sessions(func(x storedSession) bool { return x.expiry <= now }) {
		if _, known := before.sessions(func(storedSession) bool { return true })[nonce]; !known {
			w.violate("%s is granted for no time", nonce)
		}
	}
	w.judgeGrants(before, after, now)
	had, has, owners := before.holding(now), after.holding(now), before.live(now)
	old, left := before.waiting(now), after.waiting(now)
	for nonce, owner := range has {
		if _, held := had[nonce]; held {
			continue
		}
		// Who holds re-enters past the queue, also when it came to hold in this very step.
		if _, again := owners[owner]; again || f.joins(nonce, owner, has) {
			continue
		}
		for _, other := range old {
			if other == nonce {
				w.census.count("hand-overs at the server")
				break
			}
			if place := f.place(nonce); place > 0 && before.ticket(other) >= place {
				break // it is back under the ticket that it has, or has from the other
			}
			if _, in := has[other]; !in && slices.Contains(left, other) {
				w.violate("%s is granted past %s, which came earlier and waits", nonce, other)
			}
		}
	}
	for _, nonce := range left {
		if !slices.Contains(old, nonce) && f.place(nonce) > 0 {
			w.census.count("re-insertions under a ticket")
		}
	}
	w.judgeIdle(f, after, now)
}

// judgeGrants checks that a grant that was changed has no session that had ended.
func (w *world) judgeGrants(before, after stored, now int64) {
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

// joins reports whether a nonce's owner got the lock under another nonce, which the
// command does not ask for.
func (f *flight) joins(nonce, owner string, has map[string]string) bool {
	for other, its := range has {
		if its == owner && other != nonce && f.asks(nonce) && !f.asks(other) {
			return true
		}
	}
	return false
}

func (f *flight) asks(nonce string) bool {
	for _, r := range f.requests() {
		if r.nonce == nonce {
			return true
		}
	}
	return false
}

// judgeIdle checks that a step that serves the queue leaves nobody waiting who could hold.
func (w *world) judgeIdle(f *flight, after stored, now int64) {
	if f.err != nil || f.script != "release" && f.script != "force" && f.script != "downgrade" || len(after.queue) == 0 {
		return
	}
	if raw, _ := f.reply.([]any); f.script == "downgrade" && len(raw) > 0 && raw[0] == int64(0) {
		return // it found nothing to downgrade, and served nobody
	}
	head, writing, reading := after.queue[0], false, false
	for _, g := range after.live(now) {
		writing, reading = writing || g.mode == "w", reading || g.mode == "r"
	}
	if head.expiry > now && !writing && (head.mode == "r" || !reading) && f.touches(after) {
		w.violate("%s leaves the lock to nobody while %s waits", f.script, head.nonce)
	}
}

// touches reports whether the command is about the lock.
func (f *flight) touches(s stored) bool {
	hash, _ := f.args[3].(string)
	for _, q := range s.queue {
		for _, name := range f.from.world.names {
			if key.For("relock", name).Hash == hash {
				for _, mine := range readLock(f.from.world.srv.Direct(), name).queue {
					if mine.nonce == q.nonce {
						return true
					}
				}
			}
		}
	}
	return false
}

// requests are those of an acquire: nonce and place.
func (f *flight) requests() (all []struct {
	nonce string
	place int64
},
) {
	if f.script != "acquire" {
		return nil
	}
	const head, each, placeAt = 3 + 2 + 3, 6, 5
	for i := head; i+each <= len(f.args); i += each {
		identity, _ := f.args[i].(string)
		nonce, _, _ := strings.Cut(identity, " ")
		place, _ := f.args[i+placeAt].(int64)
		all = append(all, struct {
			nonce string
			place int64
		}{nonce, place})
	}
	return all
}

func (f *flight) place(nonce string) int64 {
	for _, r := range f.requests() {
		if r.nonce == nonce {
			return r.place
		}
	}
	return -1
}

// seeReply counts the states that replies show.
func (w *world) seeReply(f *flight) {
	raw, many := f.reply.([]any)
	if !many {
		raw = []any{f.reply}
	}
	w.census.count(f.script)
	if f.script != "acquire" || f.err != nil {
		return
	}
	requests := f.requests()
	answers, err := rig.ReadAcquire(raw, len(requests))
	if err != nil {
		w.violate("a reply of acquire cannot be read: %v", err)
	}
	for i, a := range answers {
		if a.Code == 1 && requests[i].place > 0 && !f.orphan {
			w.census.count("hand-overs by poll")
		}
		if a.Ghost != "" && !rig.Knows(f.from.client, a.Ghost) {
			w.census.count("ghosts named")
		}
		switch a.Code {
		case -4:
			w.census.count("ended nonces refused")
		case -2:
			w.census.count("late requests refused")
		case 3:
			w.census.count("busy answers")
		case -6:
			w.census.count("upgrades refused")
		}
	}
}

// sees counts what messages come to.
func (w *world) sees(e *ear, text string) {
	w.say("p%d hears %s", e.of.index, text)
	verb, rest, _ := strings.Cut(text, " ")
	nonce, _, _ := strings.Cut(rest, " ")
	w.census.count("message: " + verb)
	if verb == "grant" && !rig.Knows(e.of.client, nonce) {
		w.census.count("grants for nobody")
	}
}

// sayState traces what a step has changed.
func (w *world) sayState(before, after stored, now int64) {
	text := func(s stored) string {
		var b strings.Builder
		var parts []string
		for owner, g := range s.live(now) {
			part := " " + g.mode + "(" + owner
			for _, x := range g.sessions {
				part += " " + x.nonce
			}
			parts = append(parts, w.plain(part+")", true))
		}
		slices.Sort(parts)
		b.WriteString(strings.Join(parts, ""))
		b.WriteString("; waiting:")
		for _, q := range s.queue {
			b.WriteString(" " + q.mode + " " + q.nonce)
		}
		return b.String()
	}
	if a, b := text(before), text(after); a != b {
		w.say("    held by%s", b)
	}
}
