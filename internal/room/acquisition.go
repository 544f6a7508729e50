package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/trust"
)

// MadeMark begins the generated names of anonymous owners. Users' names must not begin with it, so nobody can re-enter
// an anonymous hold.
const MadeMark = '~'

// An Acquisition is what Redis knows by one nonce. Its requests carry growing numbers (op), so that Redis can tell a
// late copy from a new request.
//
//	Entry   Session   Over
//	set     nil       no      it waits: Redis has not granted the lock yet
//	nil     set       no      it holds
//	set     set       no      it has held, and waits on a condition
//	                  yes     it was released, lost, refused or given up, or another session serves its call
type Acquisition struct {
	Room  *Room
	Terms *Terms // of the handle that asked
	Name  string // of the owner; anonymous: "", or the generated name if it resumes a ticket
	Of    any    // the driver's own record of it
	Read  bool   // it reads, or takes permits of a semaphore

	hasClaim        bool  // it has the claim: it asks Redis for all calls of its flow
	Over            bool  // released, lost, or given up; only the room writes it
	keepsDoubt      bool  // doubt is not cleared any more: a request went unanswered, or a grant was given up
	wanted          bool  // others wait in Redis for what it holds
	wantedByMessage bool  // a message has said so since its latest request or statement
	copies          int16 // requests in flight
	doubt           int64 // server time (ms) until which Redis may still execute a late copy of an unanswered request, or 0
	op              int64 // of its latest request or statement
	Entry           *Entry
	Session         *Session
	// Why it is over (nil: unlocked). While it holds: why the latest renewal that Redis executed extended no trust.
	why error
}

// Named reports whether it is of a named owner. Other calls of that owner may join what it holds.
func (a *Acquisition) Named() bool { return a.Name != "" && a.Name[0] != MadeMark }

// Waits reports whether it waits for a grant.
func (a *Acquisition) Waits() bool { return a.Entry != nil && !a.Over }

// Asks reports whether it waits and Redis has not queued it yet.
func (a *Acquisition) Asks() bool { return a.Entry != nil && !a.Over && !a.Entry.queued }

// Held reports whether it holds, or keeps its grant (Sticky). It does not ask the clock: Session.Check does that.
func (a *Acquisition) Held() bool { return a.Session != nil && a.Entry == nil && !a.Over }

// Why returns why it is over, or nil if it was unlocked or is not over.
func (a *Acquisition) Why() error {
	if !a.Over {
		return nil
	}
	return a.why
}

// LongestLease returns the longest lease that Redis may keep for the acquisition without a renewal. The leases of
// unlocked holds count too, because a lease in Redis never gets shorter.
func (a *Acquisition) LongestLease() time.Duration {
	if a.Session == nil {
		return a.Terms.TTL
	}
	return max(a.Terms.TTL, time.Duration(a.Session.longest)*time.Millisecond)
}

// trustedUntil returns until when a lease can be trusted. sent is when the request was sent, and remaining is what is
// left of the lease, as the answer says. If that is more than any lease that was asked for, the server's clock has been
// set back. The excess does not count, because it vanishes when that clock is set right.
func (a *Acquisition) trustedUntil(sent clock.Instant, remaining time.Duration) clock.Instant {
	return trust.Until(sent, min(remaining, a.LongestLease()))
}

// counted reports whether the counts of its holds in Redis can change. They can for a named owner, and on a read/write
// lock, where an anonymous writer may downgrade.
func (a *Acquisition) counted() bool { return a.Named() || a.Room.Shared }

// passable reports whether its terms let the lock pass from one hold to the next without a command.
func (a *Acquisition) passable() bool {
	return !a.Named() && !a.Terms.Fixed && a.Terms.MaxHold == 0 && a.Terms.Rest.For == 0 && !a.Terms.OneToken
}

// Doubt returns the server time (ms) until which a late copy of an unanswered request could still be executed, or 0 if
// none can. It is negative if a signal is owed: the acquisition is lost and may have been signalled, so the signal
// belongs to another waiter.
func (a *Acquisition) Doubt() int64 {
	if a.Session != nil && (a.Session.awaitOp > 0 || a.Entry != nil) && a.why != nil {
		return -max(a.doubt, 1)
	}
	return a.doubt
}

// settled records how a request ended. f is nil if it was answered. Once all are answered, no late copy is left.
func (a *Acquisition) settled(f *Failure) {
	a.noteSilence(f)
	a.copies--
	if f != nil && f.Unknown {
		a.keepsDoubt = true
	}
	if a.copies == 0 && !a.keepsDoubt {
		a.doubt = 0
	}
}

// NoteWantedMessage takes the message that others wait. It may come before the answer that grants the lock.
func (a *Acquisition) NoteWantedMessage(at *Step) {
	a.wanted, a.wantedByMessage = true, true
	if a.Held() {
		a.markWanted(at)
	}
}

// Revoke takes the message that Redis has ended a grant of the acquisition. If it holds, the session is lost. The message
// may be about an earlier grant: then the release that Lose sends gives back the later one. If it waits, the answer that
// tells of the grant may still come. No answer or message grants anything until the next request.
func (a *Acquisition) Revoke(why error, at *Step) {
	if a.Held() {
		a.Session.Lose(why, at)
	} else if a.Waits() {
		a.Entry.revoked = why
	}
}

// isWanted reports whether others wait for the end of what it holds: in Redis, in its run, or in its line.
func (a *Acquisition) isWanted() bool {
	run := a.Session.run
	return a.wanted || run != nil && run.waiting() > 0 || a.hasClaim && !a.Named() && a.Room.next(Flow{}) != nil
}

// markWanted marks its holds as wanted, and has the holder of each told once. If the grant is kept, it is given back.
func (a *Acquisition) markWanted(at *Step) {
	a.Room.GiveBackKept(at)
	for _, h := range a.Session.holds.all() {
		if !h.Wanted {
			h.Wanted = true
			at.do(Effect{Do: TellWanted, Of: a, Hold: h})
		}
	}
}

// noteWanted takes from an answer or a grant whether others wait for its end. A message (wantedByMessage) may be newer.
func (a *Acquisition) noteWanted(wanted bool, at *Step) {
	if a.wanted = wanted || a.wantedByMessage; a.isWanted() {
		a.markWanted(at)
	}
}

// waitedFor takes how many waiters the answer to a statement has counted. Those of its run do not count here: the
// served ones are released now, and isWanted looks at the others.
func (a *Acquisition) waitedFor(waiting int, at *Step) {
	if run := a.Session.run; run != nil {
		waiting -= len(run.served) + run.waiting()
		run.retire(at)
	}
	a.noteWanted(waiting > 0, at)
}

// GiveUp ends an acquisition that no call wants any more. If it was granted, the lock is passed on or released. If it
// waits in the queue, the next call in line gets its place, and even its entry if that call has the same terms.
func (a *Acquisition) GiveUp(at *Step) {
	switch e := a.Entry; {
	case e != nil && e.Given != nil:
		given := e.Given
		e.Given = nil
		given.GiveUp(at)
		return
	case a.Over:
		return
	case a.Session != nil:
		a.Session.unreserve()
		a.Session.finishApart(at)
		return
	case e.queued && a.hasClaim:
		if front := a.Room.next(a.flow()); front != nil && *front.terms == *a.Terms {
			a.Room.give(front, Given{Acquisition: a}, at) // it takes over the entry
			return
		}
	case !e.queued && a.doubt == 0: // Redis does not know the nonce
		a.leaveRoom(at)
		at.do(Effect{Do: Forget, Of: a})
		return
	}
	a.leaveRoom(at)
	at.do(Effect{Do: Release, Of: a})
}

// leaveRoom ends an acquisition and takes it out of the room. The caller has its nonce released or forgotten.
func (a *Acquisition) leaveRoom(at *Step) {
	r, place := a.Room, int64(PlaceNew)
	a.Over = true
	at.timer(a, clock.Instant{}, 0)
	if a.Session == nil {
		place = a.Entry.Place
	} else {
		a.why = nil
		r.sessions.remove(a.Session)
		r.noteTaken(a) // the lock was taken until now
	}
	r.handClaim(a, place, at)
}

// Away reports whether a session waits on a condition, or for the lock after that.
func (a *Acquisition) Away() bool { return a.Session != nil && a.Entry != nil && !a.Over }

// flow returns the flow for which it asks if it has the claim: the anonymous calls, or those of its owner in its mode.
func (a *Acquisition) flow() Flow {
	if !a.Named() {
		return Flow{}
	}
	return Flow{a.Name, a.Read}
}

// line returns the line behind an acquisition that has the claim, to note there what Redis says; nil if there is none.
func (a *Acquisition) line() *line {
	if !a.hasClaim {
		return nil
	}
	return a.Room.lineOf(a.flow())
}

// noteSilence records whether Redis answered a request: f is nil if it did. If only the caller has left, Redis still
// owes the answer.
func (a *Acquisition) noteSilence(f *Failure) {
	if f != nil && f.Left {
		return
	}
	if a.Entry != nil {
		a.Entry.silence.ended(f)
	}
	if line := a.line(); line != nil {
		line.silence.ended(f)
	}
}

// A Failure says why a request has no answer.
type Failure struct {
	Err     error
	Unknown bool // the script may run, or have run
	Left    bool // the caller's context ended: Redis still owes the answer
}
