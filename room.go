package relock

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/wire"
)

const (
	// A free lock is passed on within the process at most so often and for so
	// long before the queue in Redis gets its turn.
	maxPasses = 128
	maxTurn   = 10 * time.Millisecond
)

// A room is what this client knows of one lock: who holds it here, and who
// waits here. Anonymous calls on a plain lock, and those of one named owner, send one
// of them to Redis for all, who carries the claim; the others stand in line.
type room struct {
	*family
	hash string // its key
	ear  *ear
	skew atomic.Int64 // of the lock's server: its clock less ours in ms, as last seen
	refs int32        // guarded by c.mu: calls and acquisitions that use the room

	mu       sync.Mutex   // guards the following fields, and all acquisitions and holds of the room
	sessions few[session] // that hold: where a named owner re-enters
	todo     []func()     // what follows from what has happened, and is done without mu
	claimed  bool         // an anonymous call waits in Redis or holds, on behalf of the line
	passes   uint8        // holds passed on locally since the grant
	since    clock.Instant
	*crowd   // nil until anybody waits
}

// A crowd is what a room has of those who wait. Its room's mu guards it.
type crowd struct {
	line  line           // of the anonymous calls
	flows map[flow]*line // of named owners; there while a claim is carried
	beat  clock.Instant  // when the heartbeats of the room's waiters are due, as last set
}

// then has something done once mu is not held any more: hooks are called, contexts
// ended and goroutines started by it. It needs r.mu.
func (r *room) then(todo ...func()) { r.todo = append(r.todo, todo...) }

// unlock gives mu back, and does what has followed.
func (r *room) unlock() { runAll(r.unlockFirst()) }

// unlockFirst gives mu back, and leaves it to the caller to do what has followed: it
// may have more to note before a hook is called.
func (r *room) unlockFirst() (todo []func()) {
	todo, r.todo = r.todo, nil
	r.mu.Unlock()
	return todo
}

// keys are made when they are sent: a held lock needs one of them, now and then.
func (r *room) keys() key.Keys { return key.Of(r.c.cfg.prefix, r.hash) }

// gather makes sure that the room has a crowd. It needs r.mu.
func (r *room) gather() {
	if r.crowd == nil {
		r.crowd = &crowd{}
	}
}

// remove needs r.mu.
func (r *room) remove(s *session) {
	if i := r.sessions.index(s); i >= 0 {
		r.sessions.remove(i)
	}
}

// align returns when a heartbeat that is due at the given instant is to be sent:
// with the others of the room where those come a little earlier, so that a
// crowd of waiters costs few commands however they came. It needs r.mu.
func (r *room) align(now, due clock.Instant, slack time.Duration) clock.Instant {
	r.gather()
	if early := r.beat.Until(due); early < 0 || early > slack || now.Reached(r.beat) {
		r.beat = due
	}
	return r.beat
}

// A place is a call that stands in line.
type place struct {
	of    flow
	terms *terms
	turn  chan handover // cap 1, so that it is filled under room.mu; filled once, after leaving the line
}

// A handover gives the front of the line one of: a hold (of an acquisition that has been
// granted), a part in what its owner holds (joined), the process' place in the queue
// (an acquisition that waits), or the claim alone, with the ticket to ask for.
type handover struct {
	acquisition *acquisition
	joined      bool
	ticket      int64
}

// front returns who is next in line, or nil. It needs r.mu.
func (r *room) front(of flow) *list.Element {
	if line := r.lineOf(of); line != nil {
		return line.Front()
	}
	return nil
}

// giveUp ends an acquisition that nobody waits for any more. A grant that has come
// is passed on; a place in the queue goes to the next in line on the same terms.
func (a *acquisition) giveUp() {
	r := a.room
	r.mu.Lock()
	defer r.unlock()
	switch e := a.entry; {
	case a.over:
		return
	case a.session != nil:
		a.session.unreserve()
		if a.named() || !r.passHold(a.session, r.c.clock.Now()) {
			r.then(a.session.finishApart)
		}
		return
	case e.queued && a.front && r.inherit(e):
		return
	case !e.queued && a.doubt.until == 0: // Redis does not know the nonce
		a.end()
		r.c.unregister(a)
		return
	}
	a.end()
	r.then(a.releaseLater)
}

// end takes an acquisition off everything but the client's list of nonces. It needs room.mu.
func (a *acquisition) end() {
	r, ticket := a.room, int64(wire.PlaceNew)
	a.over = true
	r.c.watchdog.Drop(&a.task)
	if a.session == nil {
		ticket = a.entry.ticket
	} else {
		a.lost = nil
		r.remove(a.session)
		r.word(a, r.c.clock.Now()) // it was taken until now
	}
	r.handClaim(a, ticket)
}

// inherit hands an entry that is queued to the next in line, if its terms are the same. It needs r.mu.
func (r *room) inherit(e *entry) bool {
	front := r.front(e.flow())
	if front == nil || *front.Value.(*place).terms != *e.terms {
		return false
	}
	r.lineOf(e.flow()).Remove(front)
	front.Value.(*place).turn <- handover{acquisition: e.acquisition}
	return true
}

// handClaim hands the claim of an acquisition that is over to the next in line. It needs r.mu.
func (r *room) handClaim(a *acquisition, ticket int64) {
	if a.front {
		a.front = false
		r.passOn(a.flow(), ticket)
	}
}

// passOn hands the claim to the next in line, with a ticket to ask for. It needs r.mu.
func (r *room) passOn(of flow, ticket int64) {
	front := r.front(of)
	if front == nil {
		r.unclaim(of)
		return
	}
	r.lineOf(of).Remove(front)
	front.Value.(*place).turn <- handover{ticket: ticket}
}

// passHold gives the lock to the next in line: bounded in number and time, so
// that the queue gets its turn, and only while the lease is fresh. It needs r.mu.
func (r *room) passHold(s *session, now clock.Instant) bool {
	front := r.front(flow{})
	if front == nil || s.over || s.unproven || !s.front || r.c.isClosing() || !s.passable() ||
		*front.Value.(*place).terms != *s.terms || s.left == 0 ||
		r.passes >= maxPasses || now.Sub(r.since) >= maxTurn || !s.term.Fresh(now, s.terms.ttl) {
		return false
	}
	r.line.Remove(front)
	r.passes++
	s.next++
	s.left--
	s.reserve()
	front.Value.(*place).turn <- handover{acquisition: s.acquisition}
	return true
}

// leaveLine takes a call out of the line whose wait has ended. What was handed
// to it at that very moment goes to the next.
func (r *room) leaveLine(p *place, spot *list.Element) {
	r.mu.Lock()
	select {
	case got := <-p.turn:
		if got.acquisition == nil {
			r.passOn(p.of, got.ticket)
		} else {
			r.then(got.acquisition.giveUp)
		}
	default:
		r.lineOf(p.of).Remove(spot)
	}
	r.unlock()
}
