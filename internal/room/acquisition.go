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
//	                  yes     it was released, lost, refused or given up, or another session has its hold
type Acquisition struct {
	Room  *Room
	Terms *Terms // of the handle that asked
	Name  string // of the owner; anonymous: "", or begins with MadeMark once it was handed over
	Of    any    // the driver's own record of it
	Read  bool   // in shared mode

	carries    bool  // the claim of its flow: it asks Redis for all calls of the flow in line
	Over       bool  // released, lost, or given up; only the room writes it
	keepsDoubt bool  // doubt is not cleared any more: a request went unanswered, or a grant was given up
	wanted     bool  // others wait in Redis for what it holds
	news       bool  // a message has said so since it last told Redis anything
	copies     int16 // requests in flight
	doubt      int64 // server time (ms) until which Redis may still execute a late copy of an unanswered request, or 0
	op         int64 // of its latest request or statement
	Entry      *Entry
	Session    *Session
	// why it is over (nil: unlocked). While it holds: why the latest renewal extended nothing though Redis has it.
	why error
}

// Named reports whether its owner has a name. Then other calls of the owner may enter what it holds.
func (a *Acquisition) Named() bool { return a.Name != "" && a.Name[0] != MadeMark }

// Waits reports whether it waits for a grant.
func (a *Acquisition) Waits() bool { return a.Entry != nil && !a.Over }

// Asks reports whether it waits, and Redis has not queued it.
func (a *Acquisition) Asks() bool { return a.Entry != nil && !a.Over && !a.Entry.queued }

// Held reports whether it holds.
func (a *Acquisition) Held() bool { return a.Session != nil && a.Entry == nil && !a.Over }

// Why returns why it is over, or nil if it was unlocked or is not over.
func (a *Acquisition) Why() error {
	if !a.Over {
		return nil
	}
	return a.why
}

// LongestLease returns how long Redis keeps the acquisition at most without a renewal. Unlocked holds count too, because
// a lease in Redis never gets shorter.
func (a *Acquisition) LongestLease() time.Duration {
	if a.Session == nil {
		return a.Terms.TTL
	}
	return max(a.Terms.TTL, time.Duration(a.Session.longest)*time.Millisecond)
}

// trustedUntil returns until when a lease can be trusted, from the time at which the request was sent and the remaining
// lease in its answer. No lease is longer than the longest that was asked for. It only looks longer if the server's
// clock has been set back, and it ends at once when that clock is set right.
func (a *Acquisition) trustedUntil(sent clock.Instant, remaining time.Duration) clock.Instant {
	remaining = min(remaining, a.LongestLease())
	return trust.Until(sent, remaining)
}

// counted reports whether the number of holds can change: for a named owner, and on a read/write lock, where an
// anonymous writer may downgrade.
func (a *Acquisition) counted() bool { return a.Named() || a.Room.Shared }

// passable reports whether one hold may follow another on these terms without a command.
func (a *Acquisition) passable() bool {
	return !a.Named() && !a.Terms.Fixed && a.Terms.MaxHold == 0 && a.Terms.Rest.For == 0 && !a.Terms.OneToken
}

// Doubt returns the server time (ms) until which a late copy of an unanswered request could still be executed, or 0 if
// none can. It is negative if a signal is owed: the acquisition is lost and may have been signalled, so the signal
// belongs to another waiter.
func (a *Acquisition) Doubt() int64 {
	if a.Session != nil && (a.Session.since > 0 || a.Entry != nil) && a.why != nil {
		return -max(a.doubt, 1)
	}
	return a.doubt
}

// mustRelease records that Redis has granted a request whose grant is given up. GiveUp then sends a release, which also
// has Redis refuse late copies of the request, until notAfter.
func (a *Acquisition) mustRelease(notAfter int64) {
	a.keepsDoubt, a.doubt = true, max(a.doubt, notAfter)
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

// NoteWantedMessage takes a message: others wait for what it holds. It may come before the answer that grants the lock.
func (a *Acquisition) NoteWantedMessage(at *Step) {
	a.wanted, a.news = true, true
	if a.Held() {
		a.markWanted(at)
	}
}

// isWanted reports whether others wait for the end of what it holds: in Redis, in its run, or in its line.
func (a *Acquisition) isWanted() bool {
	run := a.Session.run
	return a.wanted || run != nil && run.waiting() > 0 || a.carries && !a.Named() && a.Room.next(Flow{}) != nil
}

// markWanted marks its holds as wanted, each once. A grant that is kept is given back.
func (a *Acquisition) markWanted(at *Step) {
	a.Room.GiveBackKept(at)
	for _, h := range a.Session.holds.all() {
		if !h.Wanted {
			h.Wanted = true
			at.do(Effect{Do: TellWanted, Of: a, Hold: h})
		}
	}
}

// noteWanted takes what Redis says in an answer or with a grant: whether others wait for its end. News may be newer.
func (a *Acquisition) noteWanted(wanted bool, at *Step) {
	if a.wanted = wanted || a.news; a.isWanted() {
		a.markWanted(at)
	}
}

// waitedFor takes how many wait in Redis for its end, as the answer to a statement says. Its run is not counted: those
// that were served are about to leave, and isWanted looks at the others.
func (a *Acquisition) waitedFor(waiting int, at *Step) {
	if run := a.Session.run; run != nil {
		waiting -= len(run.served) + run.waiting()
		run.retire(at)
	}
	a.noteWanted(waiting > 0, at)
}

// GiveUp ends an acquisition that no call wants any more. If it was granted, the lock is passed on or released. A place
// in the queue goes to the next call in line, which takes over the entry if it has the same terms.
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
	case e.queued && a.carries:
		if front := a.Room.next(a.flow()); front != nil && *front.terms == *a.Terms {
			a.Room.give(front, Given{Acquisition: a}, at) // it takes over the entry
			return
		}
	case !e.queued && a.doubt == 0: // Redis has nothing of the nonce
		a.end(at)
		at.do(Effect{Do: Forget, Of: a})
		return
	}
	a.end(at)
	at.do(Effect{Do: Release, Of: a})
}

// end removes an acquisition from the room. The driver still knows its nonce.
func (a *Acquisition) end(at *Step) {
	r, place := a.Room, int64(PlaceNew)
	a.Over = true
	at.timer(a, clock.Instant{}, 0)
	if a.Session == nil {
		place = a.Entry.Place
	} else {
		a.why = nil
		r.sessions.remove(a.Session)
		r.word(a, at.Now) // the lock was taken until now
	}
	r.handClaim(a, place, at)
}

// Away reports whether a session waits on a condition, or for the lock after its wait.
func (a *Acquisition) Away() bool { return a.Session != nil && a.Entry != nil && !a.Over }

// flow returns the flow of the calls that it asks for: the anonymous ones, or those of its owner in its mode.
func (a *Acquisition) flow() Flow {
	if !a.Named() {
		return Flow{}
	}
	return Flow{a.Name, a.Read}
}

// idle reports whether it only waits in the queue: it has never held, and no request is in flight that would put it back
// into the queue.
func (a *Acquisition) idle() bool {
	return a.Session == nil && a.doubt == 0
}

// line returns the line behind the acquisition, or nil.
func (a *Acquisition) line() *line {
	if !a.carries {
		return nil
	}
	return a.Room.lineOf(a.flow())
}

// noteSilence records whether Redis answered a request: f is nil if it did. If only the caller has gone, Redis still
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

// A Failure says how a request went unanswered.
type Failure struct {
	Err     error
	Unknown bool // the script may run, or have run
	Left    bool // the caller's context ended: Redis still owes the answer
}
