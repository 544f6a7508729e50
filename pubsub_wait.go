package relock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
)

const (
	// A free lock is passed on within the process at most so often and for so
	// long before the queue in Redis gets its turn.
	maxPasses = 128
	maxTurn   = 10 * time.Millisecond

	// lateAfter is how long after its sending a request may reach Redis and
	// still count.
	lateAfter = 10 * time.Second
	// minPoll keeps a poll at a deadline that is just about to pass from spinning.
	minPoll = 5 * time.Millisecond
	// followDelay is how much later than the head the others look after a dead holder.
	followDelay = 100 * time.Millisecond
)

// errGone says that a session was lost before its caller had a hold of it.
var errGone = errors.New("lost before it could be used")

// A requestError is why Redis could not be asked.
type requestError struct{ err error }

func (e *requestError) Error() string { return "redis could not be asked: " + e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// A room is what this client knows of one lock: who holds it here, and who
// waits here. Anonymous calls on a plain lock, and those of one named owner, send one
// of them to Redis for all, who carries the claim; the others stand in line.
type room struct {
	*family
	hash string // its key
	ear  *ear
	skew atomic.Int64 // of the lock's server: its clock less ours in ms, as last seen
	refs int32        // guarded by c.mu: calls and sessions that use the room

	claimed bool       // an anonymous call waits in Redis or holds, on behalf of the line
	passes  uint8      // holds passed on locally since the grant
	mu      sync.Mutex // guards claimed, passes, the following fields and all sessions' and holds' state

	sessions few[session] // that are held: where a named owner re-enters
	since    clock.Instant
	*crowd   // nil until anybody waits
}

// A crowd is what a room has of those who wait. Its room's mu guards it.
type crowd struct {
	line  line           // of the anonymous calls
	flows map[flow]*line // of named owners; there while a claim is carried
	beat  clock.Instant  // when the heartbeats of the room's waiters are due, as last set
}

// keys are made when they are sent: a held lock needs one of them, now and then.
func (r *room) keys() key.Keys { return key.Of(r.c.cfg.prefix, r.hash) }

// gather makes sure that the room has a crowd. It needs r.mu.
func (r *room) gather() {
	if r.crowd == nil {
		r.crowd = &crowd{}
	}
}

// front returns who is next in line, or nil. It needs r.mu.
func (r *room) front(of flow) *list.Element {
	if line := r.lineOf(of); line != nil {
		return line.Front()
	}
	return nil
}

// align returns when a heartbeat that is due at the given instant is to be sent:
// with the others of the room where those come a little earlier, so that a
// crowd of waiters costs few commands however they came. It needs r.mu.
func (r *room) align(now, due clock.Instant, slack time.Duration) clock.Instant {
	r.gather()
	if early := r.beat.Until(due); early < 0 || early > slack || now.Reached(r.beat) {
		r.beat = due
	}
	return r.beat
}

// A place is a call that stands in line.
type place struct {
	of    flow
	terms *terms
	turn  chan handover // cap 1, so that it is filled under room.mu; filled once, after leaving the line
}

// A handover gives the front of the line one of: a hold (session held), a part in
// what its owner holds (joined), the process' place in the queue (session queued),
// or the claim alone, with the ticket to ask for.
type handover struct {
	session *session
	joined  bool
	ticket  int64
}

// waiting is one call that wants the lock.
type waiting struct {
	ctx      context.Context
	lock     *Lock
	room     *room
	owner    string // "" for a new one
	once     bool   // one attempt, no waiting
	began    clock.Instant
	told     bool   // the Waiting hook has been called
	hint     string // what the caller's own handle has to do with a long wait
	gone     int    // grants that had ended before they could be used
	joins    bool   // the session is held, and has reserved a hold for the call
	taken    bool   // told that the lock is taken
	occupied bool   // the wait ended at the handle: a lost hold is in the way
	leave    func() // ends what listen began; nil: it has not
}

// acquire returns a hold, or errGone if it was lost at once.
func (w *waiting) acquire() (*Hold, error) {
	defer w.unlisten()
	r := w.room
	if w.owner != "" {
		if s := r.heldBy(w.owner, w.lock.read); s != nil {
			r.mu.Lock()
			h := s.join(w.lock, r.c.clock.Now())
			r.mu.Unlock()
			if h != nil {
				return h, nil
			}
			if h, err := s.reenter(w, false); !errors.Is(err, errGone) {
				return h, err
			}
		}
	}
	if r.c.isClosing() {
		return nil, ErrClosed
	}
	w.joins = false
	s, err := w.session()
	if err != nil {
		return nil, err
	}
	if w.joins {
		return s.reenter(w, true)
	}
	if s.terms.fixed && s.wasHanded() || s.isUnproven() {
		// The rest of the queue entry's lease is not what a fixed lease promises;
		// and replicas have yet to acknowledge what a message or a heartbeat said.
		if err := s.confirm(w); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	now := r.c.clock.Now()
	tell, gone := s.check(now), errGone
	if s.phase == held && r.c.hasClosed() {
		// Close came while the answer was under way, and has not seen the grant.
		tell, gone = s.lose(errors.Join(ErrLost, ErrClosed), now), ErrClosed
	}
	if s.phase != held {
		r.mu.Unlock()
		run(tell)
		return nil, gone
	}
	s.reserved--
	h := s.newHold(w.lock, now)
	r.mu.Unlock()
	return h, nil
}

// heldBy returns a session of the owner in this client that a hold of the mode
// can join, judged by the clock. Whether one that reads may write, Redis decides.
func (r *room) heldBy(owner string, read bool) *session {
	r.mu.Lock()
	var found *session
	var tell func()
	for _, s := range r.sessions.all() {
		if s.named && s.owner() == owner && s.phase == held && (read || s.intent.writes > 0) {
			if tell = s.check(r.c.clock.Now()); tell == nil {
				found = s
			}
			break
		}
	}
	r.mu.Unlock()
	run(tell)
	return found
}

// session returns one that is held.
func (w *waiting) session() (*session, error) {
	r := w.room
	r.mu.Lock()
	if w.owner != "" && !w.once {
		r.mu.Unlock()
		return w.follow()
	}
	if w.owner != "" || r.kind != kindPlain || w.once && r.claimed {
		s := r.newSession(w.owner, w.lock)
		r.mu.Unlock()
		return w.contend(s, placeNew)
	}
	if !r.claimed {
		r.claimed = true
		s := r.newFront("", w.lock)
		r.mu.Unlock()
		return w.contend(s, placeNew)
	}
	p := &place{terms: &w.lock.terms, turn: make(chan handover, 1)}
	r.gather()
	spot := r.line.PushBack(p)
	r.mu.Unlock()
	return w.stand(p, spot)
}

// newFront returns a session that carries the claim. It needs r.mu.
func (r *room) newFront(owner string, l *Lock) *session {
	s := r.newSession(owner, l)
	s.front = true
	return s
}

// stand waits in line, and goes on with what is handed over.
func (w *waiting) stand(p *place, spot *list.Element) (*session, error) {
	left := false
	defer func() {
		if !left { // a hook has panicked
			w.room.leaveLine(p, spot)
		}
	}()
	w.listen() // it may be the next to ask
	w.waitingHook()
	hint := time.NewTimer(w.lock.terms.ttl / 3)
	defer hint.Stop()
	for {
		var err error
		select {
		case got := <-p.turn:
			left = true
			return w.take(got)
		case <-hint.C:
			w.noteSelf(hint)
			continue
		case <-w.ctx.Done():
			err = w.over(nil)
		case <-w.room.c.closing:
			err = ErrClosed
		}
		left = true
		w.room.leaveLine(p, spot)
		return nil, err
	}
}

// leaveLine takes a call out of the line whose wait has ended. What was handed
// to it at that very moment goes to the next.
func (r *room) leaveLine(p *place, spot *list.Element) {
	r.mu.Lock()
	select {
	case got := <-p.turn:
		switch got.session {
		case nil:
			r.passOn(p.of, got.ticket)
			r.mu.Unlock()
		default:
			r.mu.Unlock()
			got.session.giveUp()
		}
	default:
		r.lineOf(p.of).Remove(spot)
		r.mu.Unlock()
	}
}

// take goes on as the front of the line.
func (w *waiting) take(got handover) (*session, error) {
	if w.joins = got.joined; w.joins {
		return got.session, nil
	}
	if got.session != nil {
		return w.await(got.session)
	}
	w.room.mu.Lock()
	s := w.room.newFront(w.owner, w.lock)
	w.room.mu.Unlock()
	return w.contend(s, got.ticket)
}

// contend asks Redis for the lock, and waits in its queue unless once.
func (w *waiting) contend(s *session, ticket int64) (got *session, err error) {
	mine := true
	defer func() {
		if mine && got == nil { // failed, or a hook has panicked
			s.giveUp()
		}
	}()
	a, err := w.ask(s, ticket)
	switch {
	case err != nil:
	case a.code == answerHeld:
		return s, nil
	case a.code == answerQueued:
		mine = false // when await gives it up, it may become another's
		return w.await(s)
	case a.code == answerBusy:
		err = ErrNotAcquired
	case a.code == answerKind:
		err = fmt.Errorf("%w: %q is a %s lock while it has holders or waiters, not a %s one", ErrKind, w.lock.Name(), a.kind, s.room.kind)
	case a.code == answerUpgrade:
		err = fmt.Errorf("%w: owner %q", ErrUpgrade, s.owner())
	default:
		err = errGone
	}
	return nil, err
}

// ask makes one request for the session, and another once the inbox hears if the
// first found the lock taken before that: a waiter must be reachable. Until then it
// asks again and again without queueing: nobody else would tell it that the lock is
// free.
func (w *waiting) ask(s *session, ticket int64) (answer, error) {
	c, e := w.room.c, w.room.ear
	if e.shard == nil {
		c.inbox.Start()
	}
	if err := c.permit(w, s.room.keys()); err != nil {
		return answer{}, &requestError{err}
	}
	if w.once {
		return w.request(s, placeNone)
	}
	for deaf := false; !e.Up(); deaf = true {
		a, err := w.request(s, placeNone)
		if deaf && err != nil && w.ctx.Err() != nil {
			return answer{}, w.overOr(&requestError{e.subscribing(e.Down())})
		}
		if err != nil || a.code != answerBusy {
			return a, err
		}
		w.waitingHook()
		if err := w.reachable(min(w.lock.terms.ttl/3, time.Second)); err != nil {
			return answer{}, err
		}
	}
	w.listen()
	return w.request(s, ticket)
}

// reachable waits until messages for the lock are heard, but no longer than limit.
func (w *waiting) reachable(limit time.Duration) error {
	c, e := w.room.c, w.room.ear
	w.listen()
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	err := e.Ready(ctx)
	switch {
	case err == nil:
		return nil
	case w.ctx.Err() != nil:
		return w.overOr(&requestError{e.subscribing(e.Down())})
	case c.isClosing():
		return ErrClosed
	case ctx.Err() != nil:
		return nil // not yet
	}
	return &requestError{e.subscribing(err)}
}

// request sends until it is answered. Every copy has its own number; Redis
// takes copies of one nonce for one request.
func (w *waiting) request(s *session, ticket int64) (answer, error) {
	var trouble error
	for try, sent := 1, w.room.c.clock.Now(); ; try++ {
		a, err := w.sendOnce(s, ticket)
		switch {
		case err == nil && a.code != answerLate && a.code != answerQueueKey:
			w.taken = w.taken || a.code != answerKind && a.code != answerUpgrade
			return a, nil
		case errors.Is(err, ErrReplicas):
			return answer{}, err
		case try == 1 && (err == nil || transport.TryAgain(err)):
			continue // the answer brought what the request lacked
		case err != nil && trouble != nil && w.ctx.Err() != nil:
			// What was the matter before says more.
		case err != nil:
			trouble = failed(w.ctx, err, w.room.c.clock.Now(), sent)
			if w.ctx.Err() == nil && hopeless(err) {
				return answer{}, trouble
			}
		default:
			trouble = &requestError{errLateAnswers}
		}
		if w.ctx.Err() != nil || w.once && err != nil {
			return answer{}, w.overOr(trouble)
		}
		if try > 1 {
			w.room.c.cfg.log.Warn("asking for a lock again", slog.String("lock", w.lock.Name()), slog.Any("err", trouble))
		}
		if !pause(w.ctx, w.room.c.closing, backoff(try)) {
			if w.ctx.Err() == nil {
				return answer{}, ErrClosed
			}
			return answer{}, w.overOr(trouble)
		}
	}
}

// sendOnce makes one try, and notes what its answer says in the session.
func (w *waiting) sendOnce(s *session, ticket int64) (answer, error) {
	r, c := s.room, s.room.c
	r.mu.Lock()
	if s.phase != asking {
		// A message overtook the answer to an earlier copy.
		a := answer{code: answerQueued}
		r.mu.Unlock()
		return a, nil
	}
	c.register(s) // not when it is over: nobody would take it off again
	sent := c.clock.Now()
	op, notAfter := s.send(sent)
	// An inbox that has been silent is asked to prove that it hears.
	echo := ticket >= placeNew && time.Since(r.ear.Heard()) > pulse(s.terms.ttl)
	call := acquireCall(c, r.keys(), r.kind, notAfter, echo, s.request(op, ticket))
	if s.oneKey {
		call.Keys = call.Keys[:1]
	}
	r.mu.Unlock()

	need := s.terms.replicas
	raw, acks, err := c.do(w.ctx, s.within(need), need, call)
	var reply acquireReply
	if err == nil {
		reply, err = decodeAcquire(raw, 1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if need.n > 0 && err != nil && hopeless(err) {
		s.maybe = true // the script may have run, and only its WAIT been refused
	}
	s.settled(err)
	if err != nil {
		s.oneKey = transport.TryAgain(err)
		return answer{}, err
	}
	r.sample(reply.now)
	a := reply.answers[0]
	if echo && a.code == answerQueued {
		c.expectEcho(r.ear, sent)
	}
	if reply.more {
		c.settle(r.keys())
	}
	s.oneKey = s.oneKey && a.code != answerQueueKey
	if a.code == answerHeld && acks < need.n && s.phase != held {
		s.maybe, s.doubt = true, max(s.doubt, notAfter) // it is to be released
		return answer{}, need.short(acks)
	}
	c.apply(s, op, sent, a, acks)
	if a.code == answerHeld && s.phase != held {
		// The lease had run out before its answer came; Redis may not know yet.
		a.code = answerEnded
		s.maybe, s.doubt = true, max(s.doubt, notAfter)
	}
	return a, nil
}

func (s *session) request(op, place int64) request {
	mode := modeWrite
	if s.read {
		mode = modeRead
	}
	return request{
		nonce: s.nonce.String(), op: op, owner: s.owner(), named: s.named, mode: mode,
		ttl: s.terms.ttl, block: s.block(), place: place,
	}
}

// apply notes an answer to the request op, which so many replicas have
// acknowledged. It needs room.mu.
func (c *Client) apply(s *session, op int64, sent clock.Instant, a answer, acks int) {
	now := c.clock.Now()
	switch a.code {
	case answerHeld:
		if s.phase <= queued {
			s.handed = a.remaining < s.terms.ttl
		}
		s.grant(a.low, a.high, sent, a.remaining, now, acks)
	case answerQueued:
		s.queue(op, a, now)
	case answerBusy:
		s.room.gather()
		s.room.word(s, now)
	}
	if a.ghost != "" {
		c.disown(a.ghost, s.room, sent)
	}
}

// await waits in Redis' queue until the session is held.
func (w *waiting) await(s *session) (got *session, err error) {
	defer func() {
		if got == nil {
			w.noteWasted(s)
			s.giveUp()
		}
	}()
	w.listen() // a place that was handed over is heard of by who has it now
	w.waitingHook()
	s.room.mu.Lock()
	done := s.waitable()
	s.room.mu.Unlock()
	hint := time.NewTimer(w.lock.terms.ttl / 3)
	defer hint.Stop()
	for {
		select {
		case <-done:
			s.room.mu.Lock()
			if s.phase == over {
				if err = s.lost; err == nil {
					err = errGone
				}
			}
			s.room.mu.Unlock()
			if err == nil {
				return s, nil
			}
			if errors.Is(err, ErrLost) && !w.room.c.isClosing() {
				err = errGone
			}
			return nil, err
		case <-hint.C:
			w.noteSelf(hint)
			continue
		case <-w.ctx.Done():
			err = w.over(s)
		case <-w.room.c.closing:
			err = ErrClosed
		}
		return nil, err
	}
}

// confirm states a hold that was granted by a message: one with a fixed lease
// has its full TTL then, and replicas acknowledge this statement where they did
// not the grant. If it fails the grant goes to the next in the queue.
func (s *session) confirm(w *waiting) error {
	if s.turn != nil {
		select {
		case s.turn <- struct{}{}:
		case <-w.ctx.Done():
			s.giveUp()
			return w.overOr(errTurn)
		case <-s.room.c.ctx.Done():
			s.giveUp()
			return ErrClosed // whoever has the turn may never give it back
		}
	}
	s.room.mu.Lock()
	n := s.intent
	s.room.mu.Unlock()
	err := s.state(w.ctx, n, s.terms.ttl, w.once)
	if s.turn != nil {
		<-s.turn
	}
	if err != nil {
		s.giveUp()
	}
	return err
}

// giveUp ends a session that nobody waits for any more. A grant that has come
// is passed on; a place in the queue goes to the next in line on the same terms.
func (s *session) giveUp() {
	r := s.room
	r.mu.Lock()
	switch {
	case s.phase == held:
		s.reserved--
		finish := r.finish
		if s.turn != nil {
			finish = (*session).lower // it may have been re-entered already
		}
		passed := !s.named && r.passHold(s, r.c.clock.Now())
		r.mu.Unlock()
		if !passed {
			// The caller's context has ended: it does not wait for the release.
			r.c.spawn(func(context.Context) { _ = finish(s) })
		}
		return
	case s.phase == over:
		r.mu.Unlock()
		return
	case s.phase == queued && s.front && r.inherit(s):
		r.mu.Unlock()
		return
	}
	// Sent at all and not answered, or queued: Redis may know the nonce.
	known := s.phase == queued || s.doubt != 0
	until := s.doubt
	s.end()
	r.mu.Unlock()
	if known {
		s.releaseLater(until)
	} else {
		r.c.unregister(s)
	}
}

// end takes a session off everything but the client's list of nonces. It needs room.mu.
func (s *session) end() {
	ticket := s.ticket
	wasHeld := s.phase == held
	s.phase = over
	s.schedule(clock.Instant{})
	s.room.remove(s)
	if wasHeld {
		ticket, s.lost = placeNew, nil
		s.room.word(s, s.room.c.clock.Now()) // it was taken until now
	}
	s.room.handClaim(s, ticket)
}

// remove needs r.mu.
func (r *room) remove(s *session) {
	if i := r.sessions.index(s); i >= 0 {
		r.sessions.remove(i)
	}
}

// inherit hands a queued session to the next in line, if its terms are the same. It needs r.mu.
func (r *room) inherit(s *session) bool {
	front := r.front(s.flow())
	if front == nil || *front.Value.(*place).terms != *s.terms {
		return false
	}
	r.lineOf(s.flow()).Remove(front)
	front.Value.(*place).turn <- handover{session: s}
	return true
}

// passClaim hands the claim of a session that is over to the next in line. It needs r.mu.
func (r *room) passClaim(s *session) { r.handClaim(s, placeNew) }

func (r *room) handClaim(s *session, ticket int64) {
	if s.front {
		s.front = false
		r.passOn(s.flow(), ticket)
	}
}

// passOn hands the claim to the next in line, with a ticket to ask for. It needs r.mu.
func (r *room) passOn(of flow, ticket int64) {
	front := r.front(of)
	if front == nil {
		r.unclaim(of)
		return
	}
	r.lineOf(of).Remove(front)
	front.Value.(*place).turn <- handover{ticket: ticket}
}

// finish ends an anonymous hold: the next in line has the lock without any
// command, or Redis gives it to whoever is next there.
func (r *room) finish(s *session) error {
	r.mu.Lock()
	if r.passHold(s, r.c.clock.Now()) {
		r.mu.Unlock()
		return nil
	}
	until := s.doubt
	s.end()
	r.mu.Unlock()
	return s.releaseSoon(until, time.Now().Add(r.c.cfg.releaseTimeout))
}

// passHold gives the lock to the next in line: bounded in number and time, so
// that the queue gets its turn, and only while the lease is fresh. It needs r.mu.
func (r *room) passHold(s *session, now clock.Instant) bool {
	front := r.front(flow{})
	if front == nil || s.phase != held || s.unproven || !s.front || r.c.isClosing() || !s.passable() ||
		*front.Value.(*place).terms != *s.terms || s.left == 0 ||
		r.passes >= maxPasses || now.Sub(r.since) >= maxTurn || now.Until(s.trust) < s.terms.ttl/3 {
		return false
	}
	r.line.Remove(front)
	r.passes++
	s.next++
	s.left--
	s.reserved = 1
	front.Value.(*place).turn <- handover{session: s}
	return true
}

// waitingHook tells the trace, once, that the call has to wait.
func (w *waiting) waitingHook() {
	if w.told {
		return
	}
	w.told = true
	if hook := w.room.c.cfg.hooks.Waiting; hook != nil {
		hook(w.ctx, Event{Name: w.lock.Name(), Owner: w.owner})
	}
}

func (h *Hold) acquiredHook(ctx context.Context, waited time.Duration) {
	if hook := h.lock.c.cfg.hooks.Acquired; hook != nil {
		ev := h.event(nil)
		ev.Waited = waited
		hook(ctx, ev)
	}
}
