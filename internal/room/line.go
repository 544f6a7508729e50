package room

import (
	"container/list"

	"github.com/relock-go/relock/internal/clock"
)

// This file is how calls wait behind one of their own client: anonymous ones on a plain
// lock, and those of one named owner. What one of them is granted all of a named owner
// re-enter, ahead of every queue; thousands of entries, and as many sessions in Redis,
// would cost their square there.

// A Flow is the calls of one named owner in one mode. Each mode asks for itself: an
// owner that reads is refused when it asks to write. The zero Flow is the anonymous
// calls on a plain lock.
type Flow struct {
	Owner string
	Read  bool
}

// flow returns whose claim the acquisition may carry.
func (a *Acquisition) flow() Flow {
	if !a.Named() {
		return Flow{}
	}
	return Flow{a.Name, a.Read}
}

// A line is calls that stand behind one of their flow, who asks Redis.
type line struct {
	list.List // of *Follower, first come first

	// What they know of Redis, in which only that one asks:

	said clock.Instant // when it last said, or a hold here showed, that the lock is taken; zero: not yet
	owes silence
}

// A Follower is a call that stands in line.
type Follower struct {
	Who   any      // to be woken when Given is there
	Given Handover // once it has left the line

	of    Flow
	terms *Terms
	spot  *list.Element // nil: it has left
}

// A Handover gives the front of the line one of: a hold (of an acquisition that has been
// granted), a part in what its owner holds (Joined), the process' place in the queue
// (an acquisition that waits), or the claim alone, with the ticket to ask for.
type Handover struct {
	Acquisition *Acquisition
	Joined      bool
	Ticket      int64
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

func (l *line) push(p *Follower) { p.spot = l.PushBack(p) }

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

// passes says that another hold can follow on the session's last without a command.
func (s *Session) passes(at *Step) bool {
	return !s.over && !s.unproven && !at.Closing && s.passable() && s.left > 0 && s.fresh(s.Terms.TTL, at.Now)
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

// A Way is how a call goes on that wants the lock.
type Way int

// The ways.
const (
	Alone  Way = iota // it asks Redis for itself
	First             // it asks for all that will stand behind it: it carries the claim
	Behind            // it stands in line
	Join              // its owner holds, and a hold is reserved for it
)

// A Want is a call that wants the lock.
type Want struct {
	Owner string // "": a new one
	Read  bool
	Once  bool // one attempt, no waiting
	Terms *Terms
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
