// Package room decides everything about one lock in one client: who holds and who waits here, what Redis must be told
// next, and until when a hold is trusted. It only decides: a Room has no clock, mutex, goroutine, context or
// connection. Each input comes with a [Step], which says when it happens. The room leaves in the step what must be
// done, as [Effect]s, and its driver does it.
//
//	        Want ──► Follower (stands in line)
//	         │         │ gets a Given
//	         ▼         ▼
//	Entry: asked ──► queued ──► Session: held ──► over
//	         │          │         │ ▲
//	         └──────────┴─ over   └─┘ renewed, passed on, re-entered
//
// A Room is not safe for concurrent use.
package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
)

const (
	// A free lock is passed on within the process so often and for so long at most. Then it is the turn of Redis' queue.
	maxPasses   = 128
	maxPassTime = 10 * time.Millisecond
)

// A Room is the state of one lock in one client. Anonymous calls on a plain lock, and calls of one named owner in one
// mode, form a flow: one of them carries the flow's claim and asks Redis, and the others stand in line behind it. The
// zero value is empty.
type Room struct {
	Plain  bool // a plain lock: anonymous calls stand in line
	Runs   bool // a fair lock: entries next to each other in the queue share a grant
	Shared bool // a read/write lock: an anonymous writer may become a reader

	claimed  bool          // an anonymous call carries the claim: it waits in Redis or holds
	passes   uint8         // how often the lock was passed on since the grant
	since    clock.Instant // the grant
	sessions lone[Session] // those that hold
	kept     *kept         // nil until a grant may be kept
	*crowd                 // nil until a call names an owner or finds the lock taken, or several sessions hold
}

// crowd is what few rooms need.
type crowd struct {
	line  line           // of anonymous calls
	flows map[Flow]*line // of named owners: one for each flow whose claim is carried
	beat  clock.Instant  // when the room's heartbeats are due, as last set
	owing lone[Hold]     // lost exclusive holds of named owners that are not unlocked
	sure  clock.Instant  // until then no hold on a handle ends by itself; zero: not known
}

// Enter makes the entry of a new acquisition. carries: it carries the claim of its flow.
func (r *Room) Enter(a *Acquisition, carries bool) *Entry {
	a.Room, a.carries = r, carries
	e := &Entry{Acquisition: a}
	e.sent = e.one[:0]
	a.Entry = e
	return e
}

// needCrowd makes the crowd, which most rooms never need.
func (r *Room) needCrowd() {
	if r.crowd == nil {
		r.crowd = &crowd{}
	}
}

// align returns when to send a heartbeat that is due at the given instant. If other heartbeats of the room are due
// earlier, by slack at most, it is sent with them, so that many waiters cost few commands.
func (r *Room) align(now, due clock.Instant, slack time.Duration) clock.Instant {
	r.needCrowd()
	if early := r.beat.Until(due); early < 0 || early > slack || now.Reached(r.beat) {
		r.beat = due
	}
	return r.beat
}

// Judge ends what has ended by the clock, as Session.Check does, for all sessions. There may be thousands, as with
// readers. So if there are several, it looks at them only when a hold could have ended since it last looked.
func (r *Room) Judge(at *Step) {
	if r.sessions.len() < 2 {
		if s := r.sessions.first; s != nil {
			s.Check(at)
		}
		return
	}
	if r.needCrowd(); !r.sure.IsZero() && !at.Now.Reached(r.sure) {
		return
	}
	r.sure = clock.Instant{}
	for i := 0; i < r.sessions.len(); {
		s := r.sessions.at(i)
		if s.Check(at); s.Over {
			continue // it is not in the list any more
		}
		if end := s.firstEnd(); r.sure.IsZero() {
			r.sure = end
		} else {
			r.sure = clock.Min(r.sure, end) // by each of the two clocks, which a suspension moves apart
		}
		i++
	}
}

// Bars returns what keeps a call from the handle: a lost hold of its named owner on any handle, or holds on this one
// that Unlock could not tell from the call's. With OwesUnlock it also returns the lost hold. Call Judge first.
func (r *Room) Bars(l *Handle, w Want) (Bar, *Hold) {
	if w.Owner != "" && r.crowd != nil && r.owing.first != nil {
		// A branch relies on what its ancestors hold, so theirs count too. Otherwise a nested call would get a new grant,
		// and nobody would notice that others may have held the lock in between.
		for _, name := range Lineage(w.Owner) {
			for _, h := range r.owing.all() {
				if h.Session.Name == name {
					return OwesUnlock, h
				}
			}
		}
	}
	return l.bars(w)
}

// HeldSince returns when the oldest hold of the oldest session was acquired, on any handle, or zero if there is none.
func (r *Room) HeldSince() clock.Instant {
	for _, s := range r.sessions.all() {
		if h := s.holds.first; h != nil {
			return h.Acquired
		}
	}
	return clock.Instant{}
}

// Empty reports whether nobody holds, waits or stands in line. It is for tests.
func (r *Room) Empty() bool {
	return r.sessions.len() == 0 && !r.claimed && (r.crowd == nil || r.line.Len() == 0 && len(r.flows) == 0 && r.owing.len() == 0)
}

// GiveBackKept releases the grant that is kept after its last hold (Terms.Sticky), if there is one.
func (r *Room) GiveBackKept(at *Step) { r.kept.giveBack(at) }

// Want decides how a call for the lock goes on, and notes that: it takes the claim or stands in line.
// Behind comes with a Follower, and Retake with a Session. A named owner that holds has joined before: see HeldBy.
func (r *Room) Want(w Want, at *Step) (Way, *Follower, *Session) {
	if r.kept != nil {
		if s := r.kept.take(w, at); s != nil {
			return Retake, nil, s
		}
	}
	if w.Owner != "" && !w.Once {
		return r.follow(w)
	}
	switch {
	case w.Owner != "" || !r.Plain || w.Once && r.claimed:
		return Alone, nil, nil
	case !r.claimed:
		r.claimed = true
		return First, nil, nil
	}
	p := &Follower{terms: w.Terms}
	r.needCrowd()
	r.line.push(p)
	for _, s := range r.sessions.all() {
		if s.carries && !s.Named() {
			s.markWanted(at) // its holder hears that a call waits
		}
	}
	return Behind, p, nil
}

// follow is Want for a named owner: another of its calls may ask already.
func (r *Room) follow(w Want) (Way, *Follower, *Session) {
	of := Flow{w.Owner, w.Read}
	r.needCrowd()
	behind := r.flows[of]
	if behind == nil {
		if r.flows == nil {
			r.flows = make(map[Flow]*line)
		}
		r.flows[of] = &line{}
		return First, nil, nil
	}
	p := &Follower{of: of, terms: w.Terms}
	behind.push(p)
	return Behind, p, nil
}

// HeldBy returns a session of a named owner that a hold of the call's mode can join, or nil. An owner that only reads
// and wants to write gets nil: Redis decides about that. Call Judge first.
func (r *Room) HeldBy(w Want) *Session {
	for _, s := range r.sessions.all() {
		if s.Name == w.Owner && !s.Absent() && (w.Read || s.Ledger.Meant.Writes > 0) {
			return s
		}
	}
	return nil
}

// lineOf returns the line of a flow, or nil if there is none. Then no call stands in it.
func (r *Room) lineOf(of Flow) *line {
	if r.crowd == nil {
		return nil
	}
	if of == (Flow{}) {
		return &r.line
	}
	return r.flows[of]
}

// next returns the first call in line, or nil.
func (r *Room) next(of Flow) *Follower {
	if line := r.lineOf(of); line != nil && line.Len() > 0 {
		return line.Front().Value.(*Follower)
	}
	return nil
}

// give takes a call out of the line and gives it what it waited for.
func (r *Room) give(p *Follower, what Given, at *Step) {
	r.lineOf(p.of).Remove(p.spot)
	p.spot, p.Given = nil, what
	at.do(Effect{Do: Wake, Who: p.Who})
}

// handClaim gives the claim of an acquisition to the next call in line, because the acquisition has ended or waits on a
// condition. place is the place in the queue that the next call asks for.
func (r *Room) handClaim(a *Acquisition, place int64, at *Step) {
	if a.carries {
		a.carries = false
		r.passClaim(a.flow(), place, at)
	}
}

// passClaim gives the claim, with a place to ask for, to the next call in line. If there is none, it frees the claim:
// the next call carries it, unless it can join a session.
func (r *Room) passClaim(of Flow, place int64, at *Step) {
	switch front := r.next(of); {
	case front != nil:
		r.give(front, Given{Place: place}, at)
	case of == Flow{}:
		r.claimed = false
		r.noWord(of)
	default:
		delete(r.flows, of)
	}
}

// passToLine gives the lock to the next call in line, if that has the same terms and the lease is fresh, and reports
// whether it did. Number and time of these passes are bounded for each grant, so that Redis' queue gets its turn.
func (r *Room) passToLine(s *Session, at *Step) bool {
	front := r.next(Flow{})
	if front == nil || !s.carries || *front.terms != *s.Terms || !s.canPass(at) ||
		r.passes >= maxPasses || at.Now.Sub(r.since) >= maxPassTime {
		return false
	}
	r.passes++
	s.token++
	s.left--
	s.reserve()
	r.give(front, Given{Acquisition: s.Acquisition}, at)
	return true
}

// Leave takes a call out of the line because its wait has ended. If it was given something at the same moment, that
// goes to the next call.
func (r *Room) Leave(p *Follower, at *Step) {
	switch {
	case p.spot != nil:
		r.lineOf(p.of).Remove(p.spot)
		p.spot = nil
	case p.Given.Acquisition == nil:
		r.passClaim(p.of, p.Given.Place, at)
	default:
		p.Given.Acquisition.GiveUp(at)
	}
}

// admit reserves a hold for each call in line behind a session that was just granted. The session then lasts until each
// has had its turn, so no call loses the place in the queue for which it has waited.
func (r *Room) admit(s *Session, at *Step) {
	of := s.flow()
	for line := r.flows[of]; line.Len() > 0; {
		s.reserve()
		r.give(line.Front().Value.(*Follower), Given{Acquisition: s.Acquisition, Joined: true}, at)
	}
	delete(r.flows, of)
	s.carries = false
}

// passToRun gives a fair lock to the next acquisition of the session's run, if the lease is fresh. If it does not, that
// acquisition is at the head of Redis' queue when the session is released.
func (r *Room) passToRun(s *Session, at *Step) bool {
	if !s.canPass(at) {
		return false
	}
	for len(s.run.behind) > 0 {
		a := s.run.behind[0]
		s.run.behind = s.run.behind[1:]
		switch {
		case a.Over: // its call has gone, and Redis is told separately
		case !a.idle() || *a.Terms != *s.Terms: // Redis decides about it, so that the order stays
			s.run.behind = nil
		default:
			s.serve(a, at)
			return true
		}
	}
	return false
}

// word records for the line behind a that the lock is taken: Redis has told the call in front, or a hold of a shows it.
// The calls in line have not asked Redis. If their wait ends, this is how they know that it was taken.
func (r *Room) word(a *Acquisition, now clock.Instant) {
	if line := a.line(); line != nil {
		line.said = now
	}
}

// noWord forgets what a line knows of the lock and of Redis' silence, because it is out of date.
func (r *Room) noWord(of Flow) {
	if line := r.lineOf(of); line != nil {
		line.said, line.silence = clock.Instant{}, silence{}
	}
}

// Hears returns what a call that waits since began knows: whether the lock is taken, and what is wrong with Redis, if
// anything is. a is the acquisition by which the call asks, or nil if it stands in line. A call of a flow knows that
// the lock is taken if a hold of the flow shows it, or if Redis said so to the call in front: after began, or before
// that and without owing an answer now. For any other call taken is false: only its own answers tell it.
func (r *Room) Hears(w Want, a *Acquisition, began, now clock.Instant) (taken bool, t Trouble) {
	if a != nil && !a.carries {
		if a.Entry != nil {
			t = a.Entry.silence.trouble(now)
		}
		return false, t
	}
	of := Flow{}
	if w.Owner != "" {
		of = Flow{w.Owner, w.Read}
	}
	for _, s := range r.sessions.all() {
		if s.carries && s.flow() == of && !s.ended(now) {
			return true, Trouble{}
		}
	}
	line := r.lineOf(of)
	if line == nil {
		return false, Trouble{}
	}
	t = line.silence.trouble(now)
	return !line.said.IsZero() && (!t.Is() || began.Until(line.said) >= 0), t
}

// A Step is one event in a room: when it happens, and what must be done afterwards.
type Step struct {
	Now     clock.Instant
	Server  int64 // estimate of the server's clock in ms; set if a request may be made
	Closing bool  // the client is shutting down: the lock is not passed on
	// Pause returns how long to wait after so many failures, at most most: transport.BackoffUpTo.
	Pause func(fails int, most time.Duration) time.Duration

	n    int       // how many of some are set
	some [2]Effect // the first effects; mostly there are no more
	more []Effect
}

// A Deed says what an effect wants done.
type Deed uint8

// The deeds. The driver (keeper.endUntold) does Timer, Forget, Lose, TellWanted and Paid in order, before the next event
// in the room: done late, a timer would undo a newer one. It does the others after that, in any order.
const (
	Timer      Deed = iota + 1 // Of is due at At, or up to Grain earlier; a zero At stops its timer
	Forget                     // forget Of's nonce
	Lose                       // Hold is lost
	TellWanted                 // others wait for the end of Hold
	Paid                       // the holder of a lost Hold has ended it
	Wake                       // wake the call that waits on Who
	Release                    // release Of in Redis, whether it waits or holds there
	Tell                       // tell Redis what Of's session needs
	Disown                     // release Nonce unless a call has it: the answer to a request sent at At named it
)

// An Effect is something that the driver must do.
type Effect struct {
	Do    Deed
	Of    *Acquisition
	At    clock.Instant
	Grain time.Duration
	Hold  *Hold
	Who   any
	Nonce string
}

func (at *Step) do(e Effect) {
	if at.n < len(at.some) {
		at.some[at.n] = e
		at.n++
		return
	}
	at.more = append(at.more, e)
}

// timer makes an acquisition due at that time only.
func (at *Step) timer(a *Acquisition, due clock.Instant, grain time.Duration) {
	for i := range at.n {
		if e := &at.some[i]; e.Do == Timer && e.Of == a {
			e.At, e.Grain = due, grain
			return
		}
	}
	at.do(Effect{Do: Timer, Of: a, At: due, Grain: grain})
}

// Effect returns the effect i, or nil if there are no more. They are in the order in which they were added. An iterator
// would put each step on the heap.
func (at *Step) Effect(i int) *Effect {
	switch {
	case i < at.n:
		return &at.some[i]
	case i-at.n < len(at.more):
		return &at.more[i-at.n]
	}
	return nil
}
