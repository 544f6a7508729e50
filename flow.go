package relock

import (
	"container/list"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/wire"
)

// This file is how the calls of one named owner wait: what one of them is granted,
// all re-enter, ahead of every queue. So one of them asks Redis, for all that stand
// behind it in this client; thousands of entries, and as many sessions in Redis,
// would cost their square there.

// A flow is the calls of one named owner in one mode. Each mode asks for itself: an
// owner that reads is refused when it asks to write. The zero flow is the anonymous
// calls on a plain lock.
type flow struct {
	owner string
	read  bool
}

// flow returns whose claim the session may carry.
func (a *acquisition) flow() flow {
	if !a.named() {
		return flow{}
	}
	return flow{a.name, a.read}
}

func (w *waiting) flow() flow {
	if w.owner == "" {
		return flow{}
	}
	return flow{w.owner, w.lock.read}
}

// A line is calls that stand behind one of their flow, who asks Redis.
type line struct {
	list.List // of *place, first come first

	// What they know of Redis, in which only that one asks:

	said clock.Instant // when it last said, or a hold here showed, that the lock is taken; zero: not yet
	owes silence
}

// lineOf returns the line of a flow, or nil where nobody carries a named owner's
// claim. It needs r.mu.
func (r *room) lineOf(of flow) *line {
	if r.crowd == nil {
		return nil
	}
	if of == (flow{}) {
		return &r.line
	}
	return r.flows[of]
}

// unclaim lets the next call of the flow ask. It needs r.mu.
func (r *room) unclaim(of flow) {
	if of == (flow{}) {
		r.claimed = false
		r.noWord(of)
		return
	}
	delete(r.flows, of)
}

// follow returns a session that the owner holds by now, or asks for one, or stands
// behind the owner's call that does.
func (w *waiting) follow() (*session, error) {
	r, of := w.room, w.flow()
	r.mu.Lock()
	if s := r.reserve(of); s != nil {
		r.mu.Unlock()
		w.joins = true
		return s, nil
	}
	r.gather()
	behind := r.flows[of]
	if behind == nil {
		if r.flows == nil {
			r.flows = make(map[flow]*line)
		}
		r.flows[of] = &line{}
		e := r.newEntry(w.owner, w.lock, true)
		r.mu.Unlock()
		return w.contend(e, wire.PlaceNew)
	}
	p := &place{of: of, terms: &w.lock.terms, turn: make(chan handover, 1)}
	spot := behind.PushBack(p)
	r.mu.Unlock()
	return w.stand(p, spot)
}

// reserve returns a session that the flow's owner has come to hold, with a hold
// reserved for the caller, or nil. It needs r.mu.
func (r *room) reserve(of flow) *session {
	for _, s := range r.sessions.all() {
		if s.named() && s.flow() == of && (of.read || s.ledger.Meant().Writes > 0) && !s.term.Over(r.c.clock.Now()) {
			s.reserve()
			return s
		}
	}
	return nil
}

// admit reserves a hold for each call that stands behind the session, which has just
// been granted: it is not given up before each had its turn, so that none loses the
// place in the queue for which it has waited. It needs r.mu.
func (r *room) admit(s *session) {
	line := r.flows[s.flow()]
	r.unclaim(s.flow())
	s.front = false
	for spot := line.Front(); spot != nil; spot = spot.Next() {
		s.reserve()
		spot.Value.(*place).turn <- handover{acquisition: s.acquisition, joined: true}
	}
}

// covers says that Redis has been told of all holds, on the terms of the handle, and
// lately: one that is reserved needs no further statement. It needs room.mu.
func (s *session) covers(l *Lock, now clock.Instant) bool {
	return !s.over && s.ledger.Knows() && !s.unproven && l.terms == *s.terms && !s.terms.fixed && s.term.Fresh(now, s.terms.ttl)
}
