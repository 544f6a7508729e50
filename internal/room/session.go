package room

import (
	"cmp"
	"errors"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/trust"
)

// A Session is an acquisition that holds: from its grant to the last unlock of the holds that share it.
type Session struct {
	*Acquisition

	busy bool // a renewal is in flight
	// several: other sessions hold the lock too, so its statements must name the queue.
	several bool
	handed  bool // granted for only the rest of the entry's lease, as by a message
	// unproven: too few replicas have acknowledged the grant. No hold may be made of it, and it is not passed on.
	unproven bool
	waking   bool   // it holds again after a wait on a condition, and its call has not returned yet
	fails    uint8  // renewals that failed since the last that worked
	left     uint16 // tokens left of its block, for holds that get the lock within the process
	Used     int32  // holds that calls have had, less those of skipRest: the name rests only if it is above zero
	longest  int32  // longest lease that a statement has asked for, in ms: Redis may keep it that long

	trust   clock.Instant // until when nobody else can hold
	renewed clock.Instant // sending time of the latest request that Redis answered with a lease
	token   int64         // of the next hold
	holds   lone[Hold]    // those that are not unlocked yet
	Ledger  ledger.Ledger // what Redis knows of the holds, and what it must know
	shares  lone[share]   // the holds by their terms; empty if their number cannot change
	run     *run          // the acquisitions in the queue that share the grant; nil: none
	awaitOp int64         // op of the request by which it last began to wait on a condition
}

// expired is ErrExpired if the latest renewal extended no trust, because too few replicas had it. why is its error.
type expired struct{ why error }

func (e *expired) Error() string { return ErrExpired.Error() + ": " + e.why.Error() }

func (e *expired) Unwrap() []error { return []error{loss.Replicas, ErrExpired, e.why} }

// Until returns until when nobody else can hold. A renewal moves that. Holds of the session may end earlier.
func (s *Session) Until() clock.Instant { return s.trust }

// Newest returns its newest hold, or nil.
func (s *Session) Newest() *Hold { return s.holds.last() }

// Live returns how many holds are not unlocked.
func (s *Session) Live() int { return s.holds.len() }

// ToConfirm reports whether Redis must be told before a hold may be made, for one of these reasons:
//   - A fixed lease must be whole, but a grant by message, or a repeated answer, gives only the rest of a lease.
//   - Too few replicas have acknowledged the grant, because a message or a heartbeat brought it.
//   - After a wait on a condition, a hold has another TTL than the new grant, or a fixed lease. The grant may be
//     older than a shorter TTL, and is no whole lease for a longer or a fixed one.
func (s *Session) ToConfirm() bool {
	if s.Terms.Fixed && s.handed || s.unproven && !s.Over {
		return true
	}
	other := false
	s.eachGroup(func(g group) { other = other || g.terms.TTL != s.Terms.TTL || g.terms.Fixed && !s.Terms.Fixed })
	return s.waking && other
}

// Confirmation returns the wish for the statement that ToConfirm asks for.
func (s *Session) Confirmation() *ledger.Wish {
	x := s.Terms.Wish()
	s.eachGroup(func(g group) { x.Lease = max(x.Lease, g.terms.TTL) }) // the longest of its holds
	x.LeaseMayStay = false
	return x
}

// Need returns how many replicas must acknowledge a statement before it extends trust: as the strictest hold asks.
func (s *Session) Need() Replicas {
	need := s.Terms.Replicas
	n, timeout := s.Ledger.Strictest()
	need = need.or(Replicas{n, timeout})
	s.eachGroup(func(g group) { need = need.or(g.terms.Replicas) })
	return need
}

// Absent reports whether a wait on a condition suspends its holds: it is away, or it holds again, but the call that
// waited has not returned yet. Meanwhile the holds are neither trusted nor lost.
func (s *Session) Absent() bool { return !s.Over && (s.waking || s.Entry != nil) }

// Served returns the acquisitions of its run that have had the lock: they end in Redis with the session's release.
func (s *Session) Served() []*Acquisition {
	if s == nil || s.run == nil {
		return nil
	}
	return s.run.served
}

// First makes h a hold of the session, in place of the one that was reserved for the call.
func (s *Session) First(h *Hold, at *Step) {
	s.unreserve()
	s.Hold(h, at)
}

// Hold makes h a hold of the session. The caller has set the terms and the mode of h.
func (s *Session) Hold(h *Hold, at *Step) {
	h.Session, h.Token, h.Acquired, h.Wanted = s, s.token, at.Now, s.isWanted()
	if s.busy && h.Terms.TTL < s.shortest(at.Now) {
		s.busy = false // the renewal in flight may take longer than this lease lasts, so another may be sent
	}
	h.start()
	s.holds.add(h)
	s.Ledger.Add(ledger.One(h.Read), h.local)
	if s.counted() {
		own := s.share(h)
		if own == nil {
			own = &share{}
			s.shares.add(own)
		}
		own.add(h)
	}
	if s.counted() || s.Terms != h.Terms { // otherwise the timer is right for this hold already
		s.schedule(at)
	}
}

// drop removes a hold that has ended, unless shed has removed it before.
func (s *Session) drop(h *Hold) {
	if !s.holds.remove(h) {
		return
	}
	s.Ledger.Drop(ledger.One(h.Read), h.local)
	if !s.counted() {
		return
	}
	own := s.share(h)
	if own.remove(h); own.first == nil {
		s.shares.remove(own)
	}
}

// share returns the share of the holds with the terms of h, or nil.
func (s *Session) share(h *Hold) *share {
	for _, share := range s.shares.all() {
		if terms := share.first.Terms; terms == h.Terms || *terms == *h.Terms {
			return share
		}
	}
	return nil
}

// reserve counts a hold that a call is about to make, so that the session does not end first. unreserve undoes that.
func (s *Session) reserve() { s.Ledger.Reserved = s.Ledger.Reserved.And(ledger.One(s.Read)) }

func (s *Session) unreserve() { s.Ledger.Reserved = s.Ledger.Reserved.Less(ledger.One(s.Read)) }

// reserveNext reserves a hold under the next token of the block: it gets the lock within the process.
func (s *Session) reserveNext() {
	s.token++
	s.left--
	s.reserve()
}

// extend moves trust to until, which follows from the answer to a request sent at sent. Trust never moves back, because
// an older answer may arrive later. If too few replicas have acknowledged the request, nothing changes.
func (s *Session) extend(sent, until clock.Instant, acks int) (done bool) {
	if s.Over || acks < s.Need().N {
		return false
	}
	s.trust = clock.Max(s.trust, until)
	s.renewed = clock.Max(s.renewed, sent)
	s.unproven, s.why = false, nil
	return true
}

// Check loses the session, or single holds of it, when their trust has ended by the clock. It comes before every answer
// about them, because the timer may be late.
func (s *Session) Check(at *Step) {
	switch {
	case s.Over || s.Away():
	case s.ended(at.Now):
		why := s.expired()
		for _, h := range s.holds.all() {
			h.why = h.endedBy()
			why = h.why
		}
		s.Lose(why, at) // an unanswered renewal may keep it in Redis for another lease
	case !s.waking && at.Now.Reached(s.firstEnd()):
		s.shed(at)
	}
}

// expired returns the reason for the loss of a session that was not renewed in time.
func (s *Session) expired() error {
	if s.why != nil {
		return &expired{s.why}
	}
	return ErrExpired
}

// shed loses the holds whose own time is over. The others go on: the timer is due by now, and Due sets the next one.
func (s *Session) shed(at *Step) {
	var over []*Hold
	for _, h := range s.holds.all() {
		if at.Now.Reached(h.Until()) {
			over = append(over, h)
		}
	}
	for _, h := range over {
		h.why = h.endedBy()
		s.drop(h)
		h.markLost(at)
	}
	s.CatchUp(at)
}

// schedule sets the session's timer: to the next renewal, or to the end of a hold if that is earlier.
func (s *Session) schedule(at *Step) {
	if s.Over || s.Away() {
		return
	}
	if s.Room.kept != nil && s.Room.kept.schedule(s, at) {
		return
	}
	end := s.firstEnd()
	due, grain, renew := s.due(at.Now)
	if !renew || s.busy || due.Until(end) <= 0 {
		due, grain = end, 0
	}
	at.timer(s.Acquisition, due, grain)
}

// Due returns how to renew a session whose timer has fired. due is false if nothing must be sent.
func (s *Session) Due(at *Step) (r Renewal, due bool) {
	s.Check(at)
	lease, renew := s.renewal(at.Now)
	if s.Over || s.Away() || s.Room.kept.fired(s, at) {
		return r, false
	}
	if due = renew && !s.busy; due {
		s.busy = true
		need := s.Need()
		r = Renewal{Lease: lease, Within: need.Within(s.shortest(at.Now)), Need: need}
		r.Together = need.N == 0 && s.Ledger.Settled() && !s.several && !s.Room.Shared
	}
	s.schedule(at)
	return r, due
}

// Renew makes the statement of a renewal that is sent at sent. It repeats the newest counts, so it does not matter
// whether it or the statement with these counts arrives first. held is false if the session does not hold any more.
func (s *Session) Renew(r Renewal, sent clock.Instant) (st Statement, held bool) {
	if s.Over || s.Away() { // there is no lease to renew
		return st, false
	}
	s.op++
	s.busy, s.wantedByMessage = true, false
	said := ledger.Statement{Op: s.op, Counts: s.Ledger.Meant}
	return Statement{Session: s, Sent: sent, Said: said, Lease: r.Lease, Need: r.Need, Several: s.several, renewal: true}, true
}

// Next returns the next statement, for the wish w or because the number of holds has changed. st is nil if Redis knows
// everything. last means that no hold is left: the session has ended, and its release must be sent. over means that it
// was lost or had ended before, or waits on a condition.
func (s *Session) Next(w *ledger.Wish, at *Step) (st *Statement, last, over bool) {
	if s.Check(at); s.Over || s.Away() {
		return nil, false, true
	}
	switch s.Ledger.Next(w) {
	case ledger.Say:
		st = s.statement(at)
	case ledger.End:
		last = true
		s.leaveRoom(at)
	}
	return st, last, false
}

// statement makes a statement of all that Redis must know.
func (s *Session) statement(at *Step) *Statement {
	s.op++
	s.wantedByMessage = false
	said := s.Ledger.State(s.op)
	st := &Statement{Session: s, Sent: at.Now, Said: said, Lease: said.Lease, Several: s.several}
	if said.Lease > 0 { // otherwise it gives up holds, which no replica must acknowledge
		st.Need = s.Need()
	}
	// If the watchdog keeps a lease of this length anyway, and renewals work, the statement can leave the lease as it is.
	// That costs the server half as much.
	kept, renewed := s.renewal(at.Now)
	if said.LeaseMayStay && st.Need.N == 0 && renewed && kept >= said.Lease && !s.unproven && s.fresh(said.Lease, at.Now) && s.fresh(said.Least, at.Now) {
		st.Lease = 0
	}
	s.longest = max(s.longest, int32((st.Lease+time.Millisecond-1)/time.Millisecond))
	return st
}

// CatchUp has Redis told of the current holds in the background, unless it knows them. It is for changes that no call
// tells, such as a loss. An earlier statement may still arrive: the new one overrides it.
func (s *Session) CatchUp(at *Step) {
	if !s.Over && !s.Away() && !s.Ledger.Knows() {
		at.do(Effect{Do: Tell, Of: s.Acquisition})
	}
}

// trustEnds returns until when a hold with this TTL is trusted: as long as its session, but no longer than a TTL from
// the latest renewal that counts for it. No renewal sent after last counts: last is the end of MaxHold, the grant if
// there is no watchdog, or zero for no limit. A session is trusted until s.trust, which Entry.grant and extend set: see
// Acquisition.trustedUntil, and Statement.Renewed for renewals of many sessions.
func (s *Session) trustEnds(ttl time.Duration, last clock.Instant) clock.Instant {
	from := s.renewed
	if !last.IsZero() {
		from = clock.Min(from, last)
	}
	return clock.Min(s.trust, trust.Until(from, ttl))
}

// fresh reports whether at least a third of a lease of ttl is left, which shows that renewals work. Then a hold can
// rely on the lease without a new statement.
func (s *Session) fresh(ttl time.Duration, now clock.Instant) bool {
	return now.Until(s.trustEnds(ttl, clock.Instant{})) >= ttl/3
}

// ended reports whether no hold of the session is trusted any more, because the last of them has ended by the clock.
// While a call is about to make a hold, the session is trusted for as long as its lease.
func (s *Session) ended(now clock.Instant) bool {
	if s.waking || s.holds.first == nil || s.Ledger.Expects() {
		return now.Reached(s.trust)
	}
	var end clock.Instant
	s.eachGroup(func(g group) {
		if until := s.trustEnds(g.terms.TTL, g.newest); end.IsZero() || end.Until(until) > 0 {
			end = until
		}
	})
	return now.Reached(end)
}

// A group describes the holds of a session that have the same terms.
type group struct {
	terms          *Terms
	oldest, newest clock.Instant // Hold.last of the oldest and of the newest of these holds
}

// renews reports whether the watchdog still renews the newest of these holds.
func (g *group) renews(now clock.Instant) bool {
	return !g.terms.Fixed && (g.newest.IsZero() || !now.Reached(g.newest))
}

// eachGroup calls f with each group of the session.
func (s *Session) eachGroup(f func(g group)) {
	switch h := s.holds.first; {
	case h == nil: // there is no hold: its call has not made one yet, or the grant is kept
		f(group{terms: s.Terms})
	case !s.counted():
		f(group{h.Terms, h.last, h.last})
	default:
		for _, share := range s.shares.all() {
			f(group{share.first.Terms, share.first.last, share.last().last})
		}
	}
}

// renewal returns the lease that a renewal asks for, and whether any hold is still renewed. For holds that are not
// renewed, Redis has the whole lease already.
func (s *Session) renewal(now clock.Instant) (lease time.Duration, renew bool) {
	s.eachGroup(func(g group) {
		if g.renews(now) {
			lease, renew = max(lease, g.terms.TTL), true
		}
	})
	return lease, renew
}

// shortest returns the shortest TTL of the holds that are renewed, or the grant's TTL if none is.
func (s *Session) shortest(now clock.Instant) (ttl time.Duration) {
	s.eachGroup(func(g group) {
		if g.renews(now) && (ttl == 0 || g.terms.TTL < ttl) {
			ttl = g.terms.TTL
		}
	})
	return cmp.Or(ttl, s.Terms.TTL)
}

// due returns when the next renewal is due: when the first hold needs it. It may be sent earlier by up to grain. renew
// is false if no hold is renewed.
func (s *Session) due(now clock.Instant) (first clock.Instant, grain time.Duration, renew bool) {
	s.eachGroup(func(g group) {
		if !g.renews(now) {
			return
		}
		if due := trust.Due(s.trustEnds(g.terms.TTL, g.newest), g.terms.TTL); !renew || due.Until(first) > 0 {
			first, grain, renew = due, trust.Grain(g.terms.TTL), true
		}
	})
	return first, grain, renew
}

// firstEnd returns when the first of the holds ends if no renewal follows.
func (s *Session) firstEnd() (end clock.Instant) {
	if s.waking || s.holds.first == nil {
		return s.trust
	}
	s.eachGroup(func(g group) {
		if until := s.trustEnds(g.terms.TTL, g.oldest); end.IsZero() || until.Until(end) > 0 {
			end = until
		}
	})
	return end
}

// Reenter asks for one more hold of the session. reserved: the session counts that hold already, for a call that stood
// in line. With Open, the caller makes the hold by First. With Stated, Redis must answer the wish x first. Admit then
// ends x, and says whether the hold can be made. With Crowded or Shut there is no hold, and no reservation any more.
func (s *Session) Reenter(t *Terms, read, reserved bool, at *Step) (x *ledger.Wish, in Entrance) {
	s.Check(at)
	if reserved && s.covers(t, at.Now) {
		return nil, Open
	}
	x, in = t.Wish(), Stated
	if !reserved {
		x.More = ledger.One(read)
	}
	switch needs := s.Ledger.Needs(); {
	case s.Over || s.Absent(): // until a wait on a condition returns, a hold made now could not be unlocked
		in = Shut
	case !read && needs.Writes == 0 && (needs.Reads > 0 || s.Ledger.Meant.Writes == 0):
		// The owner does not write any more: its last write hold became a read hold, or its end was stated. Others may read
		// by now, so only Redis can say whether it may write again. The wish has no lease: it waits only until Redis knows
		// the holds. Admit then refuses it, and the call asks Redis for the lock.
		x = &ledger.Wish{}
	case needs.And(x.More).Total() > MaxHolds:
		in = Crowded
	}
	if in == Stated {
		s.Ledger.Wish(x)
		return x, in
	}
	if reserved {
		s.unreserve()
		s.CatchUp(at)
	}
	return nil, in
}

// Admit ends a wish of Reenter, and reports whether the hold can be made. told says that Redis has answered the wish.
func (s *Session) Admit(x *ledger.Wish, reserved, told bool, at *Step) bool {
	if s.Ledger.Withdraw(x); reserved {
		s.unreserve()
	}
	if !told {
		s.CatchUp(at)
	}
	return told && !s.Over && !s.Absent() && x.Lease > 0
}

// NestLocally makes a nested hold of which Redis is not told (LocalReentry), and reports whether it could. An outer
// hold of the same mode must last at least as long, and renewals must work. The caller has set the terms and mode of h.
func (s *Session) NestLocally(h *Hold, at *Step) bool {
	t, told, meant := h.Terms, s.Ledger.Told.Writes, s.Ledger.Meant.Writes
	if h.Read {
		told, meant = s.Ledger.Told.Reads, s.Ledger.Meant.Reads
	}
	// The lease must be fresh, as for a hold that is passed on: otherwise renewals are failing.
	if !t.Local || t.Fixed || t.MaxHold != 0 || !s.Named() || s.Over || s.Absent() ||
		told == 0 || meant == 0 || !s.fresh(t.TTL, at.Now) {
		return false
	}
	for _, outer := range s.holds.all() {
		if outer.Read == h.Read && outlasts(outer.Terms, t) {
			h.local = true
			s.Hold(h, at)
			return true
		}
	}
	return false
}

// outlasts reports whether a hold of the outer terms is renewed for as long as one of the inner terms would be, or
// longer. At least as many replicas must acknowledge its statements.
func outlasts(outer, inner *Terms) bool {
	return !outer.Fixed && outer.MaxHold == 0 && outer.TTL >= inner.TTL && outer.Replicas.N >= inner.Replicas.N
}

// covers reports whether a reserved hold with these terms needs no further statement: Redis knows all holds, and the
// lease is fresh.
func (s *Session) covers(t *Terms, now clock.Instant) bool {
	return !s.Over && !s.Absent() && s.Ledger.Knows() && !s.unproven && *t == *s.Terms && !s.Terms.Fixed && s.fresh(s.Terms.TTL, now)
}

// BeginWait makes a session wait on a condition: from now on it does not hold here. It returns the entry by which the
// session waits. It returns nil if the session is over, waits already, or has no write hold. It also returns nil if the
// session has both write and read holds: reads says that. waker is for Entry.DoubtSignal.
func (s *Session) BeginWait(waker any, at *Step) (e *Entry, reads bool) {
	s.Check(at)
	n := s.Ledger.Existing()
	if s.Over || s.Absent() || n.Writes == 0 || n.Reads > 0 { // Redis may not know of a read hold yet
		return nil, n.Writes > 0 && n.Reads > 0
	}
	op := s.op + 1
	s.op += 2 // Redis records the second number if it refuses, so that a late copy is not carried out
	e = &Entry{Acquisition: s.Acquisition, Await: &Await{Op: op, Writes: n.Writes, Token: s.token, DoubtWaker: waker}}
	e.sent = append(e.one[:0], stamp{op, at.Now})
	s.Acquisition.Entry = e
	for _, h := range s.holds.all() {
		e.Await.holds = append(e.Await.holds, h)
		h.goAway(at)
	}
	s.dismiss(at)
	s.Room.sessions.remove(s)
	at.timer(s.Acquisition, clock.Instant{}, 0)
	return e, false
}

// wake makes a session hold again after it waited on a condition: Entry.grant calls it. Redis has only the holds that the
// wait gives back. They are not trusted before EndWait.
func (s *Session) wake(a *Await, token int64, at *Step) {
	s.busy, s.several, s.handed, s.fails, s.why = false, false, false, 0, nil
	s.awaitOp, s.waking = a.Op, true
	s.Ledger.Granted(ledger.Counts{Writes: a.Writes})
	for _, h := range s.holds.all() {
		h.Token, h.Acquired = token, at.Now
		h.start()
	}
}

// EndWait ends a wait on a condition when its call returns. The holds are trusted again.
func (s *Session) EndWait(at *Step) {
	s.waking = false
	for _, h := range s.holds.all() {
		h.start() // again, because a statement may have made its fixed lease whole since wake
	}
	s.schedule(at)
	s.CatchUp(at)
}

// Return puts the holds that a Wait gave up back on their handles, lost or not. If a hold of another owner is in the way,
// because an Unlock could not tell the two apart, Return returns its handle. Call Judge first.
func (s *Session) Return(from *Await, at *Step) (occupied *Handle) {
	for _, h := range from.holds {
		if h.place != away || s.Away() && !h.Lost { // its owner waits again, and the end of that wait puts it back
			continue
		}
		if !h.Lost {
			h.loseOlder(at)
		}
		if h.Handle.mixes(h) {
			return h.Handle
		}
		h.Handle.away.remove(h)
		h.Handle.add(h)
	}
	return nil
}

// TakeOp takes the session's next op for a signal. All copies of the signal have that op, so Redis moves waiters once.
func (s *Session) TakeOp() int64 {
	s.op++
	return s.op
}

// canPass reports whether the lock can pass from the session's last hold to another call without a command.
func (s *Session) canPass(at *Step) bool {
	return !s.Over && !s.unproven && !at.Draining && s.passable() && s.left > 0 && s.fresh(s.Terms.TTL, at.Now)
}

// serve gives the session's next hold to the call of a, an acquisition of the run that waits in the queue. No command
// is sent: a's place leaves the queue when the session is next renewed or released.
func (s *Session) serve(a *Acquisition, at *Step) {
	s.reserveNext()
	s.run.served = append(s.run.served, a)
	a.Over, a.Entry.Given = true, s.Acquisition
	at.timer(a, clock.Instant{}, 0)
	a.Entry.finished(at)
}

// dismiss ends the run. It releases each served acquisition separately, because no later release will name it.
func (s *Session) dismiss(at *Step) {
	if s.run != nil {
		s.run.retire(at)
		s.run = nil
	}
}

// Lose ends a session that is lost, and releases its nonce in Redis, whatever Redis has said. Redis may have it still:
// by an unanswered renewal, a grant later than the one in a message, or a late request. A branch whose ancestor's hold
// has ended stays there until its release. If the owner waits on a condition, the release gives up its place.
func (s *Session) Lose(why error, at *Step) {
	if s.Over {
		return
	}
	s.endLost(why, at)
	at.do(Effect{Do: Release, Of: s.Acquisition})
	if s.Entry != nil {
		s.Entry.finished(at)
	}
}

// endLost is Lose, but the caller decides what happens to the nonce.
func (s *Session) endLost(why error, at *Step) {
	r := s.Room
	s.Over, s.why = true, why
	at.timer(s.Acquisition, clock.Instant{}, 0)
	r.sessions.remove(s)
	if line := r.lineOf(s.flow()); line != nil { // what it knows of the lock and of Redis is out of date
		line.taken, line.silence = false, silence{}
	}
	r.handClaim(s.Acquisition, PlaceNew, at)
	for _, h := range s.holds.all() {
		h.markLost(at)
	}
}

// Close ends the session when the client closes. If it waits on a condition, it is lost and leaves its place. If a call
// has returned one of its holds, it is lost and not released: its holder may not know yet. Otherwise, for example while
// it is kept, it is released, so that it blocks nobody. Reservations are not cleared: each pending call releases its own
// when it sees that the session has ended.
func (s *Session) Close(why error, at *Step) {
	switch {
	case s.Over || s.Entry != nil:
		s.Lose(why, at)
		return
	case s.anyReturned():
		s.endLost(why, at) // before Forget: its Lose effects keep the room in use
		s.dismiss(at)
		at.do(Effect{Do: Forget, Of: s.Acquisition})
		return
	case s.holds.first != nil:
		s.endLost(why, at)
	default:
		s.leaveRoom(at)
	}
	at.do(Effect{Do: Release, Of: s.Acquisition})
}

// anyReturned reports whether any hold of the session was returned to its caller.
func (s *Session) anyReturned() bool {
	for _, h := range s.holds.all() {
		if !h.Pending && h.place != unplaced {
			return true
		}
	}
	return false
}

// finish decides what follows after a hold was dropped. Silent: this client's next call got the lock. Last: the session
// has ended here. Fewer: Redis must hear the counts, and if no hold is left, the call that tells them ends the session.
func (s *Session) finish(at *Step) Ending {
	switch {
	case s.counted():
		return Fewer
	case s.Room.passToLine(s, at), s.run != nil && s.Room.passToRun(s, at):
		return Silent
	}
	s.leaveRoom(at)
	return Last
}

// finishApart is finish for a call that does not wait for Redis: what follows is sent in the background.
func (s *Session) finishApart(at *Step) {
	if s.Absent() { // Redis is told when it holds again
		if s.holds.first == nil {
			s.Lose(ErrLeft, at) // it would hold nothing when it holds again, and its signal belongs to another waiter
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

// Raise sets the token of later holds, for a quorum. Redis' counter is at least as large already.
func (s *Session) Raise(instant int64) { s.token = instant }

// Reasons for a loss that the room finds.
var (
	ErrExpired   = loss.Because(loss.Unreachable, "its lease could not be renewed in time")
	ErrRemoved   = loss.Because(loss.DataLost, "redis no longer has it")
	ErrRegranted = loss.Because(loss.DataLost, "redis no longer has it: it granted the lock again, to another call of this handle")
	ErrLeft      = errors.New("its last hold has ended while its owner waited on a condition")
)

// A share has the holds of a session that have the same terms, oldest first. A statement looks at its first and last
// hold: a named owner may have thousands. A session whose count cannot change has one hold at most, and no shares.
type share struct{ lone[Hold] }
