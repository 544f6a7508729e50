package room

import (
	"math"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/trust"
)

// A Hold is one success of a call such as Lock or Acquire. It shares its session with other holds of its owner.
type Hold struct {
	Session  *Session
	Terms    *Terms
	Handle   *Handle
	Token    int64 // without the owner's digits
	Acquired clock.Instant
	Of       any  // the driver's own record of it
	Wanted   bool // others wait, or have waited, for its end
	Unlock   bool // ended by the handle's Unlock, not by a Release or the end of a Do
	Pending  bool // its call takes several locks together, and does not have them all yet
	Read     bool // shared with other readers

	// Released: its holder has ended it, or its call has given it back. Lost: it was lost before that. A loss by the clock
	// shows only after Session.Check. Only the room writes them.
	Released, Lost bool

	place place // where it is
	local bool  // nested, and Redis does not know of it
	why   error // why it was lost; nil: for the reason of its session
	// last is when the last renewal that counts for the hold may be sent; zero: every renewal counts.
	last clock.Instant
}

// An Ending says what follows from the end of a hold.
type Ending int

// The endings.
const (
	// Silent: nothing to send. The hold had ended before, the lock was passed on, the grant is kept, or Redis never knew
	// of the hold.
	Silent Ending = iota
	Fewer         // tell Redis the new number of holds, or release the session if none is left
	Last          // release the session
)

// Why returns why it was lost.
func (h *Hold) Why() error {
	if h.why != nil {
		return h.why
	}
	return h.Session.Why()
}

// End ends a hold for its holder, and returns what the caller must tell Redis. Call Judge first.
func (h *Hold) End(at *Step) Ending {
	s, ended := h.Session, h.Released || h.Lost
	if s.Absent() { // its Unlock fails, but no later call would end it; Redis is told once the session holds again
		h.GiveBack(at)
		return Silent
	}
	if h.end(at); ended {
		return Silent
	}
	s.drop(h)
	if h.local && s.Ledger.Knows() || s.Room.kept != nil && s.Room.kept.keep(s, at) {
		return Silent
	}
	return s.finish(at)
}

// Detach ends a hold here whose session a ticket takes over. It returns false if the session has other holds, or will.
func (h *Hold) Detach(at *Step) bool {
	s := h.Session
	if s.holds.len() != 1 || s.Ledger.Needs() != ledger.One(h.Read) {
		return false
	}
	h.end(at)
	s.drop(h) // a Wait that has not returned yet asks which holds are left
	s.dismiss(at)
	s.leaveRoom(at)
	return true
}

// GiveBack ends a hold that its call does not return, or whose owner waits on a condition. Nobody waits for its
// release. A hook may have ended the hold before; then the lock may belong to the next call already.
func (h *Hold) GiveBack(at *Step) {
	s := h.Session
	live := !s.Over && !h.Released && !h.Lost
	h.end(at)
	s.drop(h)
	if live {
		s.finishApart(at)
	}
}

// Downgrade makes a write hold a read hold, and moves it to the handle of the reading side, unless something there bars
// it. x is the wish by which Redis is told. Downgrade returns Unheld if the hold has left its handle, or reads already.
func (h *Hold) Downgrade(to *Handle, x *ledger.Wish, at *Step) Bar {
	if h.place != onHandle || h.Handle == to {
		return Unheld
	}
	w := h.want()
	w.Read = true
	if bar, _ := to.bars(w); bar != NoBar {
		return bar
	}
	h.Handle.remove(h, at)
	h.Handle = to
	to.add(h)
	s := h.Session
	s.Ledger.Drop(ledger.One(h.Read), h.local)
	h.Read = true
	s.Ledger.Add(ledger.One(h.Read), h.local)
	s.Ledger.Wish(x)
	return NoBar
}

// Put puts a hold on its handle, so that its call can return it, or returns what bars it, as Room.Bars does. Once it is
// there, only its Unlock or Release takes it off for good. Call Judge first.
func (h *Hold) Put(w Want, at *Step) (Bar, *Hold) {
	if h.Session.Absent() { // its owner waits on a condition: loseOlder must not take its grant for an ended one
		return Unheld, nil
	}
	if h.loseOlder(at); h.Lost || h.Released {
		return Unheld, nil
	}
	bar, by := h.Session.Room.Bars(h.Handle, w)
	if bar != NoBar {
		return bar, by
	}
	if !h.Read && h.Unlock && (h.Handle.holds.first != nil || h.Handle.aside != nil) && h.Handle.confusable(h) {
		return OtherOwner, nil
	}
	if h.Handle.add(h); !h.Pending {
		h.Session.Used++ // in this step, so that a release after it lets the name rest
	}
	return NoBar, nil
}

// loseOlder compares the grant of h with another one on its handle, of an exclusive lock, and loses the older one. That
// has ended in Redis, but its holder here may not know yet, and the holder's Unlock must not end h. If the server's
// clock has stepped back, Redis may still have the older grant, so it is released there too.
func (h *Hold) loseOlder(at *Step) {
	if h.Read || h.Handle.holds.first == nil { // the usual case: the handle has no other hold
		return
	}
	for _, other := range h.Handle.holds.backward() {
		switch {
		case other.Lost:
			continue
		case other.Token > h.Token:
			h.Session.Lose(ErrRegranted, at)
		case other.Token < h.Token:
			other.Session.Lose(ErrRegranted, at)
		}
		return // the others that are not lost have the same grant
	}
}

// end takes a hold off its handle for good: its holder has ended it, or its call gives it back.
func (h *Hold) end(at *Step) {
	switch l := h.Handle; h.place {
	case onHandle:
		l.remove(h, at)
	case away:
		l.away.remove(h)
		l.wake(at)
	}
	if h.Lost && !h.Released && h.place != unplaced {
		if r := h.Session.Room; r.rare != nil {
			r.owingUnlock.remove(h)
		}
		at.do(Effect{Do: LossEnded, Of: h.Session.Acquisition, Hold: h})
	}
	h.place, h.Released = unlocked, true
}

// markLost marks a hold as lost. If its call has returned it, its Unlock is still to come. If it is away, its Wait puts
// it back.
func (h *Hold) markLost(at *Step) {
	if h.Lost = true; h.place == unplaced {
		return // its call gives it back
	}
	if h.place == onHandle {
		h.Handle.more().lost++
	}
	h.Handle.wake(at)
	if s := h.Session; s.Named() && !h.Read && !h.Terms.OneToken { // OneToken: a quorum itself regains a lost primary
		s.Room.needRare()
		s.Room.owingUnlock.add(h)
	}
	at.do(Effect{Do: Lose, Of: h.Session.Acquisition, Hold: h})
}

// goAway takes a hold off its handle while its owner waits on a condition.
func (h *Hold) goAway(at *Step) {
	if h.place == onHandle {
		h.Handle.remove(h, at)
		h.Handle.more().away.add(h)
		h.place = away
	}
}

// want returns what a call for this hold would want, to ask what bars the hold from a handle.
func (h *Hold) want() Want {
	w := Want{Read: h.Read, Terms: h.Terms, Unlock: h.Unlock}
	if h.Session.Named() {
		w.Owner = h.Session.Name
	}
	return w
}

// Until returns until when the hold is trusted. A renewal may move that.
func (h *Hold) Until() clock.Instant { return h.Session.trustEnds(h.Terms.TTL, h.last) }

// start sets which renewals count for the hold: see last.
func (h *Hold) start() {
	switch t := h.Terms; {
	case t.Fixed:
		h.last = h.Session.renewed
	case t.MaxHold > 0:
		h.last = h.Acquired.Add(t.MaxHold)
	}
}

// endedBy returns why a hold's own time is over. MaxHold is the reason only if the hold has had all its renewals.
func (h *Hold) endedBy() error {
	s, t := h.Session, h.Terms
	switch {
	case t.Fixed:
		return loss.OfFixedLease(t.TTL)
	case t.MaxHold > 0 && h.Until().Reached(h.last) && (s.fails == 0 || s.renewed.Reached(h.last)):
		return loss.OfMaxHold(t.MaxHold)
	}
	return s.expired()
}

// A Handle has the holds of one handle of a lock that are not unlocked. Unlock does not name a hold, so it may end any
// of them. So a lost hold bars the holds of later grants from an exclusive handle until it is unlocked. And a handle on
// which several grants can hold together, as with readers, takes the holds of one owner only. The zero value is empty.
type Handle struct {
	holds lone[Hold] // in the order in which they were put here
	*aside
}

// An aside has the fields that few handles need. It is a struct of its own to save memory.
type aside struct {
	away  lone[Hold] // holds whose owner waits on a condition: they are off the handle until its Wait returns
	lost  int        // how many of the holds on the handle are lost
	freed any        // woken when the handle changes: see WhenFreed; nil: no call waits for that
}

// A Bar is what keeps a call's hold from a handle.
type Bar int

// The bars.
const (
	NoBar      Bar = iota
	Occupied       // a lost hold of another owner is not unlocked yet
	OwesUnlock     // its own owner has lost a hold, and has not unlocked it
	OtherOwner     // the handle has holds of another owner, and its Unlock could not tell them apart
	Unheld         // the hold is lost, has ended, or its owner waits on a condition
)

// A place says where a hold is.
type place uint8

const (
	unplaced place = iota // its call has not put it on the handle yet
	onHandle
	away     // its owner's Wait on a condition has not returned
	unlocked // or released, or given back by its call
)

// bars is Room.Bars, but looks only at the holds on the handle.
func (l *Handle) bars(w Want) (Bar, *Hold) {
	if w.Read {
		return l.otherOwner(w), nil
	}
	if l.aside == nil || l.lost == 0 {
		return NoBar, nil
	}
	for _, h := range l.holds.all() {
		switch {
		case !h.Lost:
		case w.Owner != "" && h.Session.Name == w.Owner:
			return OwesUnlock, h
		default:
			return Occupied, nil
		}
	}
	return NoBar, nil
}

// confusable reports whether Unlock could take another owner's hold for h: both have one grant, because one owner is a
// branch of the other. Of the owners that wait on a condition three kinds count: one that returns to the grant of h, a
// branch of its owner, which can enter that grant again, and one whose hold Unlock may end meanwhile.
func (l *Handle) confusable(h *Hold) bool {
	for _, other := range l.holds.backward() {
		if other.Unlock {
			return other.Token == h.Token && other.Session.Name != h.Session.Name
		}
	}
	if l.aside != nil {
		for _, other := range l.away.all() {
			differs := other.Session.Name != h.Session.Name
			if other.Unlock && (differs && other.Token == h.Token || Descends(other.Session.Name, h.Session.Name)) || differs && other.unlockable() {
				return true
			}
		}
	}
	return false
}

// mixes reports whether an Unlock could take h, which comes back to the handle, for a hold on it, or that hold for h. Of
// two lost holds it does not matter which an Unlock ends, nor of two holds of one owner.
func (l *Handle) mixes(h *Hold) bool {
	for _, other := range l.holds.all() {
		switch {
		case other.Session == h.Session, h.Session.Named() && other.Session.Name == h.Session.Name, other.Lost && h.Lost:
		case other.Lost, other.Unlock && h.Unlock:
			return true
		}
	}
	return false
}

// unlockable reports whether another goroutine of the owner may come to the Unlock of h while the owner waits.
func (h *Hold) unlockable() bool {
	for _, other := range h.Session.holds.all() {
		if other != h && other.place == away {
			return h.Unlock
		}
	}
	return false
}

// otherOwner returns OtherOwner if the handle has holds of another owner. Of a semaphore, only holds for Unlock count.
func (l *Handle) otherOwner(w Want) Bar {
	for _, h := range l.holds.all() {
		if w.Terms.Permits.Of > 0 && (!w.Unlock || !h.Unlock) {
			continue
		}
		if named := h.Session.Named(); named != (w.Owner != "") || named && h.Session.Name != w.Owner {
			return OtherOwner
		}
		return NoBar // the others have the same owner
	}
	return NoBar
}

// Next returns the hold that Unlock ends, or nil. Holds of Lock and TryLock come before those of Acquire and Do, which
// their callers end. Within each group, a lost hold comes first, else the newest.
//
// If several grants hold together, as with readers, the oldest comes first: a loss of data ends the older grants first,
// perhaps unknown to this client. So the Unlock of a caller that lost its hold ends no hold that came after the loss.
// A hold whose owner waits on a condition comes last or, if it is unlockable, before those of Acquire and Do. Call
// Judge first.
func (l *Handle) Next() (found *Hold) {
	first, newest := l.holds.first, l.holds.last()
	switch {
	case first == nil:
		return l.nextAway()
	case first == newest && (first.Unlock || l.aside == nil):
		return first
	}
	order := l.holds.backward()
	if newest.Read && first.Session != newest.Session {
		order = l.holds.all()
	}
	best, most := -1, 2
	if l.aside != nil && l.lost > 0 {
		most = 3
	}
	for _, h := range order {
		rank := 0
		if h.Lost {
			rank = 1
		}
		if h.Unlock {
			rank += 2
		}
		if rank > best {
			best, found = rank, h
		}
		if best >= most {
			break
		}
	}
	if gone := l.nextAway(); !found.Unlock && gone != nil && gone.unlockable() {
		return gone
	}
	return found
}

// nextAway is Next for the holds that are away. It returns the newest that Unlock ends, else the newest.
func (l *Handle) nextAway() *Hold {
	if l.aside == nil {
		return nil
	}
	for _, h := range l.away.backward() {
		if h.Unlock {
			return h
		}
	}
	return l.away.last()
}

// Newest returns the newest hold, or nil.
func (l *Handle) Newest() *Hold { return l.holds.last() }

// Live returns how many holds are not lost. Call Judge first.
func (l *Handle) Live() int {
	if l.aside == nil {
		return l.holds.len()
	}
	return l.holds.len() - l.lost
}

// HeldSince returns when the oldest hold was acquired, or zero if no hold is live. Call Judge first.
func (l *Handle) HeldSince() clock.Instant {
	if l.Live() == 0 {
		return clock.Instant{}
	}
	return l.holds.first.Acquired
}

// WhenFreed returns what is woken when the handle changes next. All waiting calls share the waker of the first of them.
// The handle changes when a hold leaves it or is lost, and when a hold that is away ends or is lost.
func (l *Handle) WhenFreed(waker any) any {
	x := l.more()
	if x.freed == nil {
		x.freed = waker
	}
	return x.freed
}

// more returns the aside, and makes it if needed.
func (l *Handle) more() *aside {
	if l.aside == nil {
		l.aside = &aside{}
	}
	return l.aside
}

// add puts a hold on the handle. It moves the room's nextEnd to the hold's end if that comes first.
func (l *Handle) add(h *Hold) {
	l.holds.add(h)
	h.place = onHandle
	if r := h.Session.Room; r.rare != nil && !r.nextEnd.IsZero() {
		r.nextEnd = clock.Min(r.nextEnd, h.Until())
	}
	if h.Lost {
		l.more().lost++
	}
}

func (l *Handle) remove(h *Hold, at *Step) {
	l.holds.remove(h)
	if l.aside == nil {
		return
	}
	if h.Lost {
		l.lost--
	}
	l.wake(at)
}

func (l *aside) wake(at *Step) {
	if l.freed != nil {
		at.do(Effect{Do: Wake, Who: l.freed})
		l.freed = nil
	}
}

// Terms are the options under which a hold is asked for.
type Terms struct {
	TTL      time.Duration
	Fixed    bool          // no watchdog
	Local    bool          // nested holds need no command
	MaxHold  time.Duration // 0: no limit
	Replicas Replicas      // that must acknowledge it; 0: none
	Rest     Rest          // of the name after the hold
	Sticky   time.Duration // how long the client may keep the grant after the last hold; 0: not at all
	Permits  Permits       // of a semaphore
	OneToken bool          // of a quorum: its grant has one token, and is never passed on to another call
}

// A Rest says how long a name stays taken after its hold has ended.
type Rest struct {
	For     time.Duration // since the grant; 0: it does not rest
	Aligned bool          // until the next multiple of For instead, by the server's clock
}

// Permits says how many permits of a semaphore a hold uses, and how many the semaphore has. The zero value is for other
// kinds of lock.
type Permits struct{ Weight, Of int }

// Replicas says how many replicas must acknowledge a grant or renewal, and how long they may take.
type Replicas struct {
	N       int
	Timeout time.Duration
}

// MaxHolds is how many holds a session may have.
const MaxHolds = math.MaxInt32

// An Entrance says how a call enters a session of its owner.
type Entrance int

// The entrances.
const (
	Open    Entrance = iota // the hold can be made
	Stated                  // Redis must be told first, by the wish
	Crowded                 // there are too many holds
	Shut                    // the session is over, or its owner waits on a condition
)

// Wish returns the wish for a lease of these terms.
func (t *Terms) Wish() *ledger.Wish {
	return &ledger.Wish{Lease: t.TTL, Replicas: t.Replicas.N, Timeout: t.Replicas.Timeout, LeaseMayStay: !t.Fixed && t.MaxHold == 0}
}

// or returns the stricter of both, for number and time separately.
func (r Replicas) or(other Replicas) Replicas {
	return Replicas{max(r.N, other.N), max(r.Timeout, other.Timeout)}
}

// Within returns how long to wait for the answer to a request for a lease of that length, replicas included. Replicas
// have a quarter of the lease at most. A twelfth is for the way to Redis: together a third, as without replicas.
func (r Replicas) Within(lease time.Duration) time.Duration {
	if r.N == 0 {
		return trust.Attempt(lease)
	}
	return max(trust.Attempt(lease), r.Timeout+lease/12)
}
