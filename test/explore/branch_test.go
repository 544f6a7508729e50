package explore_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/relock-go/relock/internal/room"
)

// childOf is an owner as relock.WithChildOwner names it.
func childOf(owner string, number byte) string {
	return owner + room.BranchMark + base64.RawURLEncoding.EncodeToString([]byte{number, 0, 0, 0, 0, 0, 0, 0})
}

// family are the owners of a schedule with branches: a flow, branches of it and of these, and a stranger.
var family = []string{
	"owner0", "owner0", "owner0", childOf("owner0", 1), childOf("owner0", 1), childOf("owner0", 2), childOf("owner0", 2),
	childOf(childOf("owner0", 1), 1), childOf(childOf("owner0", 1), 2), childOf(childOf("owner0", 2), 1), "owner1",
}

// related reports whether one of two owners descends from the other.
func related(one, other string) bool { return room.Descends(one, other) || room.Descends(other, one) }

// entersBy is the nearest ancestor of an owner that holds, or "".
func entersBy(owner string, holders map[string]storedGrant) string {
	for _, name := range room.Lineage(owner)[1:] {
		if _, holds := holders[name]; holds {
			return name
		}
	}
	return ""
}

// levels are how many records a script may look for on an owner's account: its own, and of a branch those of its
// ancestors as well, once to see by what it enters.
func levels(owner string) int {
	if n := len(room.Lineage(owner)); n > 1 {
		return n + 1
	}
	return 1
}

// levels are those of the requests of an acquire.
func (f *flight) levels() (n int) {
	for i := range f.requests() {
		identity, _ := f.args[3+2+3+6*i].(string)
		n += levels(identify(identity).owner)
	}
	return n
}

// leftBehind reports whether a branch may have entered by an ancestor's hold that has ended. A call that has ended
// without a hold may have had one that its caller never saw.
func (w *world) leftBehind(h *holding) bool {
	above := func(a *wish) bool { return a.name == h.name && room.Descends(h.owner, a.owner) }
	return slices.ContainsFunc(w.holds, func(x *holding) bool {
		return above(x.wish) && (x.state > 0 || x.fell || x.by.dead || x.hold.Err() != nil)
	}) || slices.ContainsFunc(w.calls, func(a *wish) bool { return above(a) && a.ended && a.err != nil })
}

// grantAt is the record of the grant with that first token, and whose it is: the owner's or an ancestor's.
func grantAt(hash map[string]string, owner string, low int64) (record []string, by string) {
	for _, name := range room.Lineage(owner) {
		if record := strings.Fields(hash["g:"+name]); len(record) >= 5 && number(record[0]) == low {
			return record, name
		}
	}
	return nil, ""
}

// entered are the owners through whose holds an owner entered, nearest first.
func entered(hash map[string]string, owner string, low int64) (via []string) {
	for {
		var of, parent int64
		_, _ = fmt.Sscan(hash["b:"+owner], &of, &parent)
		if of != low || parent <= 0 || parent > int64(len(owner)) {
			return via
		}
		owner = owner[:parent]
		via = append(via, owner)
	}
}

// isLeftBehind reports whether a hold through which the grant entered has ended, or only reads while the grant writes.
func (g storedGrant) isLeftBehind(holders map[string]storedGrant) bool {
	return slices.ContainsFunc(g.via, func(owner string) bool {
		above, holds := holders[owner]
		return !holds || above.low != g.low || g.mode == "w" && above.mode != "w"
	})
}

// A part is what an owner has of a grant that branches have entered.
type part struct{ parent, sessions, writing, below, writers int64 }

// miscountedBranches says where the records of branches differ from the sessions that they count.
func miscountedBranches(hash map[string]string) string {
	parts, want, lows := map[string]part{}, map[string]part{}, map[string]int64{}
	for field, text := range hash {
		if owner, is := strings.CutPrefix(field, "b:"); is {
			var p part
			var low int64
			_, _ = fmt.Sscan(text, &low, &p.parent, &p.sessions, &p.writing, &p.below, &p.writers)
			parts[owner], want[owner], lows[owner] = p, part{parent: p.parent}, low
		}
	}
	for field, text := range hash {
		m := sessionText.FindStringSubmatch(text)
		if !strings.HasPrefix(field, "s:") || m == nil {
			continue
		}
		writes := min(number(m[3]), 1)
		owner := identify(m[6]).owner
		p, is := want[owner]
		if !is || lows[owner] != number(m[1]) {
			continue
		}
		p.sessions, p.writing = p.sessions+1, p.writing+writes
		want[owner] = p
		for above := parts[owner].parent; above > 0; above = parts[owner[:above]].parent {
			p, is := want[owner[:above]]
			if !is || lows[owner[:above]] != number(m[1]) {
				break // its ancestor has gone, and what it began with it
			}
			p.below, p.writers = p.below+1, p.writers+writes
			want[owner[:above]] = p
		}
	}
	for owner, p := range parts {
		if p != want[owner] {
			return fmt.Sprintf("redis counts %+v for %s, its sessions are %+v", p, owner, want[owner])
		}
	}
	return ""
}

// judgeBranches checks that a branch enters past those of its flow only that came later, and that a step that serves
// the queue leaves none waiting that could enter.
func (w *world) judgeBranches(f *flight, name string, before, after stored, now int64) {
	holders, had, has := after.live(now), before.live(now), after.holding(now)
	for nonce, owner := range has {
		by := entersBy(owner, holders)
		if _, held := before.holding(now)[nonce]; held || by == "" {
			continue
		}
		w.census.count("entrances of branches")
		if _, again := had[owner]; again || f.joins(nonce, owner, has) {
			continue // it re-enters
		}
		for _, q := range before.queue {
			_, own := holders[q.owner]
			upgrade := q.mode == "w" && holders[by].mode == "r"
			if place := f.place(nonce); q.nonce == nonce || place > 0 && q.place >= place {
				break
			}
			if q.expiry > now && !own && !upgrade && entersBy(q.owner, holders) == by && slices.Contains(after.waiting(now), q.nonce) {
				w.violate("%s enters %s past %s, which came earlier and waits", nonce, name, q.nonce)
			}
		}
	}
	if f.err != nil || f.script != "release" && f.script != "force" {
		return
	}
	met := map[string]bool{}
	for _, q := range after.queue {
		by := entersBy(q.owner, holders)
		if _, own := holders[q.owner]; q.expiry <= now || by == "" || own || holders[by].by != by && holders[by].by != "" || met[by] {
			continue
		}
		met[by] = true
		inside := false
		for owner := range holders {
			inside = inside || room.Descends(owner, by)
		}
		if upgrade := q.mode == "w" && holders[by].mode == "r"; !inside && !upgrade && f.touches(after) {
			w.violate("%s leaves %s of %s waiting, though nobody has entered what %s holds", f.script, q.nonce, name, by)
		}
	}
}
