package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/trust"
)

// What Redis says to a request for the lock.
const (
	Held     = 1
	Queued   = 2
	Busy     = 3
	Late     = -2 // not-after has passed or is too far ahead
	OfKind   = -3 // the name is another kind of lock now
	Awaits   = 4  // it waits on a condition
	Ended    = -4 // the nonce is one that was given up
	QueueKey = -5 // the one-key form needs the queue
	Upgrade  = -6 // the owner reads, and wants to write
)

// A Request is one request of one entry.
type Request struct {
	*Entry
	Op       int64
	Sent     clock.Instant
	NotAfter int64 // server ms: what arrives later does not count
}

// Answered takes the answer to a request of its own call, which so many replicas have
// acknowledged, and makes of it what it has come to here, which may be another one. short:
// Redis has granted it, and too few replicas have that: it is to be given up.
func (q Request) Answered(said *Answer, acks int, at *Step) (short bool) {
	e, a := q.Entry, q.Acquisition
	a.settled(nil)
	e.OneKey = e.OneKey && said.Code != QueueKey
	if said.Code == Held && acks < a.Terms.Replicas.N && !a.Held() {
		a.keepDoubt(q.NotAfter) // it is to be released
		return true
	}
	q.apply(said, acks, at)
	if said.Code == Held && !a.Held() {
		// The lease had run out before its answer came; Redis may not know yet.
		said.Code = Ended
		a.keepDoubt(q.NotAfter)
	}
	return false
}

// Unanswered notes that a request failed. oneKey: the next is to name the hash alone.
// ran: the script may have run, though its caller was refused.
func (q Request) Unanswered(f Failure, oneKey, ran bool) {
	if ran {
		q.unanswered = true
	}
	q.settled(&f)
	q.OneKey = oneKey
}

// apply notes an answer that so many replicas have acknowledged.
func (q Request) apply(said *Answer, acks int, at *Step) {
	e, a := q.Entry, q.Acquisition
	switch {
	case a.Entry != nil && a.Entry != e:
		// It has held since that was asked, and waits on a condition now.
	case said.Code == Held && a.Held():
		a.Session.extend(q.Sent, a.trusted(q.Sent, said.Remaining), acks)
	case said.Code == Held:
		if e.grant(said.Low, said.High, q.Sent, said.Remaining, acks, at) {
			a.Session.handed = said.Remaining < a.Terms.TTL
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

// Missed notes that a heartbeat failed. Another follows, at once where there was a look
// meanwhile: the link may be back. Where asking again is in vain the entry has ended.
func (q Request) Missed(f Failure, hopeless bool, at *Step) (ended bool) {
	e := q.Entry
	e.busy = false
	e.settled(&f)
	switch {
	case !e.Waits(): // it has been granted while the heartbeat was under way, or given up
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

// Beaten takes the answer to a heartbeat. It returns how many grants had ended when
// they were heard of, where this is one.
func (q Request) Beaten(said Answer, at *Step) (wasted int) {
	e := q.Entry
	e.busy = false
	e.settled(nil)
	switch {
	case !e.Waits(): // it has been granted while the heartbeat was under way, or given up
	case said.Code == OfKind, said.Code == Upgrade, said.Code == Ended:
		e.refuse(said, at)
	case said.Code == Late:
		e.retry(trust.Attempt(e.Terms.TTL), at)
	default:
		q.apply(&said, 0, at)
		if e.Waits() && said.Code != Queued && said.Code != Awaits {
			e.wasted++
			wasted = e.wasted
			// The lease had run out before the answer came: the lock was kept from all others
			// in vain, and is not to be again soon.
			e.retry(time.Minute, at)
		}
		if e.Waits() && e.again {
			e.again = false
			e.Kick(at)
		}
	}
	return wasted
}

// An Answer is what Redis says to one request.
type Answer struct {
	Code      int64
	Low, High int64         // held: the tokens
	Remaining time.Duration // held: of the lease
	Ticket    int64         // queued
	Wait      time.Duration // queued or busy: until the holder's lease ends
	First     bool          // queued: at the head
	Ghost     string        // queued or busy: this client's own session that is in the way
	Kind      string        // OfKind: the one in use
	More      bool          // what there was to do was too much for one call
}

// A Refusal is the answer that has ended an entry.
type Refusal struct{ Answer } //nolint:errname // an answer, which ends a call as an error does

func (r *Refusal) Error() string { return "the request is refused" }
