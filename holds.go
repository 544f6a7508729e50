package relock

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/room"
)

// A holdList is a handle's list of holds, each of which is in one at most. Its handle's
// mu guards it, and the links of its holds.
type holdList struct {
	top    atomic.Pointer[Hold] // the newest, or nil: some look without the mutex
	*tally                      // nil until there is more than one, or a call waits for one to end
}

func (p *holdList) newest() *Hold { return p.top.Load() }

// count makes sure that the list has a tally.
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

// all goes from the newest to the oldest.
func (p *holdList) all() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		for h := p.newest(); h != nil; h = h.below {
			if !yield(h) {
				return
			}
		}
	}
}

// eldest goes from the oldest to the newest.
func (p *holdList) eldest() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		for h := p.last(); h != nil; h = h.above {
			if !yield(h) {
				return
			}
		}
	}
}

// last returns the oldest, or nil.
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

// remove reports whether the hold was there.
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

// live returns how many holds live, where that is known without judging each: no
// trust that was seen then can have ended by now, and nothing was lost since.
func (p *holdList) live(now clock.Instant, losses uint64) (n int, known bool) {
	switch {
	case p.newest() == nil:
		return 0, true
	case p.tally == nil || p.losses != losses || now.Reached(p.sure):
		return 0, false
	}
	return p.holds - p.dead, true
}

// noneLost says that the last look at each hold, and at what came since, found none lost.
func (p *holdList) noneLost() bool {
	return p.tally != nil && p.dead == 0 && !p.sure.IsZero()
}

// judged counts anew what each hold says, all of which have just been judged; losses
// is the client's number of them from before that.
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

// whole returns the session that all holds are of, or nil.
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

// rejoin notes that a hold is absent no more: its wait or the hold is over. It needs l.mu.
func (p *holdList) rejoin(h *Hold) {
	if p.tally != nil {
		p.absent = slices.DeleteFunc(p.absent, func(other *Hold) bool { return other == h })
	}
}

// A tally is what a handle knows of its holds without asking each: with thousands on
// one handle, each call that asked all of them would cost their number.
type tally struct {
	oldest *Hold
	holds  int
	dead   int           // of them, those that were found lost
	of     *room.Session // that most of them are of
	others int           // holds of another
	sure   clock.Instant // before that no trust of those that live ends
	losses uint64        // of the client, when all holds were judged
	freed  chan struct{} // closed when one is taken off; nil: nobody waits for it
	// absent are holds whose owner waits on a condition. The handle is free for others, and
	// an Unlock that finds nothing else ends one of these.
	absent []*Hold
}

// add counts a hold that goes above the newest.
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
		// It is trusted for as long as the newest, or longer. The tally knows of that one.
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
