package room

import "github.com/relock-go/relock/internal/clock"

// A Handle is what one handle of a lock has to unlock. Its Unlock may end any hold on it. So a lost hold bars the holds
// of later grants from an exclusive handle until it is unlocked. And a handle on which several grants hold beside each
// other takes the holds of one owner only. The zero value is empty.
type Handle struct {
	holds lone[Hold] // the oldest first
	*aside
}

// aside is what few handles need.
type aside struct {
	away  lone[Hold] // their owner waits on a condition: they are in nobody's way
	lost  int        // how many of the holds are lost
	freed any        // woken when the handle changes: see Freed; nil: no call waits for that
}

// A Bar is what keeps a call's hold from a handle.
type Bar int

// The bars.
const (
	NoBar      Bar = iota
	Occupied       // a lost hold of another owner is not unlocked yet
	OwesUnlock     // its own owner has lost a hold, and has not unlocked it
	OtherOwner     // the handle has holds of another owner, and its Unlock could not tell them apart
	Unheld         // the hold is lost, or its owner waits on a condition
)

// A place says where a hold is.
type place uint8

const (
	unplaced place = iota // its call has not put it on the handle yet
	onHandle
	away     // its owner waits on a condition
	unlocked // or released, or given back by its call
)

// bars is Room.Bars, but looks only at what is on the handle.
func (l *Handle) bars(w Want) (Bar, *Hold) {
	if w.Read {
		return l.otherOwner(w), nil
	}
	if l.aside == nil || l.lost == 0 {
		return NoBar, nil
	}
	for _, h := range l.holds.all() {
		switch {
		case !h.lost:
		case w.Owner != "" && h.Session.Name == w.Owner:
			return OwesUnlock, h
		default:
			return Occupied, nil
		}
	}
	return NoBar, nil
}

// otherOwner says whether a handle has holds of another owner. On a semaphore only those count that Unlock may end.
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

// Next returns the hold that Unlock ends, or nil. A lost hold comes first, otherwise the newest. Holds of Acquire and
// Do come last: after several losses, an Unlock must not end the hold that a Do is about to end.
//
// If several grants hold at once, as with readers, it is the oldest hold instead. A loss of data ends the older grants
// first, and this client may not know of it yet. So an Unlock by a caller that lost its hold does not end the hold of a
// caller that came after the loss.
//
// A hold whose owner waits on a condition is returned only if there is no other. Call Judge first.
func (l *Handle) Next() (found *Hold) {
	first, newest := l.holds.first, l.holds.last()
	switch first {
	case nil:
		return l.nextAway()
	case newest:
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
		if h.lost {
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
	return found
}

// nextAway is Next if all holds are away: the newest that Unlock ends, otherwise the newest.
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

// Freed returns what is woken when the handle changes next: who, or what an earlier call has given. The handle changes
// when a hold leaves it, and when one that is away ends or is lost.
func (l *Handle) Freed(who any) any {
	x := l.more()
	if x.freed == nil {
		x.freed = who
	}
	return x.freed
}

// more returns the aside for writing, and makes it if needed.
func (l *Handle) more() *aside {
	if l.aside == nil {
		l.aside = &aside{}
	}
	return l.aside
}

func (l *Handle) add(h *Hold) {
	l.holds.add(h)
	h.place = onHandle
	if r := h.Session.Room; r.crowd != nil && !r.sure.IsZero() {
		r.sure = clock.Min(r.sure, h.Until())
	}
	if h.lost {
		l.more().lost++
	}
}

// remove takes a hold off the handle.
func (l *Handle) remove(h *Hold, at *Step) {
	l.holds.remove(h)
	if l.aside == nil {
		return
	}
	if h.lost {
		l.lost--
	}
	l.wake(at)
}

// wake wakes the calls that wait for a change of the handle.
func (l *aside) wake(at *Step) {
	if l.freed != nil {
		at.do(Effect{Do: Wake, Who: l.freed})
		l.freed = nil
	}
}
