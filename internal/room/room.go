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

// The places that a request can ask for; any other is a ticket it has.
const (
	PlaceNone = -1 // do not queue
	PlaceNew  = 0
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

// Empty says that nobody holds, waits or stands in line, for tests.
func (r *Room) Empty() bool {
	return r.sessions.len() == 0 && !r.claimed && (r.waiters == nil || r.line.Len() == 0 && len(r.flows) == 0)
}
