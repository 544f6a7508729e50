package room

import (
	"errors"
	"iter"
	"math"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/trust"
)

// A Session is an acquisition that Redis has granted, from then to the last unlock
// of the holds that share it.
type Session struct {
	*Acquisition

	busy bool // a renewal is in flight
	// several: Redis has it as one of several that hold, whose statements name the queue.
	several bool
	handed  bool // granted by a message, for the rest of the entry's lease
	// unproven: replicas that the terms ask for have not acknowledged it: no hold may
	// be made of it, and it is passed on to nobody.
	unproven bool
	waking   bool  // it holds again, and its call has yet to say so
	ends     bool  // nothing is due but the end of its trust
	left     uint8 // tokens of the block, for holds that are passed on locally
	fails    uint8 // of its renewals, since the last that worked: so many at least
	Used     int32 // holds that calls have had, where the name is to rest after them
	longest  int32 // lease that any hold has asked for, in ms: Redis may keep it so long

	trust   trust.Trust   // until when nobody else can hold
	renewed clock.Instant // when the latest request left that Redis has answered with a lease
	token   int64         // of the next local hold
	holds   lone[Hold]    // that are not unlocked
	Ledger  ledger.Ledger // what Redis knows of them, and is to know
	shares  lone[share]   // the holds by what was asked for, where their number can change
	run     *run          // nil: it is passed on to nobody who is in the queue
	since   int64         // op by which it gave up its holds to wait on a condition; it holds again
}

// expired is ErrExpired with why the latest renewal extended nothing: too few replicas had it.
type expired struct{ why error }

func (e *expired) Error() string { return ErrExpired.Error() + ": " + e.why.Error() }

func (e *expired) Unwrap() []error { return []error{loss.Replicas, ErrExpired, e.why} }

// Until is when nobody else could hold, as things stand. Its holds may end before that.
func (s *Session) Until() clock.Instant { return s.trust.Until }

// Newest is its newest hold, or nil.
func (s *Session) Newest() *Hold {
	return s.holds.last()
}

// Live is how many holds it has that are not unlocked.
func (s *Session) Live() int { return s.holds.len() }

// Several says that Redis has it as one of several.
func (s *Session) Several() bool { return s.several }

// ToConfirm says that no hold may be made yet: the rest of the queue entry's lease is
// not what a fixed lease promises, replicas have yet to acknowledge what a message or a
// heartbeat said, or a hold that waited on a condition has a longer lease than the one
// with which its session began, and which it was granted again.
func (s *Session) ToConfirm() bool {
	return s.Terms.Fixed && s.handed || s.unproven && !s.over || s.waking && s.leased() > s.Terms.TTL
}

// Confirmation is what is to be stated then.
func (s *Session) Confirmation() *ledger.Wish {
	x := s.Terms.Wish(ledger.Counts{})
	x.Lease = s.leased()
	return x
}

// Need is what the strictest of the session's holds asks of each statement that
// its trust is to rest on.
func (s *Session) Need() Replicas {
	need := s.Terms.Replicas
	n, timeout := s.Ledger.Strictest()
	need = need.or(Replicas{n, timeout})
	for terms := range s.asks() {
		need = need.or(terms.Replicas)
	}
	return need
}

// Absent says that its holds are not to be trusted though nothing is lost: it is away, or
// its call has yet to return.
func (s *Session) Absent() bool { return !s.over && (s.waking || s.Entry != nil) }

// Served are those who end in Redis with the session's release.
func (s *Session) Served() []*Acquisition {
	if s == nil || s.run == nil {
		return nil
	}
	return s.run.served
}

// First makes the hold for which a call has waited, of a session that is held.
func (s *Session) First(h *Hold, at *Step) {
	s.unreserve()
	s.Hold(h, at)
}

// Hold makes a hold of a session that is held, unless it has just been lost. Its terms
// and whether it reads are set.
func (s *Session) Hold(h *Hold, at *Step) {
	h.Session, h.Token, h.Acquired = s, s.token, at.Now
	h.start()
	s.add(h)
	if s.Terms != h.Terms || s.ends { // else it is scheduled for such a hold
		s.schedule(at)
	}
}

func (s *Session) add(h *Hold) {
	s.holds.add(h)
	s.Ledger.Add(ledger.One(h.Read), h.local)
	if !s.counted() {
		return
	}
	of := s.share(h)
	if of == nil {
		of = &share{terms: h.Terms}
		s.shares.add(of)
	}
	of.holds++
	if of.terms.ends() {
		of.ordered.add(h)
	}
}

// drop takes an unlocked hold off the session.
func (s *Session) drop(h *Hold) {
	if !s.holds.remove(h) {
		return
	}
	s.Ledger.Drop(ledger.One(h.Read), h.local)
	if !s.counted() {
		return
	}
	of := s.share(h)
	of.ordered.remove(h)
	if of.holds--; of.holds == 0 {
		s.shares.remove(of)
	}
}

// A share counts holds of a session, so that a statement need not ask each of them: a named owner may have thousands.
// A session whose count cannot change has one hold at most, and no shares.
//
// A share is the holds of a session that were asked for in one way.
type share struct {
	terms   *Terms
	holds   int
	ordered lone[Hold] // the oldest first, where they end by themselves
}

// share returns the holds that were asked for as this one was, or nil.
func (s *Session) share(h *Hold) *share {
	for _, of := range s.shares.all() {
		if of.terms == h.Terms || *of.terms == *h.Terms {
			return of
		}
	}
	return nil
}

// asks are the terms of the session's holds, each once.
func (s *Session) asks() iter.Seq[*Terms] {
	return func(yield func(*Terms) bool) {
		if !s.counted() {
			if h := s.holds.first; h != nil {
				yield(h.Terms)
			}
			return
		}
		for _, of := range s.shares.all() {
			if !yield(of.terms) {
				return
			}
		}
	}
}

// reserve counts the hold of a call that is about to make it; unreserve undoes that.
func (s *Session) reserve() { s.Ledger.Reserved = s.Ledger.Reserved.And(ledger.One(s.Read)) }

func (s *Session) unreserve() { s.Ledger.Reserved = s.Ledger.Reserved.Less(ledger.One(s.Read)) }

// extend moves trust, never backwards: an older answer may arrive later. It
// rests on what enough replicas have, and on nothing else. until is by the answer to a
// request that left at sent.
func (s *Session) extend(sent, until clock.Instant, acks int) (done bool) {
	if s.over || s.Away() || acks < s.Need().N {
		return false
	}
	s.trust.Extend(until)
	s.renewed = clock.Max(s.renewed, sent)
	s.unproven, s.lost = false, nil
	return true
}

// Check judges the session and its holds by the clock, before anything is answered from
// it: a timer that should have ended them may not have fired yet.
func (s *Session) Check(at *Step) {
	switch {
	case s.over || s.Away():
	case s.ended(at.Now):
		why := s.expired()
		for _, h := range s.holds.all() {
			h.why = h.endedBy()
			why = h.why
		}
		s.LoseHeld(why, at) // a renewal that went unanswered may keep it in Redis for another lease
	case !s.waking && at.Now.Reached(s.firstEnd()):
		s.shed(at)
	}
}

// expired is why what was not renewed in time is lost.
func (s *Session) expired() error {
	if s.lost != nil {
		return &expired{s.lost}
	}
	return ErrExpired
}

// shed loses the holds whose own time has ended. Others go on.
func (s *Session) shed(at *Step) {
	var over []*Hold
	for _, h := range s.holds.all() {
		if at.Now.Reached(h.Until()) {
			over = append(over, h)
		}
	}
	at.do(Effect{Do: Lose, Of: s.Acquisition})
	for _, h := range over {
		h.lost, h.why = true, h.endedBy()
		s.drop(h)
		at.do(Effect{Do: Lose, Of: s.Acquisition, Hold: h})
	}
	s.schedule(at)
	s.CatchUp(at)
}

// schedule sets what is due next for the session: a renewal, or the end of a hold.
func (s *Session) schedule(at *Step) {
	if s.over || s.Away() {
		return
	}
	end := s.firstEnd()
	due, grain, renew := s.due(at.Now)
	s.ends = !renew || s.busy || due.Until(end) <= 0
	if s.ends {
		at.timer(s.Acquisition, end, 0)
		return
	}
	at.timer(s.Acquisition, due, grain)
}

// Due is what is to be done for a session whose timer has fired; false: nothing is to be sent.
func (s *Session) Due(at *Step) (r Renewal, due bool) {
	s.Check(at)
	lease, renew := s.renewal(at.Now)
	if s.over || s.Away() {
		return r, false
	}
	if due = renew && !s.busy; due {
		s.busy = true
		need := s.Need()
		r = Renewal{Lease: lease, Within: need.Within(s.shortest(at.Now)), Need: need}
		r.Plain = need.N == 0 && s.Ledger.Settled() && (s.Terms.Permits.Of > 0 || s.Ledger.Meant().Reads == 0) && !s.several && !s.Room.Shared
	}
	s.schedule(at)
	return r, due
}

// Renew makes the statement of a renewal that leaves now, or did before; false: it has
// been released since, and holds nothing.
func (s *Session) Renew(r Renewal, sent clock.Instant) (st Statement, held bool) {
	if s.over || s.Away() { // else it would be made to hold nothing
		return st, false
	}
	s.op++
	s.busy = true
	said := ledger.Statement{Op: s.op, Counts: s.Ledger.Meant()}
	return Statement{Session: s, Sent: sent, Said: said, Lease: r.Lease, Need: r.Need, Several: s.several}, true
}

// Tried notes that a renewal is not under way any more.
func (s *Session) Tried() { s.busy = false }

// Unrenewed has a renewal tried again soon that was not answered, or that too few
// replicas have: then short says so. again: it is held still.
func (s *Session) Unrenewed(short error, at *Step) (again bool) {
	s.busy = false
	if s.over || s.Away() {
		return false
	}
	if short != nil {
		s.lost = short
	}
	s.retry(at)
	return true
}

// UnrenewedWith is Unrenewed for one of many: they are tried again together, at soon,
// which is set by the first.
func (s *Session) UnrenewedWith(soon *clock.Instant, at *Step) (again bool) {
	s.busy = false
	if s.over || s.Away() {
		return false
	}
	pause := s.pause(at)
	if soon.IsZero() {
		*soon = at.Now.Add(pause)
	}
	s.retryAt(*soon, at)
	return true
}

// retry schedules another renewal soon after one that failed.
func (s *Session) retry(at *Step) {
	s.retryAt(at.Now.Add(s.pause(at)), at)
}

// pause counts a renewal that failed, and returns how long to wait after it.
func (s *Session) pause(at *Step) time.Duration {
	if s.fails < math.MaxUint8 {
		s.fails++
	}
	return at.Pause(int(s.fails), trust.Attempt(s.shortest(at.Now)))
}

func (s *Session) retryAt(soon clock.Instant, at *Step) {
	s.ends = false
	if end := s.firstEnd(); soon.Reached(end) {
		soon = end
	}
	at.timer(s.Acquisition, soon, 0)
}

// Next returns what is to be stated, for w or because needs have changed: none if Redis
// knows it already. Where nothing is needed any more the session is ended, and last says
// that its release is to be sent. over: it is lost, or was ended.
func (s *Session) Next(w *ledger.Wish, at *Step) (st *Statement, last, over bool) {
	if s.Check(at); s.over || s.Away() {
		return nil, false, true
	}
	switch s.Ledger.Next(w) {
	case ledger.Say:
		st = s.statement(at)
	case ledger.End:
		last = true
		s.end(at)
	}
	return st, last, false
}

func (s *Session) statement(at *Step) *Statement {
	s.op++
	said := s.Ledger.State(s.op)
	st := &Statement{Session: s, Sent: at.Now, Said: said, Lease: said.Lease, Several: s.several}
	if said.Lease > 0 { // else it gives up holds, which needs nobody's acknowledgement
		st.Need = s.Need()
	}
	if said.Kept && st.Need.N == 0 && s.renews(said.Lease, at.Now) && s.fresh(said.Least, at.Now) {
		st.Lease = 0
	}
	s.longest = max(s.longest, int32((st.Lease+time.Millisecond-1)/time.Millisecond))
	return st
}

// renews says that the watchdog keeps a lease that is as long, and that renewals have
// worked of late: a statement that leaves it as it is costs the server half as much.
func (s *Session) renews(lease time.Duration, now clock.Instant) bool {
	kept, renewed := s.renewal(now)
	return renewed && kept >= lease && !s.unproven && s.fresh(lease, now)
}

// CatchUp has Redis told of what nobody will tell it of else: what was stated may have
// arrived, or may yet, and a later statement overrides it.
func (s *Session) CatchUp(at *Step) {
	if !s.over && !s.Away() && !s.Ledger.Knows() {
		at.do(Effect{Do: Tell, Of: s.Acquisition})
	}
}

// until returns until when a hold of these terms is trusted, for which no renewal counts
// that left after last; zero: each renewal counts.
func (s *Session) until(t *Terms, last clock.Instant) clock.Instant {
	from := s.renewed
	if !last.IsZero() {
		from = clock.Min(from, last)
	}
	return clock.Min(s.trust.Until, trust.Until(from, t.TTL))
}

// fresh says that renewals work: a third is left, at least, of what a hold of these terms
// would have.
func (s *Session) fresh(ttl time.Duration, now clock.Instant) bool {
	t := trust.Trust{Until: clock.Min(s.trust.Until, trust.Until(s.renewed, ttl))}
	return t.Fresh(now, ttl)
}

// ended says that nothing of the session is trusted any more.
func (s *Session) ended(now clock.Instant) bool { return now.Reached(s.lastEnd()) }

// A part is the holds of a session that have the same terms.
type part struct {
	terms          *Terms
	oldest, newest clock.Instant // until when renewals count for the oldest of them, and for the newest; zero: always
}

// renews says that the watchdog renews the newest of them.
func (p *part) renews(now clock.Instant) bool {
	return !p.terms.Fixed && (p.newest.IsZero() || !now.Reached(p.newest))
}

// parts calls f with each of them.
func (s *Session) parts(f func(p part)) {
	switch h := s.holds.first; {
	case h == nil: // granted, and the call that waits for it has not made its hold yet
		f(part{terms: s.Terms})
	case !s.counted():
		f(part{h.Terms, h.last, h.last})
	default:
		for _, of := range s.shares.all() {
			p := part{terms: of.terms}
			if of.terms.ends() {
				p.oldest, p.newest = of.ordered.first.last, of.ordered.last().last
			}
			f(p)
		}
	}
}

// renewal returns the lease to ask for, and whether any hold has a watchdog that still
// renews. What is not renewed has its lease in Redis already.
func (s *Session) renewal(now clock.Instant) (lease time.Duration, renew bool) {
	s.parts(func(p part) {
		if p.renews(now) {
			lease, renew = max(lease, p.terms.TTL), true
		}
	})
	return lease, renew
}

// shortest is the shortest TTL of what is renewed.
func (s *Session) shortest(now clock.Instant) (ttl time.Duration) {
	s.parts(func(p part) {
		if p.renews(now) && (ttl == 0 || p.terms.TTL < ttl) {
			ttl = p.terms.TTL
		}
	})
	if ttl == 0 {
		return s.Terms.TTL
	}
	return ttl
}

// due returns when the next renewal is due: the first that any hold needs.
func (s *Session) due(now clock.Instant) (first clock.Instant, grain time.Duration, renew bool) {
	s.parts(func(p part) {
		if !p.renews(now) {
			return
		}
		t := trust.Trust{Until: s.until(p.terms, p.newest)}
		if due := t.Due(p.terms.TTL); !renew || due.Until(first) > 0 {
			first, grain, renew = due, trust.Grain(p.terms.TTL), true
		}
	})
	return first, grain, renew
}

// firstEnd returns when the first of the holds ends, as things stand.
func (s *Session) firstEnd() (end clock.Instant) {
	if s.waking || s.holds.first == nil {
		return s.trust.Until
	}
	s.parts(func(p part) {
		if until := s.until(p.terms, p.oldest); end.IsZero() || until.Until(end) > 0 {
			end = until
		}
	})
	return end
}

// lastEnd returns when the last of the holds ends, as things stand. A call that is about to
// make one has all that Redis has said.
func (s *Session) lastEnd() (end clock.Instant) {
	if s.waking || s.holds.first == nil || s.Ledger.Expects() {
		return s.trust.Until
	}
	s.parts(func(p part) {
		if until := s.until(p.terms, p.newest); end.IsZero() || end.Until(until) > 0 {
			end = until
		}
	})
	return end
}

// leased is the longest TTL of the session's holds.
func (s *Session) leased() time.Duration {
	ttl := s.Terms.TTL
	for terms := range s.asks() {
		ttl = max(ttl, terms.TTL)
	}
	return ttl
}

// Reenter asks for one more hold; reserved: the session counts it already.
func (s *Session) Reenter(t *Terms, read, reserved bool, at *Step) (x *ledger.Wish, in Entrance) {
	s.Check(at)
	x = t.Wish(ledger.Counts{})
	if !reserved {
		x.More = ledger.One(read)
	}
	needs := s.Ledger.Needs()
	switch {
	case reserved && s.covers(t, at.Now):
		in = Open
	case s.over || s.Absent(): // a hold that is made now could not be unlocked until the wait returns
		in = Shut
	case !read && needs.Writes == 0 && (needs.Reads > 0 || s.Ledger.Meant().Writes == 0):
		// The last write hold becomes a read hold: once Redis knows, others may read,
		// and it has to be asked.
		x = &ledger.Wish{}
		s.Ledger.Wish(x)
		return x, Stated
	case needs.And(x.More).Total() > MaxHolds:
		in = Crowded
	default:
		s.Ledger.Wish(x)
		return x, Stated
	}
	return nil, in
}

// Entered ends a Reenter that has stated nothing, for whose call a hold was reserved.
func (s *Session) Entered(at *Step) {
	s.unreserve()
	s.CatchUp(at)
}

// Admit ends a wish that was stated, or in vain; true: a hold can be made for it.
func (s *Session) Admit(x *ledger.Wish, reserved, told bool, at *Step) bool {
	if s.Ledger.Withdraw(x); reserved {
		s.unreserve()
	}
	switch {
	case told && (s.over || s.Absent() || x.Lease == 0):
		return false
	case !told:
		s.CatchUp(at)
		return false
	}
	return true
}

// Joins says that a hold of these terms can join the session without Redis being told.
func (s *Session) joins(t *Terms, read bool, now clock.Instant) bool {
	told, meant := s.Ledger.Told().Writes, s.Ledger.Meant().Writes
	if read {
		told, meant = s.Ledger.Told().Reads, s.Ledger.Meant().Reads
	}
	// Freshness as for a hold that is passed on: less than a third of a lease
	// left says that renewals fail.
	if !t.Local || t.Fixed || t.MaxHold != 0 || !s.Named() || s.over || s.Absent() ||
		told == 0 || meant == 0 || !s.fresh(t.TTL, now) {
		return false
	}
	for _, outer := range s.holds.all() {
		if outer.Read == read && outlasts(outer.Terms, t) {
			return true
		}
	}
	return false
}

// Join makes a hold that Redis is not told of; false: it has to be. Its terms and
// whether it reads are set.
func (s *Session) Join(h *Hold, at *Step) bool {
	if !s.joins(h.Terms, h.Read, at.Now) {
		return false
	}
	h.Session, h.Token, h.Acquired, h.local = s, s.token, at.Now, true
	h.start()
	s.add(h)
	return true
}

// outlasts says that a hold of the outer terms is renewed for at least as long as one of the inner terms would be, and
// by statements that as many replicas acknowledge.
func outlasts(outer, inner *Terms) bool {
	return !outer.Fixed && outer.MaxHold == 0 && outer.TTL >= inner.TTL && outer.Replicas.N >= inner.Replicas.N
}

// CanJoin says that Join would succeed.
func (s *Session) CanJoin(t *Terms, read bool, at *Step) bool { return s.joins(t, read, at.Now) }

// covers says that Redis has been told of all holds, on these terms, and lately: one
// that is reserved needs no further statement.
func (s *Session) covers(t *Terms, now clock.Instant) bool {
	return !s.over && !s.Absent() && s.Ledger.Knows() && !s.unproven && *t == *s.Terms && !s.Terms.Fixed && s.fresh(s.Terms.TTL, now)
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

// Holds are its holds, the oldest first.
func (s *Session) Holds() (all []*Hold) {
	for _, h := range s.holds.all() {
		all = append(all, h)
	}
	return all
}

// Number is what the next signal of the session is told apart by.
func (s *Session) Number() int64 {
	s.op++
	return s.op
}

// passes says that another hold can follow on the session's last without a command.
func (s *Session) passes(at *Step) bool {
	return !s.over && !s.unproven && !at.Closing && s.passable() && s.left > 0 && s.fresh(s.Terms.TTL, at.Now)
}

// follow notes who stands right behind a grant that has just come.
func (s *Session) follow(behind []*Acquisition) {
	if len(behind) > 0 && s.passable() {
		s.run = &run{behind: behind}
	}
}

// serve ends the wait of an entry by the session's next hold.
func (s *Session) serve(a *Acquisition, at *Step) {
	s.token++
	s.left--
	s.reserve()
	s.run.served = append(s.run.served, a)
	a.over, a.Entry.given = true, s.Acquisition
	at.timer(a, clock.Instant{}, 0)
	a.Entry.finished(at)
}

// dismiss has Redis told of each that was served: the session's release does not follow.
func (s *Session) dismiss(at *Step) {
	for _, a := range s.Served() {
		at.do(Effect{Do: Release, Of: a})
	}
	s.run = nil
}

// Lose ends a session that no unlock ended.
func (s *Session) Lose(why error, at *Step) {
	if s.over {
		return
	}
	r := s.Room
	s.over, s.lost = true, why
	at.timer(s.Acquisition, clock.Instant{}, 0)
	r.sessions.remove(s)
	r.noWord(s.flow())
	r.handClaim(s.Acquisition, PlaceNew, at)
	s.dismiss(at)
	if e := s.Entry; e != nil { // it leaves its place
		at.do(Effect{Do: Release, Of: s.Acquisition})
		e.finished(at)
	} else {
		at.do(Effect{Do: Forget, Of: s.Acquisition})
	}
	at.do(Effect{Do: Lose, Of: s.Acquisition})
	for _, h := range s.holds.all() {
		h.lost = true
		at.do(Effect{Do: Lose, Of: s.Acquisition, Hold: h})
	}
}

// LoseHeld is Lose for what Redis may go on having: it is to hear of that.
func (s *Session) LoseHeld(why error, at *Step) {
	if !s.over && s.Entry == nil {
		at.do(Effect{Do: Release, Of: s.Acquisition})
	}
	s.Lose(why, at)
}

// Gone is Lose for what Redis says it no longer has. A copy of a request that went
// unanswered may yet come there, and would be granted to nobody: its nonce is ended.
func (s *Session) Gone(why error, at *Step) {
	over := s.over
	s.Lose(why, at)
	if over || s.doubt == 0 {
		return
	}
	at.do(Effect{Do: Release, Of: s.Acquisition})
}

// Close is Lose as the client ends. What no call has had yet is given back instead: nobody
// knows of it who would want its lease, nor what its name is to rest for. What is reserved
// stays so: the calls it is reserved for take it back, as from any session that is over.
func (s *Session) Close(why error, at *Step) {
	if s.over || s.Away() || s.Entry != nil || s.holds.first != nil {
		s.Lose(why, at)
		return
	}
	s.end(at)
	at.do(Effect{Do: Release, Of: s.Acquisition})
}

// finish ends what an unlocked hold was part of, which has been dropped: the next in
// line has the lock without any command, or Redis hears of it.
func (s *Session) finish(at *Step) Ending {
	switch {
	case s.counted():
		return Fewer
	case s.over:
		return WasLost
	case s.Room.passHold(s, at), s.Room.passAlong(s, at):
		return Silent
	}
	s.end(at)
	return Last
}

// finishApart is finish for a call that has gone: it does not wait for Redis.
func (s *Session) finishApart(at *Step) {
	if s.Absent() { // what it needs is stated when it holds again
		if s.holds.first == nil {
			s.LoseHeld(ErrLeft, at) // it would hold nothing then, and its signal is for others
		}
		return
	}
	switch s.finish(at) {
	case Fewer:
		at.do(Effect{Do: Tell, Of: s.Acquisition})
	case Last:
		at.do(Effect{Do: Release, Of: s.Acquisition})
	}
}

// Raise gives the holds that follow the token of another server's instant, which is no larger
// than Redis' counter now. Those that are made keep theirs.
func (s *Session) Raise(instant int64) { s.token = instant }

// Why a session is lost, as far as the room knows.
var (
	ErrExpired = loss.Because(loss.Unreachable, "its lease could not be renewed in time")
	ErrRemoved = loss.Because(loss.DataLost, "redis no longer has it")
	ErrLeft    = errors.New("its last hold has ended while its owner waited on a condition")
)
