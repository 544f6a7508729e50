package explore_test

import (
	"slices"

	"github.com/relock-go/relock/internal/room"
)

// loses notes that a room has found a loss.
func (h *hall) loses(m *member, e *room.Effect) {
	h.seen["losses"]++
	h.tell("%s has lost token %d: %v", m.id, e.Hold.Token, e.Of.Why())
	if !h.setup.risky && !e.Hold.Terms.Fixed && !m.closing && !h.ancestorLeft(e.Hold) {
		h.violate("%s has lost a hold without any fault: %v", m.id, e.Of.Why())
	}
}

// took judges a new hold: its token is larger than those of all other writers before.
func (h *hall) took(x *roomHold) {
	h.seen["holds"]++
	if x.joined {
		h.seen["re-entries"]++
	}
	own := slices.ContainsFunc(h.holds, func(o *roomHold) bool {
		return o.Token == x.Token && x.c.want.Owner != "" && room.Root(o.c.want.Owner) == room.Root(x.c.want.Owner) // branches have the token of the hold that they entered
	})
	if !own && x.Token <= h.top {
		h.violate("token %d of %s is not larger than %d before", x.Token, x.c.m.id, h.top)
	}
	if x.write {
		h.top = max(h.top, x.Token)
	}
	h.holds = append(h.holds, x)
}

// trusted says that the holder may rely on its hold, by its own clock alone.
func (x *roomHold) trusted() bool {
	return !x.c.m.dead && !x.Released && !x.Lost && !x.Session.Over && !x.c.m.hall.instant().Reached(x.Until())
}

// judgeGrants looks whether anybody holds in Redis who has left, and was told that
// Redis knows: nobody would ever release that.
func (h *hall) judgeGrants() {
	for _, g := range h.lock.grants {
		for _, s := range g.sessions {
			for _, m := range h.members {
				if s.client != m.id || s.expiry <= h.lock.now || h.copied[s.nonce] {
					continue // a client knows of the copies that it has made itself
				}
				if slices.ContainsFunc(m.released, func(note releasedAcq) bool { return note.ended && note.nonce == s.nonce }) {
					h.violate("%s is granted, which its client has left", s.nonce)
				}
			}
		}
	}
}

// judge looks whether two may rely on what excludes them.
func (h *hall) judge() {
	var all []*roomHold
	for _, x := range h.holds {
		if x.trusted() {
			all = append(all, x)
		}
	}
	for i, x := range all {
		h.judgeEnded(x)
		for _, y := range all[:i] {
			same := x.c.want.Owner != "" && x.c.want.Owner == y.c.want.Owner
			family := related(x.c.want.Owner, y.c.want.Owner) && x.Token == y.Token // within one grant
			if !same && !family && (!x.Read || !y.Read) {
				h.violate("two trusted holds: %s by %s, token %d, and %s by %s, token %d",
					x.c.m.id, x.acq().nonce, x.Token, y.c.m.id, y.acq().nonce, y.Token)
			}
		}
	}
	h.holds = slices.DeleteFunc(h.holds, func(x *roomHold) bool { return x.Released && !x.owes && len(h.holds) > 20 })
}
