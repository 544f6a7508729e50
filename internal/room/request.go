package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/trust"
)

// Codes of Redis' answer to a request for the lock.
const (
	Held     = 1
	Queued   = 2
	Busy     = 3
	Late     = -2 // its not-after has passed, or is too far in the future
	OfKind   = -3 // the name is in use as another kind of lock
	Awaits   = 4  // it waits on a condition
	Ended    = -4 // the nonce was given up before
	QueueKey = -5 // the one-key form needs the queue
	Upgrade  = -6 // the owner reads, and wants to write
)

// A Request is one request of an entry.
type Request struct {
	*Entry
	Op       int64
	Sent     clock.Instant
	NotAfter int64 // server time (ms) after which Redis ignores it
}

// Answered takes the answer to a request of a waiting call. acks is how many replicas have acknowledged it. It changes
// said if the grant has ended already. short means that Redis granted the lock, but too few replicas have acknowledged
// it, so the grant must be given up.
func (q Request) Answered(said *Answer, acks int, at *Step) (short bool) {
	e, a := q.Entry, q.Acquisition
	a.settled(nil)
	e.OneKey = e.OneKey && said.Code != QueueKey
	if said.Code == Held && acks < a.Terms.Replicas.N && !a.Held() {
		a.keepDoubt(q.NotAfter) // so that its release covers late copies
		return true
	}
	q.apply(said, acks, at)
	if said.Code == Held && !a.Held() {
		// The lease ran out before the answer came. Redis may not have noticed yet.
		said.Code = Ended
		a.keepDoubt(q.NotAfter)
	}
	return false
}

// Unanswered records that a request failed. oneKey: the next request must name only the hash. ran: the script may have
// run although the call was refused.
func (q Request) Unanswered(f Failure, oneKey, ran bool) {
	if ran {
		q.unanswered = true
	}
	q.settled(&f)
	q.OneKey = oneKey
}

// apply takes an answer. acks is how many replicas have acknowledged it.
func (q Request) apply(said *Answer, acks int, at *Step) {
	e, a := q.Entry, q.Acquisition
	switch {
	case a.Entry != nil && a.Entry != e:
		// It has held since it asked, and waits on a condition now.
	case said.Code == Held && a.Held():
		a.Session.extend(q.Sent, a.trusted(q.Sent, said.Remaining), acks)
		a.waited(said.Wanted, at)
	case said.Code == Held:
		if e.grant(said.Low, said.High, q.Sent, said.Remaining, acks, at) {
			a.Session.handed = said.Remaining < a.Terms.TTL
			a.waited(said.Wanted, at)
		}
	case (said.Code == Queued || said.Code == Awaits) && e.Waits():
		e.queue(q.Op, said, at)
	case said.Code == Busy:
		a.Room.gather()
		a.Room.word(a, at.Now)
	}
	if said.Ghost != "" {
		at.do(Effect{Do: Disown, Nonce: said.Ghost, Of: a, At: q.Sent})
	}
}

// Missed records that a heartbeat failed. Another one follows: at once if the entry was kicked in the meantime, since
// the link may be back. ended means that asking again is hopeless, and the entry has ended.
func (q Request) Missed(f Failure, hopeless bool, at *Step) (ended bool) {
	e := q.Entry
	e.busy = false
	e.settled(&f)
	switch {
	case !e.Waits(): // it was granted or given up while the heartbeat was in flight
	case hopeless:
		e.Fail(f.Err, at)
		return true
	case e.again:
		e.again = false
		e.Kick(at)
	default:
		e.retry(trust.Attempt(e.Terms.TTL), at)
	}
	return false
}

// Beaten takes the answer to a heartbeat. If that is a grant that has ended already, it returns how many such grants
// the entry has had.
func (q Request) Beaten(said Answer, at *Step) (wasted int) {
	e := q.Entry
	e.busy = false
	e.settled(nil)
	switch {
	case !e.Waits(): // it was granted or given up while the heartbeat was in flight
	case said.Code == OfKind, said.Code == Upgrade, said.Code == Ended:
		e.refuse(said, at)
	case said.Code == Late:
		e.retry(trust.Attempt(e.Terms.TTL), at)
	default:
		q.apply(&said, 0, at)
		if e.Waits() && said.Code != Queued && said.Code != Awaits {
			e.wasted++
			wasted = e.wasted
			// The lease ran out before the answer came. The lock was kept from all others for nothing, so the entry
			// does not ask again soon.
			e.retry(time.Minute, at)
		}
		if e.Waits() && e.again {
			e.again = false
			e.Kick(at)
		}
	}
	return wasted
}

// An Answer is Redis' answer to one request.
type Answer struct {
	Code      int64
	Low, High int64         // held: the tokens
	Remaining time.Duration // held: what is left of the lease
	Wanted    bool          // held: others wait for its end
	Place     int64         // queued
	Wait      time.Duration // queued or busy: until the holder's lease ends
	First     bool          // queued: at the head
	Ghost     string        // queued or busy: a session of this client that is in the way
	Kind      string        // OfKind: the kind in use
	More      bool          // there was too much to do for one call
}

// A Refusal is an answer that ended an entry.
type Refusal struct{ Answer } //nolint:errname // an answer, which ends a call as an error does

func (r *Refusal) Error() string { return "the request is refused" }
