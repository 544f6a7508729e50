package room

import (
	"container/list"
)

// Calls of one client wait in a line behind one of them that asks Redis for all: the anonymous calls on a plain lock,
// and the calls of one named owner in one mode. When an owner's call is granted the lock, the calls in its line
// re-enter that grant. Without the line, a thousand calls would be a thousand entries in Redis' queue.

// A Flow names the calls of one named owner in one mode. Each mode asks Redis for itself, because an owner that reads
// is refused when it asks to write. The zero Flow stands for the anonymous calls on a plain lock.
type Flow struct {
	Owner string
	Read  bool
}

// A line is the calls that stand behind the call of their flow that asks Redis.
type line struct {
	list.List // of *Follower, in order of arrival

	taken   bool    // Redis, or a hold here, has shown to the calls in this line that the lock is taken
	silence silence // whether Redis owes the call in front an answer
}

func (l *line) push(p *Follower) { p.spot = l.PushBack(p) }

// maxRun is how many acquisitions Redis names with a grant as its run, and how many tokens a grant takes for them.
const maxRun = 15

// A run is for passing a fair lock on within a process. Each call has a place in Redis' queue. With a grant, Redis
// names the calls of the same client that stand right behind it. Their turn is next whoever else asks, so passing the
// lock on to them needs no command.
type run struct {
	behind []*Acquisition // next in the queue, in order
	served []*Acquisition // they have had the lock, and stay in Redis' queue until the session is renewed or released
}

// retire releases the served acquisitions, each by a request of its own. They send no heartbeats, so nobody here would
// know when their places in the queue end.
func (r *run) retire(at *Step) {
	for _, a := range r.served {
		at.do(Effect{Do: Release, Of: a})
	}
	r.served = nil
}

// waiting returns how many acquisitions of the run still wait.
func (r *run) waiting() (n int) {
	for _, a := range r.behind {
		if !a.Over {
			n++
		}
	}
	return n
}

// A Follower is a call that stands in line.
type Follower struct {
	Who   any   // woken when Given is set
	Given Given // what it was given when it left the line

	flow  Flow
	terms *Terms
	spot  *list.Element // nil: it has left
}

// A Given is what the first call of a line gets. It is one of:
//   - an acquisition that holds: the lock, passed on within the process
//   - an acquisition that holds, and Joined: one more hold beside those of its owner
//   - an acquisition that waits: the place in Redis' queue
//   - no acquisition: the claim, with the place to ask for
type Given struct {
	Acquisition *Acquisition
	Joined      bool
	Place       int64
}

// A Way says how a call for the lock goes on.
type Way int

// The ways.
const (
	Alone  Way = iota // it asks Redis for itself
	First             // it has the flow's claim: it asks Redis for itself and for all that stand behind it
	Behind            // it stands in line
	Retake            // it gets the grant that its client has kept (Terms.Sticky)
)

// A Want is a call that wants the lock.
type Want struct {
	Owner  string // "": anonymous
	Read   bool
	Once   bool // one attempt, no waiting
	Unlock bool // the handle's Unlock will end its hold
	Terms  *Terms
}

// flow returns the flow of the call.
func (w Want) flow() Flow {
	if w.Owner == "" {
		return Flow{}
	}
	return Flow{w.Owner, w.Read}
}
