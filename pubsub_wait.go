package relock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// A waiting is one call that wants the lock, from its first look to its hold or its error.
type waiting struct {
	ctx    context.Context // of a TryLock it ends with the wait too, with a waitError as cause
	lock   *Lock
	keeper *keeper
	owner  string // "": an anonymous call
	manner
	began          clock.Instant
	reported       bool        // the Waiting hook was called
	hint           string      // what the caller may do about a hold of this client that is in the way; "": nothing
	goneGrants     int         // grants that ended before the call could use them
	said           room.Answer // Redis' answer to the latest request
	hold           *Hold       // made in the step that took the answer; nil: not made yet
	wasTaken       bool        // the call knows that the lock was taken, from Redis (also by its own grant) or from a hold of this client
	handleOccupied bool        // ctx ended while a lost hold was in the handle's way
	ticket         string      // of a hold that was handed over; "": the call wants the lock itself
	stopListening  func()      // undoes listen; nil: not listening
}

// errGone says that the session that a call was granted, or wants to use, is over. An acquiring call starts again.
var errGone = errors.New("lost before it could be used")

// acquire gets the lock for the call:
//
//  1. A lost hold on the handle may be in the way. A named owner enters what it holds in this client already.
//  2. The room says what comes next. The call gets a grant that was kept (Sticky), or asks Redis. Or it stands in line
//     behind another call of this client that asks for both.
//  3. contend asks Redis. If the lock is taken, the call waits in the queue there.
//  4. The grant becomes the hold of the call.
//
// errGone means that the grant is over, and errOccupied that a lost hold is in the handle's way: see restart. The hold
// is not on its handle yet: the caller puts it there.
func (w *waiting) acquire() (*Hold, error) {
	k := w.keeper
	if k.listener.Inbox == nil {
		defer w.unlisten()
	}
	want, at := w.want(), k.look()
	if bar, by := k.room.Bars(&w.lock.holds, want); bar != room.NoBar {
		k.end(&at)
		return nil, w.lock.barred(bar, by)
	}
	if w.owner != "" {
		if s := k.room.HeldBy(want); s != nil {
			h := w.lock.newHold(w.manner)
			joined := s.NestLocally(&h.hold, &at)
			k.end(&at)
			if joined {
				return h, nil
			}
			if h, err := acquired(s.Acquisition).reenter(w, false); !ending.Is(err, errGone) {
				return h, err
			}
			return w.acquire() // if the session was lost in the meantime, Bars says so
		}
	}
	if k.c.tracker.Draining() {
		k.end(&at)
		return nil, ErrClosed
	}
	w.hold = nil
	var a *acquisition
	var err error
	switch way, p, s := k.room.Want(want, &at); way {
	case room.Retake:
		defer k.end(&at)
		return w.firstHold(acquired(s.Acquisition), &at)
	case room.Behind:
		taken, _ := k.room.Hears(want, nil, w.began, at.Now) // the hold that shows it may end just before the wait does
		w.wasTaken = w.wasTaken || taken
		given := make(chan struct{})
		p.Who = given
		k.end(&at)
		if err = w.standInLine(p, given); err != nil {
			return nil, err
		}
		switch got := p.Given; {
		case got.Joined:
			return acquired(got.Acquisition).reenter(w, true)
		case got.Acquisition != nil: // in the queue already, or holding: then contend returns at once
			a, err = w.contend(acquired(got.Acquisition), got.Place, true)
		default:
			k.mu.Lock()
			a = k.newAcquisition(w.owner, w.lock, true)
			k.mu.Unlock()
			a, err = w.contend(a, got.Place, false)
		}
	default:
		a = k.newAcquisition(w.owner, w.lock, way == room.First)
		k.end(&at)
		a, err = w.contend(a, room.PlaceNew, false)
	}
	if err != nil {
		return nil, err
	}
	return w.confirmed(a)
}

// want is the call as the room knows it.
func (w *waiting) want() room.Want {
	return room.Want{Owner: w.owner, Read: w.lock.read, Once: w.once, Unlock: w.unlock, Terms: &w.lock.terms.Terms}
}

// contend asks Redis for the lock and for a place in the queue, unless another call has asked by a already, and waits
// there until it has an outcome. With once it does not wait. got is a, or the acquisition whose grant was passed on to
// a. Without got, a is given up.
func (w *waiting) contend(a *acquisition, place int64, hasAsked bool) (got *acquisition, err error) {
	defer func() {
		if got == nil { // failed, or a hook has panicked
			at := a.keeper.begin()
			defer a.keeper.end(&at)
			if a.Entry != nil {
				w.goneGrants += a.Entry.Wasted // had ended when the client heard of them
			}
			a.GiveUp(&at)
		}
	}()
	if !hasAsked {
		if err = w.ask(a, place); err != nil {
			return nil, err
		}
		switch w.said.Code {
		case room.Held:
			return a, nil
		case room.Queued:
		default:
			return nil, w.refused(a, &w.said)
		}
	}
	if err = w.sleep(a.waitOver(), &a.Acquisition); err != nil {
		return nil, err
	}
	return w.outcome(a)
}

// ask asks Redis for the lock. The answer is in w.said. A call may join the queue only if messages reach it, or its
// grant would go unheard. Until the listener is up, requests do not queue: one of them may find the lock free.
func (w *waiting) ask(a *acquisition, place int64) error {
	c, listener := w.keeper.c, w.keeper.listener
	if listener.Inbox != nil && !listener.Up() {
		listener.Inbox.Start()
	}
	asked := c.clock.Now() // taken before permit, which may use up the whole wait
	if err := w.permit(); err != nil {
		return &requestError{err: err}
	}
	if w.once {
		c.leaving.Await(w.ctx, w.keeper.hash, trust.Attempt(a.Terms.TTL)/2) // a late release would look like a hold
		return w.attempt(a, asked)
	}
	for deaf := false; !listener.Up(); deaf = true {
		err := w.request(a, room.PlaceNone, asked)
		if deaf && err != nil && w.ctx.Err() != nil {
			return w.orContextEnded(&requestError{err: listener.Subscribing(listener.Down())})
		}
		if err != nil || w.said.Code != room.Taken {
			return err
		}
		w.waitingHook()
		if err := w.awaitMessages(min(w.lock.terms.TTL/3, time.Second)); err != nil {
			return err
		}
		asked = c.clock.Now()
	}
	w.listen()
	return w.request(a, place, asked)
}

// permit asks Redis whether the user may run what the call needs, until one complete answer has come. If there is no
// answer, it returns nil: the request that follows reports the outage.
func (w *waiting) permit() error {
	k, c, terms := w.keeper, w.keeper.c, &w.lock.terms
	if err := c.access.Run(w.ctx, k.hash, k.listener, terms.TTL); err != nil {
		return err
	}
	if terms.Replicas.N > 0 {
		if err := c.access.Wait(w.ctx, k.hash, terms.TTL); err != nil {
			return err
		}
	}
	c.labels.Introduce(w.ctx, terms.TTL)
	return nil
}

// attempt sends one request that does not queue. It sends another one while Redis says that it could not forget all the
// dead in one call. Until then their permits, and their places in the queue, are in the way.
func (w *waiting) attempt(a *acquisition, asked clock.Instant) (err error) {
	for again := true; again; again = err == nil && w.said.Code == room.Taken && w.said.More {
		err = w.request(a, room.PlaceNone, asked)
		asked = w.keeper.c.clock.Now()
	}
	return err
}

// awaitMessages waits until messages about the lock are heard, for at most limit. Not yet is no error.
func (w *waiting) awaitMessages(limit time.Duration) error {
	c, e := w.keeper.c, w.keeper.listener
	w.listen()
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	err := e.Ready(ctx)
	switch {
	case err == nil:
		return nil
	case w.ctx.Err() != nil:
		return w.orContextEnded(&requestError{err: e.Subscribing(e.Down())})
	case c.tracker.Draining():
		return ErrClosed
	case ctx.Err() != nil:
		return nil // not yet
	}
	return &requestError{err: e.Subscribing(err)}
}

// request sends the request until Redis answers. Each copy has a number of its own. For Redis, all copies of one nonce
// are one request, so a copy after a lost reply cannot take the lock twice. With once there is no such copy. An error
// says for how long Redis has not answered: since asked.
func (w *waiting) request(a *acquisition, place int64, asked clock.Instant) error {
	tries, again := 0, false
	waits := false    // counted in unheard
	var trouble error // why Redis did not answer, as long as the context had not ended
	// Nothing ends a pause early when Redis comes back, so pauses are short.
	err := transport.TryEvery(w.ctx, w.keeper.c.draining, trust.Attempt(a.Terms.TTL), func() (bool, error) {
		tries++
		err := w.sendOnce(a, place)
		useless := err == nil && (w.said.Code == room.Late || w.said.Code == room.QueueKey)
		switch {
		case err == nil && !useless, ending.Is(err, ErrReplicas), ending.Is(err, ErrClosed):
			return false, err
		case tries == 1 && (useless || transport.TryAgain(err)):
			return true, nil // the answer said what the request lacked, such as the server's time
		case useless:
			err = errLateAnswers
		}
		if trouble == nil || w.ctx.Err() == nil {
			trouble = failed(w.ctx, err, w.keeper.c.clock.Now(), asked)
		}
		if again = useless || !w.once; tries > 1 && w.ctx.Err() == nil {
			if !waits {
				waits = true
				w.keeper.c.unheard.Begin()
			}
			w.askingAgain(trouble)
		}
		return again, err
	})
	if waits {
		w.keeper.c.unheard.End(err == nil)
	}
	switch {
	case err == nil:
		w.wasTaken = w.wasTaken || w.said.Code != room.OfKind && w.said.Code != room.Upgrade
		return nil
	case ending.Is(err, ErrReplicas), ending.Is(err, ErrClosed):
		return err
	case again && w.ctx.Err() == nil && !transport.Hopeless(err):
		return ErrClosed // only the end of the client stops the tries then
	}
	return w.orContextEnded(trouble)
}

// askingAgain logs that Redis does not answer. One line stands for all calls of the client.
func (w *waiting) askingAgain(trouble error) {
	c := w.keeper.c
	if calls, due := c.unheard.Due(c.clock.Now()); due {
		c.cfg.log.Warn("asking for a lock again", slog.String("lock", w.lock.Name()), slog.Int("calls", calls), slog.Any("err", trouble))
	}
}

// sendOnce sends one copy of the request, and tells the room what came of it.
func (w *waiting) sendOnce(a *acquisition, place int64) error {
	k, c := a.keeper, a.keeper.c
	q, call, block, echo, err := w.next(a, place)
	if err != nil || q.Entry == nil {
		w.said = room.Answer{Code: room.Queued} // so contend looks at what the message has said
		return err
	}
	need := a.Terms.Replicas
	raw, acks, err := k.do(w.ctx, need.Within(a.Terms.TTL), need, call)
	var now int64
	if err == nil {
		now, w.said, err = wire.DecodeAnswer(raw, block, a.Terms.TTL)
	}
	if err != nil {
		at := k.begin()
		defer k.end(&at)
		ran := need.N > 0 && transport.Hopeless(err) // Redis may have run the script and refused only the WAIT after it
		q.Unanswered(failure(err), transport.TryAgain(err), ran)
		return err
	}
	k.sample(now)
	if w.said.More {
		c.settle(k.keys())
	}
	at := k.begin()
	defer k.end(&at)
	switch short := q.Answered(&w.said, acks, &at); {
	case short:
		return tooFew(need, acks)
	case w.said.Code == room.Held && !q.Session.ToConfirm():
		// In the same step, to take the mutex only once. If the grant is over, there is no hold: confirmed says why.
		w.hold, _ = w.firstHold(a, &at)
	case w.said.Code == room.Queued && echo != wire.Quiet:
		c.listeners.Expect(k.listener, q.Sent)
	}
	return nil
}

// next makes the next copy of the request. q.Entry is nil if there is nothing to send: a message has already told the
// call what an earlier, unanswered copy has come to.
func (w *waiting) next(a *acquisition, place int64) (q room.Request, call transport.Call, block int, echo wire.Echo, err error) {
	k, c := a.keeper, a.keeper.c
	at := k.begin()
	defer k.end(&at)
	if !a.Asks() {
		return q, call, 0, echo, nil
	}
	if err = c.registry.register(a); err != nil { // only now: nothing would unregister an acquisition that is over
		return q, call, 0, echo, err
	}
	at.Server = k.serverNow()
	if place >= room.PlaceNew {
		echo = c.listeners.Echo(k.listener, time.Since(k.listener.Heard()) > trust.Pulse(a.Terms.TTL))
	}
	q = a.Entry.NextRequest(&at)
	asks := wireRequest(q, place)
	if w.ticket != "" {
		return q, c.wire.Resume(k.keys(), w.ticket, asks, q.NotAfter), asks.Block, echo, nil
	}
	call = c.wire.Acquire(k.keys(), k.kind, q.NotAfter, echo, asks)
	if q.OneKey { // while the slot migrates, a Cluster refuses commands with two keys
		call.Keys = call.Keys[:1]
	}
	return q, call, asks.Block, echo, nil
}

// wireRequest returns the arguments of a request.
func wireRequest(q room.Request, place int64) wire.Request {
	a, rest, writes := acquired(q.Acquisition), q.Terms.Rest, uint32(1)
	if q.Await != nil { // it gets back what it had, and the rest of its first grant still counts
		rest, writes = room.Rest{}, q.Await.Writes
	}
	return wire.Request{
		Nonce: a.nonce.String(), Op: q.Op, Owner: a.owner(), Read: a.Read,
		TTL: a.Terms.TTL, Rest: rest, Block: q.Block(), Place: place, Writes: writes, Permits: a.Terms.Permits,
	}
}

// failure says how a request went unanswered.
func failure(err error) room.Failure {
	return room.Failure{
		Err:     &requestError{err: err},
		Unknown: transport.Classify(err) == transport.Unknown,
		Left:    errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded),
	}
}

// confirmed returns the hold of a grant, and makes it unless that was done with the answer. If the terms promise more
// than the grant shows, such as replicas that acknowledge it, it states the hold first. If that fails, the grant is
// passed on or released.
func (w *waiting) confirmed(a *acquisition) (*Hold, error) {
	if w.hold != nil {
		return w.hold, nil
	}
	k := w.keeper
	at := k.begin()
	if a.Session.ToConfirm() {
		k.end(&at)
		err := errGone
		defer func() {
			if err != nil { // failed, or a hook of the redis client has panicked
				a.giveUp()
			}
		}()
		if err = a.prove(w.ctx, w.once); err != nil {
			return nil, err
		}
		at = k.begin()
	}
	defer k.end(&at)
	return w.firstHold(a, &at)
}

// firstHold makes the hold that the session has reserved for this call. It needs the keeper's mu.
func (w *waiting) firstHold(a *acquisition, at *room.Step) (*Hold, error) {
	s := a.Session
	s.Check(at)
	switch {
	case a.Over:
		return nil, errGone
	case w.keeper.c.refusing.Load():
		// Close ran while the answer was under way, and could not see this grant.
		s.Close(lostFor(ErrClosed), at)
		return nil, ErrClosed
	}
	h := w.lock.newHold(w.manner)
	s.First(&h.hold, at)
	return h, nil
}

// inTime gives back a hold that came after the context or the wait had ended, and returns that error. When a grant and
// the end of the context are both ready, a select may choose the grant.
func (w *waiting) inTime(h *Hold) error {
	if ending.Passed(w.ctx) == nil {
		return nil
	}
	if _, bounded := errors.AsType[waitError](context.Cause(w.ctx)); bounded && w.once {
		return nil // a single attempt has no wait that could have ended
	}
	w.wasTaken = true // as far as the caller can tell
	h.giveBack()
	return w.orContextEnded(nil)
}

// standInLine waits behind a call of this client that asks Redis, until given is closed: the room has given p something.
func (w *waiting) standInLine(p *room.Follower, given <-chan struct{}) error {
	inLine := true
	defer func() {
		if inLine { // the wait has ended, or a hook has panicked
			at := w.keeper.begin()
			w.keeper.room.Leave(p, &at)
			w.keeper.end(&at)
		}
	}()
	err := w.sleep(given, nil)
	inLine = err != nil
	return err
}

// sleep waits until done is closed. If the context or the client ends first, it returns the error of the call. a is the
// acquisition by which the call asks, or nil if the call stands in line.
func (w *waiting) sleep(done <-chan struct{}, a *room.Acquisition) error {
	w.listen() // a call in line may ask next; a call that took over an entry needs the messages of that entry
	w.waitingHook()
	hint := time.NewTimer(w.lock.terms.TTL / 3)
	defer hint.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-hint.C:
			w.noteSelf(hint)
		case <-w.ctx.Done():
			return w.contextEnded(a)
		case <-w.keeper.c.draining:
			return ErrClosed
		}
	}
}

// outcome returns the acquisition whose grant the call uses now that a no longer waits, or the error of the call.
func (w *waiting) outcome(a *acquisition) (*acquisition, error) {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	why := a.Why()
	refusal, refused := errors.AsType[*room.Refusal](why)
	switch {
	case a.Entry != nil && a.Entry.Given != nil:
		return acquired(a.Entry.Given), nil
	case !a.Over:
		return a, nil
	case refused:
		return nil, w.refused(a, &refusal.Answer)
	case why == nil, a.Session != nil:
		return nil, errGone
	}
	return nil, why
}

// listen keeps the lock's sharded channel subscribed until unlisten. The inbox for all locks needs no such call.
func (w *waiting) listen() {
	if w.keeper.listener.Inbox == nil && w.stopListening == nil {
		w.stopListening = w.keeper.listener.Join()
	}
}

func (w *waiting) unlisten() {
	if w.stopListening != nil {
		w.stopListening()
		w.stopListening = nil
	}
}

// restart reports whether the call starts again after an error. It pauses first if grants keep ending too soon, and
// waits for the Unlock if a lost hold is in the handle's way. final is the error of a call that does not start again.
func (w *waiting) restart(err error) (again bool, final error) {
	switch {
	case ending.Is(err, errGone) && w.keeper.c.refusing.Load():
		return false, ErrClosed // which is why it is gone
	case w.once && ending.Is(err, errGone):
		return false, fmt.Errorf("%w: %w", ErrNotAcquired, err)
	case w.once:
		return false, err
	case err == errOccupied: //nolint:errorlint // made here, never wrapped
		err = w.lock.awaitUnlock(w)
		return err == nil, err
	case !ending.Is(err, errGone):
		return false, err
	}
	w.goneGrants++
	if w.goneGrants == 1 {
		return true, nil // a pause of the process does that
	}
	if w.goneGrants == manyWasted {
		w.keeper.c.logWasted(w.lock.terms.TTL, w.keeper)
	}
	switch {
	case ending.Pause(w.ctx, w.keeper.c.draining, transport.Backoff(w.goneGrants)):
		return true, nil
	case w.ctx.Err() != nil:
		return false, ending.Of(w.ctx)
	}
	return false, ErrClosed
}

// manyWasted is how many grants of one call must end before it can use them until that is logged.
const manyWasted = 5

// refused returns the error for an answer that neither grants the lock nor queues the call. After errGone the call asks
// again, under a new nonce.
func (w *waiting) refused(a *acquisition, said *room.Answer) error {
	switch said.Code {
	case room.Taken:
		return ErrNotAcquired
	case room.OfKind:
		if kind, layout := wire.StoredKind(said.Kind); layout == wire.Layout {
			return fmt.Errorf("%w: its kind is %q until it has no holders and waiters, and this call asks for %q; use one kind for a name", ErrKind, kind, w.keeper.kind)
		}
		return fmt.Errorf("%w: %s", ErrKind, otherLayout(said.Kind))
	case room.Upgrade:
		return fmt.Errorf("%w: owner %q reads; unlock its read hold first, or lock for writing from the start", ErrUpgrade, a.owner())
	}
	return errGone // Ended: a new nonce may get the lock
}

// contextEnded returns the error of a call whose context ended while it stood in line (a is nil) or waited in the
// queue. It says what was the matter with Redis, if anything was.
func (w *waiting) contextEnded(a *room.Acquisition) error {
	k := w.keeper
	k.mu.Lock()
	now := k.c.clock.Now()
	taken, trouble := k.room.Hears(w.want(), a, w.began, now)
	k.mu.Unlock()
	w.wasTaken = w.wasTaken || taken
	err := trouble.Err
	if err == nil && (trouble.Is() || !w.wasTaken) {
		err = unanswered(cmp.Or(trouble.Silent, now.Sub(w.began)))
	}
	return w.orContextEnded(err)
}

// orContextEnded returns err, or if the context has ended, the context's error with err as the trouble until then.
func (w *waiting) orContextEnded(err error) error {
	switch {
	case err == nil:
		return ending.Of(w.ctx)
	case w.ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", ending.Of(w.ctx), err)
	}
	return err
}

// endOfTry turns the end of a TryLock's wait into what TryLock returns: ErrNotAcquired only if the call knows that the
// lock was taken. Otherwise nobody knows who has it, and that is an error.
func (w *waiting) endOfTry(err error) error {
	wait, bounded := errors.AsType[waitError](context.Cause(w.ctx))
	switch {
	case !bounded || !errors.Is(err, wait):
		return err
	case w.handleOccupied:
		return errOccupied
	case w.wasTaken && wait > 0:
		return fmt.Errorf("%w within %v", ErrNotAcquired, time.Duration(wait))
	case w.wasTaken:
		return ErrNotAcquired
	}
	if trouble, is := errors.AsType[*requestError](err); is {
		return trouble
	}
	return unanswered(w.keeper.c.clock.Now().Sub(w.began))
}

// explain adds what else is known about the wait to its error.
func (w *waiting) explain(err error) error {
	err = w.endOfTry(err)
	if w.goneGrants > 1 {
		err = &hintError{err, fmt.Sprintf("%d grants had ended before they could be used: the TTL of %v is too short for the way to redis, or for the pauses of the process",
			w.goneGrants, w.lock.terms.TTL)}
	}
	// The holder may be an outer call or another goroutine: nobody can tell. So the error has a hint, and the log has no line.
	if w.hint == "" && w.wasTaken && w.heldFor(w.keeper.room.HeldSince) >= w.lock.terms.TTL/3 {
		w.hint = hintBeside
	}
	if w.hint != "" {
		err = &hintError{err, w.hint}
	}
	taken := ending.Is(err, ErrNotAcquired)
	if w.keeper.c.cfg.whoHolds && w.wasTaken && !w.inQuorum && (taken && !w.quiet || !taken && w.ctx.Err() != nil) {
		if who := w.whoHolds(); who != "" {
			err = &hintError{err, who}
		}
	}
	return err
}

// whoHolds says for the error of a wait who holds, or that the name rests: the first holder, and how many more. It
// returns "" if the name is free, or if Redis does not answer within whoWithin.
func (w *waiting) whoHolds() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), whoWithin)
	defer cancel()
	info, err := w.lock.Info(ctx)
	switch {
	case err != nil:
		return ""
	case info.Resting > 0:
		return fmt.Sprintf("taken for another %v, without a holder", info.Resting)
	case len(info.Holders) == 0:
		return ""
	}
	h, label, more := info.Holders[0], "", ""
	if h.Label != "" {
		label = fmt.Sprintf(" of %q", h.Label)
	}
	if n := len(info.Holders) - 1; n > 0 {
		more = fmt.Sprintf(", and by %d more", n)
	}
	return fmt.Sprintf("held by %q%s for %v, its lease ends in %v%s", h.Owner, label, h.Held.Round(time.Millisecond), h.TTL, more)
}

// whoWithin is how long whoHolds may take.
const whoWithin = 100 * time.Millisecond

// A hintError is the error of a wait with a hint for the caller.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() + "; " + e.hint }

func (e *hintError) Unwrap() error { return e.err }

const (
	hintHeld   = "this handle holds the lock for another owner: a nested call has to name the owner of the outer one, see relock.WithOwner"
	hintLost   = "a lost hold of this handle is not unlocked: each success needs its Unlock, even after a loss; a nested call has to name the owner of the outer one, see relock.WithOwner"
	hintBeside = "another handle of this client holds the lock: if that is an outer call of this one, both have to name one owner, see relock.WithOwner"
)

// note adds a hint to the call's error, and reports whether to log it: once for each call.
func (w *waiting) note(hint string) (log bool) {
	log = w.hint == ""
	w.hint = hint
	return log
}

// noteSelf notes, once, that the call has waited a third of the TTL for a hold of its own handle. That may be an
// outer call of its goroutine, which then waits for itself. Before that time noteSelf sets the timer to look again.
func (w *waiting) noteSelf(hint *time.Timer) {
	third := w.lock.terms.TTL / 3
	if left := third - w.heldFor(w.lock.holds.HeldSince); left > 0 {
		hint.Reset(left)
		return
	}
	if w.note(hintHeld) {
		w.keeper.c.cfg.log.Warn("waiting long for a lock that the same handle holds; a nested call needs the owner of the outer one: see WithOwner",
			slog.String("lock", w.lock.Name()))
	}
}

// heldFor returns for how long of the call's wait the lock has been held, as far as heldSince tells: 0 if it says that
// nobody holds.
func (w *waiting) heldFor(heldSince func() clock.Instant) time.Duration {
	k := w.keeper
	at := k.look()
	defer k.end(&at)
	since := heldSince()
	if since.IsZero() {
		return 0
	}
	return at.Now.Sub(clock.Max(w.began, since))
}

// deadTicket explains why a ticket gave no hold.
func (w *waiting) deadTicket(err error) error {
	switch {
	case !ending.Is(err, errGone):
		return err
	case w.keeper.c.refusing.Load():
		return ErrClosed // what came then went back at once
	}
	return fmt.Errorf("%w: nobody holds by this ticket: it has been resumed, its time is over, or the hold was removed", ErrLost)
}

// resume asks Redis for the hold that was handed over. owner is the ticket's. A generated name is not in w.owner.
func (w *waiting) resume(owner string) (*Hold, error) {
	k := w.keeper
	if k.c.tracker.Draining() {
		return nil, ErrClosed
	}
	if err := w.permit(); err != nil {
		return nil, &requestError{err: err}
	}
	k.mu.Lock()
	a := k.newAcquisition(owner, w.lock, false)
	k.mu.Unlock()
	held := false
	defer func() {
		if !held { // failed, or a hook has panicked
			a.giveUp()
		}
	}()
	err := w.request(a, room.PlaceNone, w.began)
	if held = err == nil && w.said.Code == room.Held; !held {
		return nil, cmp.Or(err, w.deadTicket(errGone))
	}
	h, err := w.confirmed(a)
	if err != nil { // it has been given up
		return nil, w.deadTicket(err)
	}
	if w.lock.putOnHandle(w, h) != nil {
		return nil, w.deadTicket(errGone)
	}
	return h, nil
}

// waitingHook calls Hooks.Waiting, once for each call.
func (w *waiting) waitingHook() {
	if w.reported {
		return
	}
	w.reported = true
	if hook := w.keeper.c.cfg.hooks.Waiting; hook != nil {
		hook(w.ctx, w.event(nil))
	}
}

// gaveUpHook calls Hooks.GaveUp. The release of the call's place may still be under way.
func (w *waiting) gaveUpHook(err error) {
	if hook := w.keeper.c.cfg.hooks.GaveUp; hook != nil {
		ev := w.event(lockError(w.lock.Name(), err))
		ev.Waited = w.keeper.c.clock.Now().Sub(w.began)
		hook(w.ctx, ev)
	}
}

// event describes a call without a hold, for a hook.
func (w *waiting) event(err error) Event {
	return Event{Name: w.lock.Name(), Owner: w.owner, Err: err, Kind: w.lock.kind, Read: w.lock.read && w.lock.kind != wire.KindSemaphore}
}
