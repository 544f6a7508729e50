// Package room decides what becomes of one lock in one client: who holds and who waits
// here, what Redis is to be told next, and until when a hold is trusted. Others act: a
// Room has no clock, mutex, goroutine, context or connection. Each input is a [Step],
// which says when it happens; the room leaves in it what follows, as [Effect]s.
//
//	        Want ──► Follower (stands in line)
//	         │         │ handed on by whom it stands behind
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
	// A free lock is passed on within the process at most so often and for so
	// long before the queue in Redis gets its turn.
	maxPasses = 128
	maxTurn   = 10 * time.Millisecond
)

// A Room is what a client knows of one lock: who holds it here, and who waits here.
// Anonymous calls on a plain lock, and those of one named owner, send one of them to
// Redis for all, who carries the claim; the others stand in line. Its zero value is
// empty.
type Room struct {
	Plain  bool // of a plain lock: anonymous calls stand in line
	Runs   bool // of a fair lock: entries next to each other share a grant
	Shared bool // of a read/write lock: an anonymous writer may become a reader

	claimed  bool  // an anonymous call waits in Redis or holds, on behalf of the line
	passes   uint8 // holds passed on locally since the grant
	since    clock.Instant
	sessions lone[Session] // that hold: where a named owner re-enters
	*waiters               // nil until anybody waits
}

// waiters are what a room has of those who wait.
type waiters struct {
	line  line           // of the anonymous calls
	flows map[Flow]*line // of named owners; there while a claim is carried
	beat  clock.Instant  // when the heartbeats of the room's waiters are due, as last set
}

// Enter makes an entry of a new acquisition. With first it carries the claim of its flow.
func (r *Room) Enter(a *Acquisition, first bool) *Entry {
	a.Room, a.front = r, first
	e := &Entry{Acquisition: a}
	e.sent = e.one[:0]
	a.Entry = e
	return e
}

// gather makes sure that the room can have waiters.
func (r *Room) gather() {
	if r.waiters == nil {
		r.waiters = &waiters{}
	}
}

// align returns when a heartbeat that is due at the given instant is to be sent:
// with the others of the room where those come a little earlier, so that a
// crowd of waiters costs few commands however they came.
func (r *Room) align(now, due clock.Instant, slack time.Duration) clock.Instant {
	r.gather()
	if early := r.beat.Until(due); early < 0 || early > slack || now.Reached(r.beat) {
		r.beat = due
	}
	return r.beat
}

// HeldSince returns since when the oldest of the holds here has lasted; zero: there is none.
func (r *Room) HeldSince() (since clock.Instant) {
	for _, s := range r.sessions.all() {
		if h := s.holds.first; h != nil && (since.IsZero() || h.Acquired.Until(since) > 0) {
			since = h.Acquired
		}
	}
	return since
}

// Empty says that nobody holds, waits or stands in line, for tests.
func (r *Room) Empty() bool {
	return r.sessions.len() == 0 && !r.claimed && (r.waiters == nil || r.line.Len() == 0 && len(r.flows) == 0)
}

// Want says how a call goes on: Behind at a place, or Join in a session.
func (r *Room) Want(w Want, at *Step) (Way, *Follower, *Session) {
	if w.Owner != "" && !w.Once {
		return r.follow(w, at)
	}
	switch {
	case w.Owner != "" || !r.Plain || w.Once && r.claimed:
		return Alone, nil, nil
	case !r.claimed:
		r.claimed = true
		return First, nil, nil
	}
	p := &Follower{terms: w.Terms}
	r.gather()
	r.line.push(p)
	return Behind, p, nil
}

// follow is Want of a named owner: one that has come to hold by now, or whose call
// asks, or stands behind one that does.
func (r *Room) follow(w Want, at *Step) (Way, *Follower, *Session) {
	of := Flow{w.Owner, w.Read}
	for _, s := range r.sessions.all() {
		if s.Named() && !s.Absent() && s.flow() == of && (of.Read || s.Ledger.Meant().Writes > 0) && !s.ended(at.Now) {
			s.reserve()
			return Join, nil, s
		}
	}
	r.gather()
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

// HeldBy returns a session of the owner that a hold of the mode can join, judged by the
// clock, or nil. Whether one that reads may write, Redis decides.
func (r *Room) HeldBy(owner string, read bool, at *Step) *Session {
	for _, s := range r.sessions.all() {
		if s.Name != owner || s.over || s.Absent() || !read && s.Ledger.Meant().Writes == 0 {
			continue
		}
		if s.Check(at); s.over {
			return nil
		}
		return s
	}
	return nil
}

// lineOf returns the line of a flow, or nil where nobody carries a named owner's claim.
func (r *Room) lineOf(of Flow) *line {
	if r.waiters == nil {
		return nil
	}
	if of == (Flow{}) {
		return &r.line
	}
	return r.flows[of]
}

// next returns who is next in line, or nil.
func (r *Room) next(of Flow) *Follower {
	if line := r.lineOf(of); line != nil && line.Len() > 0 {
		return line.Front().Value.(*Follower)
	}
	return nil
}

// give takes a call out of the line with what it has waited for.
func (r *Room) give(p *Follower, what Handover, at *Step) {
	r.lineOf(p.of).Remove(p.spot)
	p.spot, p.Given = nil, what
	at.do(Effect{Do: Wake, Who: p.Who})
}

// inherit hands an entry that is queued to the next in line, if its terms are the same.
func (r *Room) inherit(e *Entry, at *Step) bool {
	front := r.next(e.flow())
	if front == nil || *front.terms != *e.Terms {
		return false
	}
	r.give(front, Handover{Acquisition: e.Acquisition}, at)
	return true
}

// handClaim hands the claim of an acquisition that is over to the next in line.
func (r *Room) handClaim(a *Acquisition, ticket int64, at *Step) {
	if a.front {
		a.front = false
		r.passOn(a.flow(), ticket, at)
	}
}

// passOn hands the claim to the next in line, with a ticket to ask for.
func (r *Room) passOn(of Flow, ticket int64, at *Step) {
	front := r.next(of)
	if front == nil {
		r.unclaim(of)
		return
	}
	r.give(front, Handover{Ticket: ticket}, at)
}

// passHold gives the lock to the next in line: bounded in number and time, so
// that the queue gets its turn, and only while the lease is fresh.
func (r *Room) passHold(s *Session, at *Step) bool {
	front := r.next(Flow{})
	if front == nil || !s.front || *front.terms != *s.Terms || !s.passes(at) ||
		r.passes >= maxPasses || at.Now.Sub(r.since) >= maxTurn {
		return false
	}
	r.passes++
	s.token++
	s.left--
	s.reserve()
	r.give(front, Handover{Acquisition: s.Acquisition}, at)
	return true
}

// Leave takes a call out of the line whose wait has ended. What was handed
// to it at that very moment goes to the next.
func (r *Room) Leave(p *Follower, at *Step) {
	switch {
	case p.spot != nil:
		r.lineOf(p.of).Remove(p.spot)
		p.spot = nil
	case p.Given.Acquisition == nil:
		r.passOn(p.of, p.Given.Ticket, at)
	default:
		p.Given.Acquisition.GiveUp(at)
	}
}

// unclaim lets the next call of the flow ask.
func (r *Room) unclaim(of Flow) {
	if of == (Flow{}) {
		r.claimed = false
		r.noWord(of)
		return
	}
	delete(r.flows, of)
}

// admit reserves a hold for each call that stands behind the session, which has just
// been granted: it is not given up before each had its turn, so that none loses the
// place in the queue for which it has waited.
func (r *Room) admit(s *Session, at *Step) {
	line := r.flows[s.flow()]
	for line.Len() > 0 {
		s.reserve()
		r.give(line.Front().Value.(*Follower), Handover{Acquisition: s.Acquisition, Joined: true}, at)
	}
	r.unclaim(s.flow())
	s.front = false
}

// passAlong gives the lock to the next of its run, while the lease is fresh. Whom it is not
// given to is at the head of the queue when the session is released.
func (r *Room) passAlong(s *Session, at *Step) bool {
	if s.run == nil || !s.passes(at) {
		return false
	}
	for len(s.run.behind) > 0 {
		a := s.run.behind[0]
		s.run.behind = s.run.behind[1:]
		switch {
		case a.over: // its call has gone; Redis hears of that
		case !a.idle() || *a.Terms != *s.Terms:
			s.run.behind = nil
		default:
			s.serve(a, at)
			return true
		}
	}
	return false
}

// word notes that Redis has answered a request of the line's, at some time: whoever
// stands in it has asked nothing, and goes by that.
func (r *Room) word(a *Acquisition, now clock.Instant) {
	if line := a.line(); line != nil {
		line.said = now
	}
}

// noWord forgets what Redis has said: it is out of date.
func (r *Room) noWord(of Flow) {
	if line := r.lineOf(of); line != nil {
		line.said, line.owes = clock.Instant{}, silence{}
	}
}

// Hears returns whether a call that waits since began knows from Redis that the lock is
// taken, and what is the matter with Redis at the end: a call that stands in line, or
// asks by a, unless nil. Who stands behind another knows it where this client holds the
// lock for one of the line, or Redis has said so to the front since, or before and owes
// no answer.
func (r *Room) Hears(w Want, a *Acquisition, began, now clock.Instant) (taken bool, t Trouble) {
	if a != nil && !a.front {
		if a.Entry != nil {
			t = a.Entry.owes.trouble(now)
		}
		return false, t
	}
	of := Flow{}
	if w.Owner != "" {
		of = Flow{w.Owner, w.Read}
	}
	for _, s := range r.sessions.all() {
		if s.front && s.flow() == of && !s.over && !s.ended(now) {
			return true, Trouble{}
		}
	}
	line := r.lineOf(of)
	if line == nil {
		return false, Trouble{}
	}
	t = line.owes.trouble(now)
	return !line.said.IsZero() && (!t.Is() || began.Until(line.said) >= 0), t
}
