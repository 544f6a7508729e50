package relock

import (
	"iter"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// A pile is a handle's list of holds, each of which is in one at most. Its handle's
// mu guards it, and the links of its holds.
type pile struct {
	newest *Hold
	*tally // nil until there is more than one, or a call waits for one to end
}

// A tally is what a handle knows of its holds without asking each: with thousands on
// one handle, each call that asked all of them would cost their number.
type tally struct {
	oldest *Hold
	holds  int
	dead   int           // of them, those that were found lost
	of     *session      // that most of them are of
	others int           // holds of another
	sure   clock.Instant // before that no trust of those that live ends
	losses uint64        // of the client, when all holds were judged
	freed  chan struct{} // closed when one is taken off; nil: nobody waits for it
}

// count makes sure that the pile has a tally.
func (p *pile) count() *tally {
	if p.tally != nil {
		return p.tally
	}
	p.tally = &tally{oldest: p.newest}
	if p.newest != nil {
		p.holds, p.of = 1, p.newest.session
	}
	return p.tally
}

// all goes from the newest to the oldest.
func (p *pile) all() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		for h := p.newest; h != nil; h = h.below {
			if !yield(h) {
				return
			}
		}
	}
}

// last returns the oldest, or nil.
func (p *pile) last() *Hold {
	if p.tally == nil {
		return p.newest
	}
	return p.oldest
}

func (p *pile) add(h *Hold) {
	if p.newest != nil {
		p.count()
	}
	if p.tally != nil {
		p.tally.add(h, p.newest)
	}
	if p.newest != nil {
		p.newest.above = h
	}
	h.below, p.newest = p.newest, h
	h.in.Store(p)
}

// add counts a hold that goes above the newest.
func (t *tally) add(h, newest *Hold) {
	if newest == nil {
		t.oldest, t.of, t.others = h, h.session, 0
	}
	t.holds++
	if h.session != t.of {
		t.others++
	}
	switch {
	case newest != nil && newest.session == h.session && !newest.dead:
		// Its trust is one that the tally knows of, and has only grown since.
	case newest == nil:
		t.sure = clock.Instant{}
	default:
		t.sure = clock.Min(t.sure, h.trusted())
	}
}

// remove reports whether the hold was there.
func (p *pile) remove(h *Hold) bool {
	if h.in.Load() != p {
		return false
	}
	h.in.Store(nil)
	if h.above != nil {
		h.above.below = h.below
	} else {
		p.newest = h.below
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

func (t *tally) remove(h *Hold) {
	t.holds--
	if h == t.oldest {
		t.oldest = h.above
	}
	if h.session != t.of {
		t.others--
	}
	if h.dead {
		t.dead--
	}
}

// live returns how many holds live, where that is known without judging each: no
// trust that was seen then can have ended by now, and nothing was lost since.
func (p *pile) live(now clock.Instant, losses uint64) (n int, known bool) {
	switch {
	case p.newest == nil:
		return 0, true
	case p.tally == nil || p.losses != losses || now.Reached(p.sure):
		return 0, false
	}
	return p.holds - p.dead, true
}

// noneLost says that the last look at each hold, and at what came since, found none lost.
func (p *pile) noneLost() bool {
	return p.tally != nil && p.dead == 0 && !p.sure.IsZero()
}

// judged counts anew what each hold says, all of which have just been judged; losses
// is the client's number of them from before that.
func (p *pile) judged(now clock.Instant, losses uint64) {
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

// session returns the one that all holds are of, or nil.
func (p *pile) session() *session {
	switch {
	case p.newest == nil:
		return nil
	case p.tally == nil:
		return p.newest.session
	case p.others > 0:
		return nil
	}
	return p.of
}

// trusted returns until when the hold is trusted; zero: it is lost, or released.
func (h *Hold) trusted() clock.Instant {
	h.session.room.mu.Lock()
	defer h.session.room.mu.Unlock()
	if h.state() != nil {
		return clock.Instant{}
	}
	return h.session.trust
}
