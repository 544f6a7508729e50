package relock

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/room"
)

// A holdList is a handle's list of holds. A hold is in at most one list. The handle's mu guards the list and
// the links of its holds.
type holdList struct {
	top    atomic.Pointer[Hold] // the newest, or nil; some callers read it without the mutex
	*tally                      // nil until there is more than one hold, or until a call waits for one to end
}

func (p *holdList) newest() *Hold { return p.top.Load() }

// count returns the tally, and makes it if needed.
func (p *holdList) count() *tally {
	if p.tally != nil {
		return p.tally
	}
	newest := p.newest()
	p.tally = &tally{oldest: newest}
	if newest != nil {
		p.holds, p.of = 1, newest.hold.Session
	}
	return p.tally
}

// all iterates from the newest to the oldest.
func (p *holdList) all() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		for h := p.newest(); h != nil; h = h.below {
			if !yield(h) {
				return
			}
		}
	}
}

// eldest iterates from the oldest to the newest.
func (p *holdList) eldest() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		for h := p.last(); h != nil; h = h.above {
			if !yield(h) {
				return
			}
		}
	}
}

// last returns the oldest hold, or nil.
func (p *holdList) last() *Hold {
	if p.tally == nil {
		return p.newest()
	}
	return p.oldest
}

func (p *holdList) add(h *Hold) {
	newest := p.newest()
	if newest != nil {
		p.count()
		newest.above = h
	}
	if p.tally != nil {
		p.tally.add(h, newest)
	}
	h.below, h.listed = newest, true
	p.top.Store(h)
	h.in.Store(p)
}

// remove reports whether the hold was in the list.
func (p *holdList) remove(h *Hold) bool {
	if h.in.Load() != p {
		return false
	}
	h.in.Store(nil)
	if h.above != nil {
		h.above.below = h.below
	} else {
		p.top.Store(h.below)
	}
	if h.below != nil {
		h.below.above = h.above
	}
	if p.tally != nil {
		p.tally.remove(h)
	}
	h.above, h.below, h.dead = nil, nil, false
	return true
}

// live returns the number of live holds if that is known without judging each one: nothing was lost since the
// last judgement, and no trust seen then can have ended.
func (p *holdList) live(now clock.Instant, losses uint64) (n int, known bool) {
	switch {
	case p.newest() == nil:
		return 0, true
	case p.tally == nil || p.losses != losses || now.Reached(p.sure):
		return 0, false
	}
	return p.holds - p.dead, true
}

// noneLost says that the last judgement, and all holds added since, were live.
func (p *holdList) noneLost() bool {
	return p.tally != nil && p.dead == 0 && !p.sure.IsZero()
}

// judged counts the holds again after each one was judged. losses is the client's number of losses from before that.
func (p *holdList) judged(now clock.Instant, losses uint64) {
	t := p.count()
	t.dead, t.losses, t.sure = 0, losses, now.Add(time.Hour)
	for h := range p.all() {
		trust := h.trusted()
		if h.dead = trust.IsZero(); h.dead {
			t.dead++
		} else {
			t.sure = clock.Min(t.sure, trust)
		}
	}
}

// whole returns the session that all holds belong to, or nil if there are several or none.
func (p *holdList) whole() *room.Session {
	switch {
	case p.newest() == nil:
		return nil
	case p.tally == nil:
		return p.newest().hold.Session
	case p.others > 0:
		return nil
	}
	return p.of
}

// rejoin removes the hold from the absent ones: its wait, or the hold itself, has ended. It needs the handle's mu.
func (p *holdList) rejoin(h *Hold) {
	if p.tally != nil {
		p.absent = slices.DeleteFunc(p.absent, func(other *Hold) bool { return other == h })
	}
}

// A tally summarises the holds of a handle. With thousands of holds on one handle, a call must not judge each of them.
type tally struct {
	oldest *Hold
	holds  int
	dead   int           // of them, those that were found lost
	of     *room.Session // the session that most of them belong to
	others int           // holds of other sessions
	sure   clock.Instant // before this instant no live hold's trust ends
	losses uint64        // the client's number of losses when all holds were last judged
	freed  chan struct{} // closed when a hold is removed; nil if nobody waits for that
	// absent are holds whose owner waits on a condition. They do not occupy the handle. An Unlock that finds
	// no other hold ends one of them.
	absent []*Hold
}

// add counts a hold that is added above the newest.
func (t *tally) add(h, newest *Hold) {
	if newest == nil {
		t.oldest, t.of, t.others = h, h.hold.Session, 0
	}
	t.holds++
	if h.hold.Session != t.of {
		t.others++
	}
	switch {
	case newest != nil && newest.hold.Session == h.hold.Session && newest.hold.Terms == h.hold.Terms && !newest.dead:
		// The hold is trusted at least as long as the newest one, which sure accounts for.
	case newest == nil:
		t.sure = clock.Instant{}
	default:
		t.sure = clock.Min(t.sure, h.trusted())
	}
}

func (t *tally) remove(h *Hold) {
	t.holds--
	if h == t.oldest {
		t.oldest = h.above
	}
	if h.hold.Session != t.of {
		t.others--
	}
	if h.dead {
		t.dead--
	}
}
