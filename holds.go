package relock

import (
	"fmt"
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

// trusted returns until when the hold is trusted; zero: it is lost, or released.
func (h *Hold) trusted() clock.Instant {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.state() != nil {
		return clock.Instant{}
	}
	return h.hold.Until()
}

// errRegranted is why a hold is lost whose handle has been granted the lock again.
var errRegranted = fmt.Errorf("%w: it has granted the lock again, to another call of the same handle", room.ErrRemoved)

// rival returns a live hold of another grant on the same handle, or nil. An exclusive lock has
// one grant at a time, so one of the two is over, and its renewal has yet to say so. It needs l.mu.
func (l *Lock) rival(h *Hold) *Hold {
	if l.read || l.holds.whole() == h.hold.Session {
		return nil
	}
	token, live := h.grant()
	if !live {
		return nil
	}
	for other := range l.holds.all() {
		if other.hold.Session == h.hold.Session {
			continue
		}
		if grant, live := other.grant(); live && grant != token {
			return other
		}
	}
	return nil
}

// grant returns the token of the hold, without the owner's digits, and whether the hold is live.
func (h *Hold) grant() (token int64, live bool) {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return h.hold.Token, h.state() == nil
}

// outdo has the older one of two grants be lost. Redis is told to release it: if the server's
// clock has stepped back, the older grant is the one that Redis has.
func (h *Hold) outdo(rival *Hold) {
	older := rival
	mine, _ := h.grant()
	if theirs, _ := rival.grant(); theirs > mine {
		older = h
	}
	k := older.keeper()
	at := k.begin()
	older.hold.Session.LoseHeld(errRegranted, &at)
	k.end(&at)
}

// occupied returns a channel to wait on if a lost hold of another owner is in the way of h, or
// ErrLost if the owner's own is. h is nil if the call has no hold yet; unlock says that Unlock
// is to end the hold. occupied needs l.mu.
func (l *Lock) occupied(owner string, h *Hold, unlock bool) (freed <-chan struct{}, err error) {
	if alike := l.alike(unlock); l.read {
		if alike == nil {
			return nil, nil
		}
		if named := alike.acquisition().Named(); named != (owner != "") || named && alike.acquisition().owner() != owner {
			return nil, fmt.Errorf("%w: the holds of one handle that Unlock may end belong to one named owner, or all to none, where several hold at once; use a handle for each owner", ErrOwnerMismatch)
		}
		return nil, nil // any of its unlocks will do
	}
	// The last look may be older than a loss, so only a nested hold relies on it.
	if l.holds.noneLost() && (h == nil || l.holds.whole() == h.hold.Session) {
		return nil, nil
	}
	for other := range l.holds.all() {
		lost := other.peek()
		if other == h || lost == nil {
			continue
		}
		if owner != "" && other.acquisition().owner() == owner {
			return nil, fmt.Errorf("%w; unlock that hold first", lost)
		}
		t := l.holds.count()
		if t.freed == nil {
			t.freed = make(chan struct{})
		}
		return t.freed, nil
	}
	return nil, nil
}

// detach takes a hold off the handle.
func (l *Lock) detach(h *Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(h)
	l.holds.rejoin(h)
}

// remove reports whether the hold was there. It needs l.mu.
func (l *Lock) remove(h *Hold) bool {
	found := l.holds.remove(h)
	if t := l.holds.tally; found && t != nil && t.freed != nil {
		close(t.freed)
		t.freed = nil
	}
	return found
}

// part takes a hold off the handle whose owner is about to wait on a condition.
func (l *Lock) part(h *Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remove(h) {
		t := l.holds.count()
		t.absent = append(t.absent, h)
	}
}

// rejoin notes that a hold is absent no more: its wait or the hold is over. It needs l.mu.
func (p *holdList) rejoin(h *Hold) {
	if p.tally != nil {
		p.absent = slices.DeleteFunc(p.absent, func(other *Hold) bool { return other == h })
	}
}

// nextAbsent returns the absent hold that an Unlock is for, or nil: the newest, and one that
// its caller has to Release only where there is no other. It needs l.mu.
func (l *Lock) nextAbsent() (found *Hold) {
	if l.holds.tally == nil {
		return nil
	}
	for _, h := range l.holds.absent {
		if found == nil || h.unlock || !found.unlock {
			found = h
		}
	}
	return found
}

// next returns the hold that an Unlock ends, or nil: a lost one first, else the newest. Holds of
// Acquire and Do come last: after a loss of several, an Unlock must not take the hold that Do is
// about to end.
//
// Where several grants hold at once, as of readers, next returns the oldest hold instead. A loss
// of data takes the older grants first and is not known here at once. So no Unlock by a caller
// whose hold is lost ends the hold of a caller who came after the loss. It needs l.mu.
func (l *Lock) next() (found *Hold) {
	if l.holds.tally == nil {
		return l.holds.newest()
	}
	best, most := -1, 3
	if l.holds.noneLost() {
		most = 2
	}
	order := l.holds.all()
	if l.read && l.holds.whole() == nil {
		order = l.holds.eldest()
	}
	for h := range order {
		rank := 0
		if h.peek() != nil {
			rank = 1
		}
		if h.unlock {
			rank += 2
		}
		if rank > best {
			best, found = rank, h
		}
		if best >= most {
			break
		}
	}
	return found
}

// judge judges the holds of the handle by the clock, and returns how many are live.
// Where an earlier look at each says that none can be lost, it asks none: each trust
// is looked at about once a lease. It takes l.mu only to list them: a loss found here
// calls hooks.
func (l *Lock) judge() (live int) {
	if l.unmade() {
		return 0
	}
	now, losses := l.c.clock.Now(), l.c.losses.Load()
	l.mu.Lock()
	live, known := l.holds.live(now, losses)
	if known {
		l.mu.Unlock()
		return live
	}
	var some [4]*Hold
	holds := slices.AppendSeq(some[:0], l.holds.all())
	l.mu.Unlock()
	live = 0
	for _, h := range slices.Backward(holds) {
		if h.judge() == nil {
			live++
		}
	}
	l.mu.Lock()
	if l.holds.tally != nil {
		l.holds.judged(now, losses)
	}
	l.mu.Unlock()
	return live
}
