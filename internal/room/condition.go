package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
)

// This file is how a session waits on a condition: under its own nonce it becomes an entry
// once more, and keeps its holds, which are not trusted until it is granted the lock again.

// An Await is how an entry waits that has held before.
type Await struct {
	Op     int64  // of the statement by which it gave up its holds; all copies have it
	Writes uint32 // holds that it is to have again
	Token  int64  // of those
	Shaken any    // to be woken when its server may have lost a signal; nil: it has been, or nobody
}

// A Parting is what Redis says of a session that is to wait on a condition.
type Parting int64

// The partings.
const (
	OwnerElsewhere Parting = iota - 2 // its owner also holds by another session
	OwnerReads                        // or reads
	NotHeld                           // any more
	Parted                            // it waits, or has since it was told to
)

// Away says that a session waits on a condition, or for the lock after that.
func (a *Acquisition) Away() bool { return a.Session != nil && a.Entry != nil && !a.over }

// Absent says that its holds are not to be trusted though nothing is lost: it is away, or
// its call has yet to return.
func (s *Session) Absent() bool { return !s.over && (s.waking || s.Entry != nil) }

// Holds are its holds, the oldest first.
func (s *Session) Holds() (all []*Hold) {
	for _, h := range s.holds.all() {
		all = append(all, h)
	}
	return all
}

// Part has a session wait, unless it cannot: for nobody here it holds from then on. What it
// has to be told to Redis is in the entry.
func (s *Session) Part(at *Step) (e *Entry, why Parting) {
	s.Check(at)
	n := s.Ledger.Kept()
	switch {
	case s.over || s.Absent():
		return nil, NotHeld
	case n.Writes == 0:
		return nil, NotHeld
	}
	op := s.op + 1
	s.op += 2 // the second stands for a refusal of the first
	e = &Entry{Acquisition: s.Acquisition, Await: &Await{Op: op, Writes: n.Writes, Token: s.token}}
	e.sent = append(e.one[:0], stamp{op, at.Now})
	s.Acquisition.Entry = e
	s.dismiss(at)
	s.Room.sessions.remove(s)
	at.timer(s.Acquisition, clock.Instant{}, 0)
	return e, Parted
}

// Rejoin undoes a Part of which Redis has done nothing.
func (e *Entry) Rejoin(at *Step) {
	s := e.Session
	if !e.Waits() {
		return
	}
	s.Acquisition.Entry = nil
	s.Room.sessions.add(s)
	s.busy = false // a renewal that was under way has been given up, or is stale
	s.schedule(at)
	s.Check(at)
	s.CatchUp(at) // a hold may have ended meanwhile
}

// Parted notes that Redis has the waiter. doubted: what has become of it since is to be asked.
func (e *Entry) Parted(doubted bool, at *Step) {
	if !e.Waits() {
		return // it holds again
	}
	e.Room.handClaim(e.Acquisition, PlaceNew, at)
	e.queue(e.Await.Op, &Answer{Code: Awaits}, at)
	if doubted {
		e.Kick(at)
	}
}

// Shake wakes a waiter on a condition whose server may be another one: it may have lost a
// signal, and a wake-up too many does no harm.
func (e *Entry) Shake(at *Step) {
	if e.Await != nil && e.Await.Shaken != nil {
		at.do(Effect{Do: Wake, Who: e.Await.Shaken})
		e.Await.Shaken = nil
	}
}

// Silent is for how long Redis owes the entry an answer.
func (e *Entry) Silent(now clock.Instant) time.Duration {
	if e.owes.since.IsZero() {
		return 0
	}
	return now.Sub(e.owes.since)
}

// wake has the session hold again.
func (s *Session) wake(a *Await, token int64, at *Step) {
	s.busy, s.several, s.handed, s.fails, s.lost = false, false, false, 0, nil
	s.since, s.waking = a.Op, true
	s.Ledger.Resume(ledger.Counts{Writes: a.Writes}, a.Op)
	for _, h := range s.holds.all() {
		h.Token, h.Acquired = token, at.Now
		h.start()
	}
}

// Resume ends a wait whose call returns: the holds are trusted again.
func (s *Session) Resume(at *Step) {
	s.waking = false
	for _, h := range s.holds.all() {
		h.start() // again, as when it was granted
	}
	s.schedule(at)
	s.CatchUp(at)
}

// Number is what the next signal of the session is told apart by.
func (s *Session) Number() int64 {
	s.op++
	return s.op
}

// Owes says that who ends the acquisition has lost it, and may have been signalled: the
// signal is somebody else's.
func (a *Acquisition) Owes() bool {
	return a.Session != nil && (a.Session.since > 0 || a.Entry != nil) && a.lost != nil
}

// stale says that the session has given up its holds since the statement was made: the
// answer is of what it held before.
func (st *Statement) stale() bool {
	return st.Session.Away() || st.Said.Op < st.Session.since
}
