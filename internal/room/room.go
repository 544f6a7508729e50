// Package room decides everything about one lock in one client: who holds and who waits here, what Redis must be told
// next, and until when a hold is trusted. It only decides: a Room has no clock, mutex, goroutine, context or
// connection. Each event comes with a [Step], which has its time. The room adds to the step what must be done, as
// [Effect]s, and its driver, the keeper of package relock, carries them out.
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
	// maxPasses and maxPassTime bound how often and how long a grant is passed on before Redis' queue gets its turn.
	maxPasses   = 128
	maxPassTime = 10 * time.Millisecond
)

// A Room is the state of one lock in one client. Anonymous calls on a plain lock, and calls of one named owner in one
// mode, form a flow. One call of a flow has the claim, the right to ask Redis, and the others stand in line behind
// it. The zero value is empty.
type Room struct {
	Plain  bool // a plain lock, whose anonymous calls stand in line
	Runs   bool // a fair lock: entries next to each other in the queue may share a grant (see run)
	Shared bool // a read/write lock: an anonymous writer may become a reader (Hold.Downgrade)

	claimed   bool          // an anonymous call has the claim: its acquisition waits in Redis or holds
	passes    uint8         // how often the latest grant of the anonymous flow was passed on
	grantedAt clock.Instant // when the client learned of that grant
	sessions  lone[Session] // the sessions that hold now
	kept      *kept         // the latest grant that may be kept (Terms.Sticky); nil: none yet
	*rare                   // nil until a call names an owner or finds the lock taken, or several sessions hold
}

// rare has the fields that few rooms need. It is a struct of its own to save memory.
type rare struct {
	line        line           // the line of the anonymous calls
	flows       map[Flow]*line // the lines of named owners: one for each flow whose claim is carried
	beat        clock.Instant  // when the next heartbeats of the room are due together: see align
	owingUnlock lone[Hold]     // lost exclusive holds of named owners that still need their Unlock
	nextEnd     clock.Instant  // no hold on a handle ends by the clock before this; zero: not known (see Judge)
}

// Enter makes the entry of a new acquisition. hasClaim says whether the acquisition has the claim of its flow.
func (r *Room) Enter(a *Acquisition, hasClaim bool) *Entry {
	a.Room, a.hasClaim = r, hasClaim
	e := &Entry{Acquisition: a}
	e.sent = e.one[:0]
	a.Entry = e
	return e
}

func (r *Room) needRare() {
	if r.rare == nil {
		r.rare = &rare{}
	}
}

// align returns when to send a heartbeat: at due, or with earlier heartbeats of the room that come no more than slack
// before due. Sending them together saves commands.
func (r *Room) align(now, due clock.Instant, slack time.Duration) clock.Instant {
	r.needRare()
	if early := r.beat.Until(due); early < 0 || early > slack || now.Reached(r.beat) {
		r.beat = due
	}
	return r.beat
}

// Judge runs Session.Check for all sessions: it ends what has ended by the clock. There may be thousands of sessions,
// for example of readers. So if there are several, it does nothing before the instant at which the next hold could end.
func (r *Room) Judge(at *Step) {
	if r.sessions.len() < 2 {
		if s := r.sessions.first; s != nil {
			s.Check(at)
		}
		return
	}
	if r.needRare(); !r.nextEnd.IsZero() && !at.Now.Reached(r.nextEnd) {
		return
	}
	r.nextEnd = clock.Instant{}
	for i := 0; i < r.sessions.len(); {
		s := r.sessions.at(i)
		if s.Check(at); s.Over {
			continue // Check has removed it from the list, so the next one is at i
		}
		if end := s.firstEnd(); r.nextEnd.IsZero() {
			r.nextEnd = end
		} else {
			r.nextEnd = clock.Min(r.nextEnd, end) // on each of the two clocks of an Instant
		}
		i++
	}
}

// Bars returns what keeps a hold of the call w from the handle l, or NoBar. It may be a lost hold of the call's named
// owner, on any handle, that still needs its Unlock: then Bars returns that hold too. Or l has lost holds, or holds of
// another owner, that an Unlock could take for the call's. Call Judge first.
func (r *Room) Bars(l *Handle, w Want) (Bar, *Hold) {
	if w.Owner != "" && r.rare != nil && r.owingUnlock.first != nil {
		// A branch relies on what its ancestors hold, so lost holds of ancestors count too. Otherwise a nested call would get
		// a new grant, and nobody would notice that others may have held the lock in between.
		for _, name := range Lineage(w.Owner) {
			for _, h := range r.owingUnlock.all() {
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
	return r.sessions.len() == 0 && !r.claimed && (r.rare == nil || r.line.Len() == 0 && len(r.flows) == 0 && r.owingUnlock.len() == 0)
}

// GiveBackKept releases the kept grant (Terms.Sticky), if there is one: others want it, or the client shuts down.
func (r *Room) GiveBackKept(at *Step) { r.kept.giveBack(at) }

// Want decides how the call w goes on, and notes that: w takes the claim, joins the line or takes the kept grant.
// Behind comes with a Follower, and Retake with a session. Ask HeldBy first: an owner that holds joins its session.
func (r *Room) Want(w Want, at *Step) (Way, *Follower, *Session) {
	if r.kept != nil {
		if s := r.kept.take(w, at); s != nil {
			return Retake, nil, s
		}
	}
	switch {
	case w.Owner == "" && !r.Plain, w.Once && (w.Owner != "" || r.claimed):
		return Alone, nil, nil
	case w.Owner == "" && !r.claimed:
		r.claimed = true
		return First, nil, nil
	}
	r.needRare()
	flow := w.flow()
	behind := r.lineOf(flow)
	if behind == nil { // no call of this owner in this mode asks Redis
		if r.flows == nil {
			r.flows = make(map[Flow]*line)
		}
		r.flows[flow] = &line{}
		return First, nil, nil
	}
	p := &Follower{flow: flow, terms: w.Terms}
	behind.push(p)
	for _, s := range r.sessions.all() {
		if s.hasClaim && s.flow() == flow {
			s.markWanted(at) // its holder hears that a call waits
		}
	}
	return Behind, p, nil
}

// HeldBy returns a session of the call's owner that a hold in the call's mode can join, or nil. If the owner only reads
// and the call wants to write, it returns nil: Redis decides about that. Call Judge first.
func (r *Room) HeldBy(w Want) *Session {
	for _, s := range r.sessions.all() {
		if s.Name == w.Owner && !s.Absent() && (w.Read || s.Ledger.Meant.Writes > 0) {
			return s
		}
	}
	return nil
}

// lineOf returns the line of a flow. It returns nil only if no call of the flow stands in line.
func (r *Room) lineOf(flow Flow) *line {
	if r.rare == nil {
		return nil
	}
	if flow == (Flow{}) {
		return &r.line
	}
	return r.flows[flow]
}

// next returns the first call in the line of a flow, or nil.
func (r *Room) next(flow Flow) *Follower {
	if line := r.lineOf(flow); line != nil && line.Len() > 0 {
		return line.Front().Value.(*Follower)
	}
	return nil
}

// give takes a call out of its line, gives it what it waited for, and wakes it.
func (r *Room) give(p *Follower, what Given, at *Step) {
	r.lineOf(p.flow).Remove(p.spot)
	p.spot, p.Given = nil, what
	at.do(Effect{Do: Wake, Who: p.Who})
}

// handClaim gives the claim, if the acquisition has it, to the next call in line: the acquisition has ended, or
// waits on a condition. place is the place in the queue that the next call asks for.
func (r *Room) handClaim(a *Acquisition, place int64, at *Step) {
	if a.hasClaim {
		a.hasClaim = false
		r.passClaim(a.flow(), place, at)
	}
}

// passClaim gives the claim, with a place to ask for, to the next call in line. If no call stands in line, the claim is
// free for the next call that must ask Redis.
func (r *Room) passClaim(flow Flow, place int64, at *Step) {
	switch front := r.next(flow); {
	case front != nil:
		r.give(front, Given{Place: place}, at)
	case flow == Flow{}:
		r.claimed = false
		if r.rare != nil {
			r.line = line{} // it is empty, and what it knows of the lock and of Redis is out of date
		}
	default:
		delete(r.flows, flow)
	}
}

// passToLine gives the lock to the next anonymous call in line, and reports whether it did. That call must have the
// same terms, and the lease must be fresh. maxPasses and maxPassTime bound this, so that Redis' queue gets its turn.
func (r *Room) passToLine(s *Session, at *Step) bool {
	front := r.next(Flow{})
	if front == nil || !s.hasClaim || *front.terms != *s.Terms || !s.canPass(at) ||
		r.passes >= maxPasses || at.Now.Sub(r.grantedAt) >= maxPassTime {
		return false
	}
	r.passes++
	s.reserveNext()
	r.give(front, Given{Acquisition: s.Acquisition}, at)
	return true
}

// Leave takes a call out of its line because its wait has ended. If the call was given something just before, the next
// call gets that, or it is given up.
func (r *Room) Leave(p *Follower, at *Step) {
	switch {
	case p.spot != nil:
		r.lineOf(p.flow).Remove(p.spot)
		p.spot = nil
	case p.Given.Acquisition == nil:
		r.passClaim(p.flow, p.Given.Place, at)
	default:
		p.Given.Acquisition.GiveUp(at)
	}
}

// admit lets all calls in line behind a session that was just granted join it, and reserves a hold for each. The
// session lasts until each call has made its hold, so none loses the place for which it has waited.
func (r *Room) admit(s *Session, at *Step) {
	flow := s.flow()
	for line := r.flows[flow]; line.Len() > 0; {
		s.reserve()
		r.give(line.Front().Value.(*Follower), Given{Acquisition: s.Acquisition, Joined: true}, at)
	}
	delete(r.flows, flow)
	s.hasClaim = false
}

// passToRun gives a fair lock to the next acquisition of the session's run, and reports whether it did. The lease must
// be fresh. Otherwise that acquisition is at the head of Redis' queue when the session is released.
func (r *Room) passToRun(s *Session, at *Step) bool {
	if !s.canPass(at) {
		return false
	}
	for len(s.run.behind) > 0 {
		a := s.run.behind[0]
		s.run.behind = s.run.behind[1:]
		switch {
		case a.Over: // its call has ended, and it leaves Redis' queue separately
		case a.Session != nil || a.doubt != 0 || *a.Terms != *s.Terms:
			// It has held before, or a request in flight could put it back into the queue, or it wants other terms. So the run
			// ends, and Redis grants the lock in the order of its queue.
			s.run.behind = nil
		default:
			s.serve(a, at)
			return true
		}
	}
	return false
}

// noteTaken records for the line behind a that the lock is taken: Redis has said so to a, or a holds it. The calls in
// line have not asked Redis. If their wait ends, they know only from this that the lock was taken.
func (r *Room) noteTaken(a *Acquisition) {
	if line := a.line(); line != nil {
		line.taken = true
	}
}

// Hears returns what the waiting call w knows: whether the lock is taken, and what is wrong with Redis. a is the
// acquisition by which the call asks, or nil if it stands in line. If a has no claim, the call asks for itself alone:
// then taken is false, because only Redis' own answers to the call say that. Otherwise the lock is taken if the
// acquisition with the flow's claim holds it, or if Redis said so, at whatever time, to the call in front.
func (r *Room) Hears(w Want, a *Acquisition, now clock.Instant) (taken bool, t Trouble) {
	if a != nil && !a.hasClaim {
		if a.Entry != nil {
			t = a.Entry.silence.trouble(now)
		}
		return false, t
	}
	flow := w.flow()
	for _, s := range r.sessions.all() {
		if s.hasClaim && s.flow() == flow && !s.ended(now) {
			return true, Trouble{}
		}
	}
	line := r.lineOf(flow)
	if line == nil {
		return false, Trouble{}
	}
	return line.taken, line.silence.trouble(now)
}

// A Step is one event in a room: when it happens, and what must be done afterwards.
type Step struct {
	Now      clock.Instant
	Server   int64 // estimate of the server's clock in ms; set if a request may be made
	Draining bool  // Shutdown or Close has begun: no grant is passed on or kept
	// Pause returns how long to wait after that many failures, and never more than most: transport.BackoffUpTo.
	Pause func(fails int, most time.Duration) time.Duration

	n    int       // how many elements of some are set
	some [2]Effect // the first effects, in the step itself because most steps have no more
	more []Effect  // the other effects
}

// A Deed says what the driver must do for an effect.
type Deed uint8

// The deeds. The driver (keeper.endUntold) does Timer, Forget, Lose, TellWanted and LossEnded in order, and before the
// next step of the room: otherwise a late timer would undo a newer one. Then it does the others, in order.
const (
	Timer      Deed = iota + 1 // set the timer of Of to At, or up to Grain earlier; a zero At stops it
	Forget                     // make the client forget the nonce of Of
	Lose                       // end the contexts of the lost Hold, and tell its holder
	TellWanted                 // tell the holder of Hold that others wait for its end
	LossEnded                  // stop keeping the room in use for the lost Hold, which its holder has ended
	Wake                       // wake the call that waits on Who
	Release                    // release Of in Redis, whether it waits or holds there
	Tell                       // tell Redis in the background what the session of Of holds
	Disown                     // release Nonce, which the answer to a request sent at At named, unless a call here has it
)

// An Effect is something that the driver must do. Its deed says which of the other fields it uses.
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

// timer sets the timer of an acquisition. The last call of a step decides, because the driver sets timers in order.
func (at *Step) timer(a *Acquisition, due clock.Instant, grain time.Duration) {
	at.do(Effect{Do: Timer, Of: a, At: due, Grain: grain})
}

// Effect returns effect number i, in the order in which they were added, or nil after the last one. An iterator instead
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
