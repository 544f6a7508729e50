package explore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/trust"
)

// familyOfRooms are the owners of a family, each once.
var familyOfRooms = slices.Compact(slices.Clone(family))

// handlesOfRooms is how many handles a client has: four for all, and two for each owner of a family.
const handlesOfRooms = 4 + 2*7

var errEnded = errors.New("its ancestor's hold has ended")

// TestABranchThatHearsOfItsGrantTooLateSaysThatItLeaves: its client stands still while it is granted the lock and its
// ancestor's hold ends. Redis keeps what has ended in the way of others until the client says that it knows. The
// exploration found by this seed that a branch which had not held yet never said so.
func TestABranchThatHearsOfItsGrantTooLateSaysThatItLeaves(t *testing.T) {
	if h := exploreRooms(11003, 0, nil); h.wrong != "" {
		showRooms(t, 11003, h.setup.steps)
	}
}

// TestRoomsMissRulesOfBranches takes rules out of the model of the scripts, one at a time.
func TestRoomsMissRulesOfBranches(t *testing.T) {
	for rule, at := range map[string]found{
		"branches of one flow exclude each other":                       {21, 20_000},
		"a branch has nothing when the hold that it entered has ended":  {17_862, 20_000},
		"what an ended branch had is in the way until its client knows": {17, 20_000},
	} {
		t.Run(strings.ReplaceAll(rule, " ", "_"), func(t *testing.T) {
			at.by(t, func(number uint64) string {
				h := newHall(4*number+3, 0) // of a family
				h.lock.lacks = rule
				return h.explore().wrong
			})
		})
	}
}

// drawOwner has a call be made by a flow or one of its branches.
func (h *hall) drawOwner(w *room.Want) {
	if !h.setup.family {
		return
	}
	if n := h.dice.IntN(len(family) + 3); n < len(family) {
		w.Owner = family[n]
	}
}

// noteEnded notes who has nothing any more, because the hold through which it entered has ended.
func (h *hall) noteEnded() {
	for _, s := range h.lock.sessions() {
		if !h.lock.hasEnded(s.grant, s.writes > 0) {
			delete(h.over, s.nonce)
		} else if _, noted := h.over[s.nonce]; !noted {
			h.seen["branches that outlive a hold of their ancestor"]++
			h.over[s.nonce] = h.now
		}
	}
	if slices.ContainsFunc(h.lock.sessions(), func(s owned) bool { return len(s.grant.via) > 0 }) {
		h.seen["scripts that find a branch inside"]++
	}
}

// judgeEnded looks whether a branch relies on a hold for longer than it may after its ancestor's has ended: without any
// fault until its next renewal, and else until its lease ends. The message of the end may overtake the answer by which
// the branch holds, and a fixed lease has no renewal.
func (h *hall) judgeEnded(x *roomHold) {
	since, over := h.over[x.acq().nonce]
	most := x.Session.LongestLease()
	if !h.setup.risky && !x.Terms.Fixed {
		most = trust.Pulse(most) + 50*time.Millisecond
	}
	if over && h.now-since > most {
		h.violate("%s has not heard since %v that its ancestor's hold has ended", x.acq().nonce, since)
	}
}

// ancestorLeft reports whether a hold may be lost because one of an ancestor has ended, in whatever client. A call that
// has left may have had one that nobody saw.
func (h *hall) ancestorLeft(lost *room.Hold) bool {
	x := lost.Of.(*roomHold)
	for _, m := range h.members {
		if slices.ContainsFunc(m.calls, func(c *roomCall) bool { return c.gone && room.Descends(x.c.want.Owner, c.want.Owner) }) {
			return true
		}
	}
	return slices.ContainsFunc(h.holds, func(o *roomHold) bool {
		return room.Descends(x.c.want.Owner, o.c.want.Owner) && o.Token == x.Token && (o.Released || o.Lost || o.Terms.Fixed)
	})
}
