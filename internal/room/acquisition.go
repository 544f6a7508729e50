package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/trust"
)

// MadeMark begins the owners' names that are made here, and no other: nobody may enter
// an anonymous hold, which is passed on as if nobody had.
const MadeMark = '~'

// An Acquisition is what Redis knows by one nonce. It waits, as an Entry; then it
// holds, as a Session; then it is over, and forgotten once Redis has heard of that.
// Its requests carry growing numbers (op), so that Redis can tell a late copy from news.
type Acquisition struct {
	Room  *Room
	Terms *Terms // of the handle that asked
	Name  string // the owner's: of an anonymous hold "", or begins with MadeMark once it was handed over
	Of    any    // what it is to who drives the room
	Read  bool   // asked for in shared mode

	front      bool  // carries its flow's claim
	over       bool  // released, lost, or given up
	unanswered bool  // a request has gone unanswered for good
	copies     int32 // requests in flight
	doubt      int64 // until when Redis may act on a request of which nobody here would hear, in ms of its clock; 0: it cannot
	op         int64
	Entry      *Entry   // nil: it does not wait any more
	Session    *Session // nil: it has not been granted. With an Entry: it waits on a condition
	// lost is why it is over, where no unlock ended it; while it holds, why the latest
	// renewal extended nothing, though Redis has it.
	lost error
}

// Named says that its owner has been given a name: others may enter what it holds.
func (a *Acquisition) Named() bool { return a.Name != "" && a.Name[0] != MadeMark }

// Waits says that it has not been granted, and may be.
func (a *Acquisition) Waits() bool { return a.Entry != nil && !a.over }

// Held says that it has been granted, and has not ended.
func (a *Acquisition) Held() bool { return a.Session != nil && a.Entry == nil && !a.over }

// Over says that it has ended.
func (a *Acquisition) Over() bool { return a.over }

// Front says that it carries its flow's claim.
func (a *Acquisition) Front() bool { return a.front }

// Why is why it is over, where no unlock ended it.
func (a *Acquisition) Why() error {
	if !a.over {
		return nil
	}
	return a.lost
}

// Lasts is how long Redis keeps what the acquisition has there, at most. Holds that
// are unlocked count: a lease never gets shorter.
func (a *Acquisition) Lasts() time.Duration {
	if a.Session == nil {
		return a.Terms.TTL
	}
	return max(a.Terms.TTL, time.Duration(a.Session.longest)*time.Millisecond)
}

// trusted returns until when a lease can be trusted of which a request sent at the
// given time was told the rest. No lease is longer than was ever asked for; it only
// looks so while the server's clock is behind the one it was granted by, and it ends
// at once when that clock is put right.
func (a *Acquisition) trusted(sent clock.Instant, remaining time.Duration) clock.Instant {
	remaining = min(remaining, a.Lasts())
	return trust.Until(sent, remaining)
}

// counted says that the number of the acquisition's holds can change: a named owner's,
// and that of a read/write lock, where an anonymous writer may downgrade.
func (a *Acquisition) counted() bool { return a.Named() || a.Room.Shared }

// passable says that holds of these terms can follow each other without a command.
func (a *Acquisition) passable() bool {
	return !a.Named() && !a.Terms.Fixed && a.Terms.MaxHold == 0 && a.Terms.Rest.For == 0 && !a.Terms.Apart
}

// Undone says that the name is not to rest after it: no call has had a hold of it, or
// who has had one says that it does not count.
func (a *Acquisition) Undone() bool {
	return a.Terms.Rest.For > 0 && (a.Session == nil || a.Session.Used <= 0)
}

// Doubt is until when Redis may act on a request of which nobody here would hear, in
// ms of its clock; 0: it cannot.
func (a *Acquisition) Doubt() int64 { return a.doubt }

// doubts notes that a request leaves that counts until then.
func (a *Acquisition) doubts(notAfter int64) {
	a.copies++
	a.doubt = max(a.doubt, notAfter)
}

// keepDoubt is for a request that has come true in Redis and not here.
func (a *Acquisition) keepDoubt(notAfter int64) {
	a.unanswered, a.doubt = true, max(a.doubt, notAfter)
}

// settled notes how a request for the lock ended; nil: it was answered.
func (a *Acquisition) settled(f *Failure) {
	a.paid(f)
	a.copies--
	if f != nil && f.Unknown {
		a.unanswered = true
	}
	if a.copies == 0 && !a.unanswered {
		a.doubt = 0
	}
}

// GiveUp ends an acquisition that nobody waits for any more. A grant that has come
// is passed on; a place in the queue goes to the next in line on the same terms.
func (a *Acquisition) GiveUp(at *Step) {
	switch e := a.Entry; {
	case e != nil && e.given != nil:
		given := e.given
		e.given = nil
		given.GiveUp(at)
		return
	case a.over:
		return
	case a.Session != nil:
		a.Session.unreserve()
		a.Session.finishApart(at)
		return
	case e.queued && a.front && a.Room.inherit(e, at):
		return
	case !e.queued && a.doubt == 0: // Redis does not know the nonce
		a.end(at)
		at.do(Effect{Do: Forget, Of: a})
		return
	}
	a.end(at)
	at.do(Effect{Do: Release, Of: a})
}

// end takes an acquisition off everything but the driver's list of nonces.
func (a *Acquisition) end(at *Step) {
	r, ticket := a.Room, int64(PlaceNew)
	a.over = true
	at.timer(a, clock.Instant{}, 0)
	if a.Session == nil {
		ticket = a.Entry.ticket
	} else {
		a.lost = nil
		r.sessions.remove(a.Session)
		r.word(a, at.Now) // it was taken until now
	}
	r.handClaim(a, ticket, at)
}

// Away says that a session waits on a condition, or for the lock after that.
func (a *Acquisition) Away() bool { return a.Session != nil && a.Entry != nil && !a.over }

// Owes says that who ends the acquisition has lost it, and may have been signalled: the
// signal is somebody else's.
func (a *Acquisition) Owes() bool {
	return a.Session != nil && (a.Session.since > 0 || a.Entry != nil) && a.lost != nil
}

// flow returns whose claim the acquisition may carry.
func (a *Acquisition) flow() Flow {
	if !a.Named() {
		return Flow{}
	}
	return Flow{a.Name, a.Read}
}

// idle says that it is in the queue, has no name, has not held, and that nothing is under way by which
// Redis would put it back there.
func (a *Acquisition) idle() bool {
	return a.Session == nil && !a.Named() && a.Entry.queued && !a.Entry.busy && a.copies == 0 && a.doubt == 0
}

// line returns who stands behind the acquisition, or nil.
func (a *Acquisition) line() *line {
	if !a.front {
		return nil
	}
	return a.Room.lineOf(a.flow())
}

// paid notes how a request ended; nil: it was answered. Redis owes the answer still
// where only its caller has gone.
func (a *Acquisition) paid(f *Failure) {
	if f != nil && f.Left {
		return
	}
	if a.Entry != nil {
		a.Entry.owes.ended(f)
	}
	if line := a.line(); line != nil {
		line.owes.ended(f)
	}
}

// A Failure is how a request went unanswered.
type Failure struct {
	Err     error
	Unknown bool // the script may run, or have run
	Left    bool // the caller has gone: Redis owes the answer still
}
