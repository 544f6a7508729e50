package room

import (
	"container/list"

	"github.com/relock-go/relock/internal/clock"
)

// Calls of one client wait in a line behind one of them that asks Redis for all: the anonymous calls on a plain lock,
// and the calls of one named owner. All calls of a named owner re-enter what one of them is granted. Without the line,
// a thousand calls would be a thousand entries in Redis' queue.

// A Flow is the calls of one named owner in one mode. Each mode asks for itself: an
// owner that reads is refused when it asks to write. The zero Flow is the anonymous
// calls on a plain lock.
type Flow struct {
	Owner string
	Read  bool
}

// A line is calls that stand behind one of their flow, who asks Redis.
type line struct {
	list.List // of *Follower, first come first

	// What they know of Redis, in which only that one asks:

	said clock.Instant // when it last said, or a hold here showed, that the lock is taken; zero: not yet
	owes silence
}

func (l *line) push(p *Follower) { p.spot = l.PushBack(p) }

// maxRun is how many followers Redis names with a grant, and how many tokens the grant has for them.
const maxRun = 15

// A run passes a fair lock on within a process. Each call has a place in Redis' queue. With a grant, Redis names the
// calls of the same client that stand right behind it. Their turn is next whoever else asks, so passing the lock on to
// them needs no command.
type run struct {
	behind []*Acquisition // who is next, first come first; they are in the queue
	served []*Acquisition // who has had the lock; they are in the queue until the session's release
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
