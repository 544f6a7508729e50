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

// A waiting is one call that acquires the lock, from its first check to its hold or its error.
type waiting struct {
	ctx    context.Context // the caller's; with TryLock it also ends with the wait, with a waitError as its cause
	lock   *Lock
	keeper *keeper
	owner  string // "": an anonymous call
	manner
	began          clock.Instant
	reported       bool        // the Waiting hook was called
	hint           string      // for the error: what to do about a hold of this client that is in the way; "": none
	goneGrants     int         // grants that ended before the call could use them
	said           room.Answer // Redis' answer to the latest request
	hold           *Hold       // made by sendOnce when Redis answered "held"; nil: confirmed makes it
	wasTaken       bool        // Redis said so, or granted the lock too late, or a hold here showed it; false in an outage
	handleOccupied bool        // ctx ended while a lost hold occupied the handle
	ticket         string      // of the detached hold that the call resumes; "": the call acquires the lock
	stopListening  func()      // undoes listen; nil: not listening
}

// errGone says that the session that a call was granted, or wants to use, has ended. A call that may wait starts again.
var errGone = errors.New("lost before it could be used")

// acquire gets the lock for the call:
//
//  1. It fails if a hold bars the call from the handle (Room.Bars). A named owner that holds in this client re-enters.
//  2. The room decides how the call goes on. It takes a grant that was kept (Sticky), or asks Redis, or stands in line.
//     While it stands in line, another call of this client asks Redis for the whole line.
//  3. askAndWait asks Redis. If the lock is taken, the call waits in Redis' queue.
//  4. The grant becomes the hold of the call.
//
// The hold is not on its handle yet: the caller puts it there. After errGone (the grant ended before it could be used)
// and errOccupied (a lost hold occupies the handle) the call may start again: see restart.
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
			return w.acquire() // if the session was lost in the meantime, Bars now reports that
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
		taken, _ := k.room.Hears(want, nil, at.Now) // asked now: the hold that shows it may end meanwhile
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
		case got.Acquisition != nil: // it is in Redis' queue, or holds already: then askAndWait returns at once
			a, err = w.askAndWait(acquired(got.Acquisition), got.Place, true)
		default:
			k.mu.Lock()
			a = k.newAcquisition(w.owner, w.lock, true)
			k.mu.Unlock()
			a, err = w.askAndWait(a, got.Place, false)
		}
	default:
		a = k.newAcquisition(w.owner, w.lock, way == room.First)
		k.end(&at)
		a, err = w.askAndWait(a, room.PlaceNew, false)
	}
	if err != nil {
		return nil, err
	}
	return w.confirmed(a)
}

// want describes the call to the room.
func (w *waiting) want() room.Want {
	return room.Want{Owner: w.owner, Read: w.lock.read, Once: w.once, Unlock: w.unlock, Terms: &w.lock.terms.Terms}
}

// askAndWait asks Redis for the lock under a's nonce, and waits in Redis' queue until the outcome is known. With
// hasAsked it only waits, because another call has sent a's request. With once it does not wait. got is the acquisition
// that holds for the call: a, or the one whose grant was passed on to a. If askAndWait fails, it gives a up.
func (w *waiting) askAndWait(a *acquisition, place int64, hasAsked bool) (got *acquisition, err error) {
	defer func() {
		if got == nil { // failed, or a hook has panicked
			at := a.keeper.begin()
			defer a.keeper.end(&at)
			if a.Entry != nil {
				w.goneGrants += a.Entry.Wasted // grants that had ended when the client heard of them
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

// ask asks Redis for the lock, and puts the answer into w.said. Only once the listener is up may a request queue:
// otherwise the message with its grant would be missed. Until then requests do not queue, but may find the lock free.
func (w *waiting) ask(a *acquisition, place int64) error {
	c, listener := w.keeper.c, w.keeper.listener
	if listener.Inbox != nil && !listener.Up() {
		listener.Inbox.Start()
	}
	asked := c.clock.Now() // before permit, whose wait for Redis counts too
	if err := w.permit(); err != nil {
		return &requestError{err: err}
	}
	if w.once {
		c.leaving.Await(w.ctx, w.keeper.hash, trust.Attempt(a.Terms.TTL)/2) // a release under way would look like a hold
		return w.attempt(a, asked)
	}
	for retried := false; !listener.Up(); retried = true {
		err := w.request(a, room.PlaceNone, asked)
		if retried && err != nil && w.ctx.Err() != nil {
			return w.withContextEnd(&requestError{listener.Subscribing(listener.Down()), c.clock.Now().Sub(asked)})
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

// permit asks Redis whether the user may run what the call needs, unless the client knows that already. If Redis does
// not answer, permit returns nil: the request that follows reports the outage. permit also stores the client's label.
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

// attempt sends a request that does not queue. It sends another one while Redis says that one call cannot remove all
// dead holders and waiters: their permits, and their places in the queue, are in the way.
func (w *waiting) attempt(a *acquisition, asked clock.Instant) (err error) {
	for again := true; again; again = err == nil && w.said.Code == room.Taken && w.said.More {
		err = w.request(a, room.PlaceNone, asked)
		asked = w.keeper.c.clock.Now()
	}
	return err
}

// awaitMessages waits for at most limit until the listener is up. If it is not up by then, that is no error.
func (w *waiting) awaitMessages(limit time.Duration) error {
	c, listener := w.keeper.c, w.keeper.listener
	w.listen()
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	err := listener.Ready(ctx)
	switch {
	case err == nil:
		return nil
	case w.ctx.Err() != nil:
		return w.withContextEnd(&requestError{err: listener.Subscribing(listener.Down())})
	case c.tracker.Draining():
		return ErrClosed
	case ctx.Err() != nil:
		return nil // not yet
	}
	return &requestError{err: listener.Subscribing(err)}
}

// request sends the request until Redis answers. Each copy has an op of its own. For Redis, all copies under one nonce
// are one request, so a copy after a lost reply cannot take the lock twice. With once, no copy follows an unanswered
// one. An error says for how long Redis has not answered: since asked.
func (w *waiting) request(a *acquisition, place int64, asked clock.Instant) error {
	tries, again := 0, false
	counted := false  // among the calls of c.unheard
	var trouble error // the latest failure; one that only shows the end of the context does not replace an earlier one
	// Nothing ends a pause early when Redis is back, so pauses are short.
	err := transport.TryEvery(w.ctx, w.keeper.c.draining, trust.Attempt(a.Terms.TTL), func() (bool, error) {
		tries++
		err := w.sendOnce(a, place)
		useless := err == nil && (w.said.Code == room.Late || w.said.Code == room.QueueKey)
		switch {
		case err == nil && !useless, ending.Is(err, ErrReplicas), ending.Is(err, ErrClosed):
			return false, err
		case tries == 1 && (useless || transport.TryAgain(err)):
			return true, nil // at once: the answer has corrected the next copy, for example its not-after
		case useless:
			err = errLateAnswers
		}
		if trouble == nil || w.ctx.Err() == nil {
			trouble = failed(w.ctx, err, w.keeper.c.clock.Now(), asked)
		}
		if again = useless || !w.once; tries > 1 && w.ctx.Err() == nil {
			if !counted {
				counted = true
				w.keeper.c.unheard.Begin()
			}
			w.askingAgain(trouble)
		}
		return again, err
	})
	if counted {
		w.keeper.c.unheard.End(err == nil)
	}
	switch {
	case err == nil:
		w.wasTaken = w.wasTaken || w.said.Code != room.OfKind && w.said.Code != room.Upgrade
		return nil
	case ending.Is(err, ErrReplicas), ending.Is(err, ErrClosed):
		return err
	case again && w.ctx.Err() == nil && !transport.Hopeless(err):
		return ErrClosed // tries that may go on stop only when the client ends
	}
	return w.withContextEnd(trouble)
}

// askingAgain logs that Redis does not answer, if a line is due: one line stands for all calls of the client.
func (w *waiting) askingAgain(trouble error) {
	c := w.keeper.c
	if calls, due := c.unheard.Due(c.clock.Now()); due {
		c.cfg.log.Warn("asking for a lock again", slog.String("lock", w.lock.Name()), slog.Int("calls", calls), slog.Any("err", trouble))
	}
}

// sendOnce sends one copy of the request, and tells the room the answer or the failure. It sends nothing if a message
// has brought the outcome of an earlier, unanswered copy.
func (w *waiting) sendOnce(a *acquisition, place int64) error {
	k, c := a.keeper, a.keeper.c
	at := k.begin()
	if !a.Asks() {
		k.end(&at)
		w.said = room.Answer{Code: room.Queued} // it is not queued, but then askAndWait takes that outcome
		return nil
	}
	if err := c.registry.register(a); err != nil { // after Asks: nothing would unregister an acquisition that is over
		k.end(&at)
		return err
	}
	at.Server = k.serverNow()
	echo := wire.Quiet
	if place >= room.PlaceNew { // it may queue, so this client must be able to hear
		echo = c.listeners.Echo(k.listener, time.Since(k.listener.Heard()) > trust.Pulse(a.Terms.TTL))
	}
	q := a.Entry.NextRequest(&at)
	asks := wireRequest(q, place)
	call := c.wire.Acquire(k.keys(), k.kind, q.NotAfter, echo, asks)
	switch {
	case w.ticket != "":
		call = c.wire.Resume(k.keys(), w.ticket, asks, q.NotAfter)
	case q.HashOnly: // while the slot migrates, a Cluster refuses commands with two keys
		call.Keys = call.Keys[:1]
	}
	k.end(&at)
	need := a.Terms.Replicas
	raw, acks, err := k.do(w.ctx, need.Within(a.Terms.TTL), need, call)
	var now int64
	if err == nil {
		now, w.said, err = wire.DecodeAnswer(raw, asks.Block, a.Terms.TTL)
	}
	if err != nil {
		at := k.begin()
		defer k.end(&at)
		f := failure(err)
		// Redis may have run the script and refused only the WAIT after it.
		f.Unknown = f.Unknown || need.N > 0 && transport.Hopeless(err)
		q.Unanswered(f, transport.TryAgain(err))
		return err
	}
	k.noteServerClock(now)
	if w.said.More {
		c.settle(k.keys())
	}
	at = k.begin()
	defer k.end(&at)
	switch short := q.Answered(&w.said, acks, &at); {
	case short: // of replicas
		return tooFew(need, acks)
	case w.said.Code == room.Held && !q.Session.ToConfirm():
		// In the same step, to take the mutex only once. If that fails, w.hold stays nil, and confirmed returns an error.
		w.hold, _ = w.firstHold(a, &at)
	case w.said.Code == room.Queued && echo != wire.Quiet:
		c.listeners.Expect(k.listener, q.Sent)
	}
	return nil
}

// wireRequest returns the arguments of a request.
func wireRequest(q room.Request, place int64) wire.Request {
	a, rest, writes := acquired(q.Acquisition), q.Terms.Rest, uint32(1)
	if q.Await != nil { // after a wait on a condition it gets its holds back, and the rest of its first grant still counts
		rest, writes = room.Rest{}, q.Await.Writes
	}
	return wire.Request{
		Nonce: a.nonce.String(), Op: q.Op, Owner: a.owner(), Read: a.Read,
		TTL: a.Terms.TTL, Rest: rest, Block: q.Block(), Place: place, Writes: writes, Permits: a.Terms.Permits,
	}
}

// failure describes the error of a request to the room.
func failure(err error) room.Failure {
	return room.Failure{
		Err:     &requestError{err: err},
		Unknown: transport.Classify(err) == transport.Unknown,
		Left:    errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded),
	}
}

// confirmed returns the hold of the grant a, and makes it unless sendOnce has. If the terms promise more than the grant
// proves, such as acknowledgements by replicas, it first sends a statement. If that fails, it gives up the grant.
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
		// Close ran before this grant came, so it could not end the session.
		s.Close(lostFor(ErrClosed), at)
		return nil, ErrClosed
	}
	h := w.lock.newHold(w.manner)
	s.First(&h.hold, at)
	return h, nil
}

// inTime gives back a hold that came after the context had ended, and returns the context's error. That happens because
// a select may choose the grant when the end of the context is ready too.
func (w *waiting) inTime(h *Hold) error {
	if ending.Passed(w.ctx) == nil {
		return nil
	}
	if _, bounded := errors.AsType[waitError](context.Cause(w.ctx)); bounded && w.once {
		return nil // a single attempt has no wait: its time only bounds the request
	}
	w.wasTaken = true // for the caller, a grant that came too late counts as taken
	h.giveBack()
	return w.withContextEnd(nil)
}

// standInLine waits behind the call of this client that asks Redis. given is closed once the room has set p.Given.
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
// call's acquisition in Redis' queue, or nil if the call stands in line.
func (w *waiting) sleep(done <-chan struct{}, a *room.Acquisition) error {
	w.listen() // a call in line may soon ask Redis, and a call that took over an entry must hear of its grant
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

// outcome says how the wait of a ended: it returns the acquisition whose grant the call uses, or the error of the call.
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

// listen keeps the lock's sharded channel subscribed until unlisten. The client's one inbox always is.
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

// restart decides whether the call starts again after err. If grants keep ending before they can be used, it pauses
// first. If a lost hold occupies the handle, it waits for its Unlock. final is the error of a call that ends.
func (w *waiting) restart(err error) (again bool, final error) {
	switch {
	case ending.Is(err, errGone) && w.keeper.c.refusing.Load():
		return false, ErrClosed // Close has ended the grant
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
		return true, nil // at once: any pause of the process can end one grant
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

// manyWasted is how many grants of one call must end unused before a warning is logged.
const manyWasted = 5

// refused returns the error for an answer that neither grants the lock nor queues the call. After errGone the call asks
// again, under a new nonce.
func (w *waiting) refused(a *acquisition, said *room.Answer) error {
	switch said.Code {
	case room.Taken:
		return ErrNotAcquired
	case room.OfKind:
		if kind, layout := wire.StoredKind(said.Kind); layout == wire.Layout {
			return fmt.Errorf("%w: its kind is %q until nobody holds it or waits, also on conditions, and no AtLeast or Once keeps it; this call asks for %q; use one kind for a name", ErrKind, kind, w.keeper.kind)
		}
		return fmt.Errorf("%w: %s", ErrKind, otherLayout(said.Kind))
	case room.Upgrade:
		return fmt.Errorf("%w: owner %q reads; unlock its read hold first, or lock for writing from the start", ErrUpgrade, a.owner())
	}
	return errGone // Ended: a new nonce may get the lock
}

// contextEnded returns the error of a call whose context ended while it stood in line (a is nil) or waited in Redis'
// queue. The error says what was wrong with Redis, if anything was.
func (w *waiting) contextEnded(a *room.Acquisition) error {
	k := w.keeper
	k.mu.Lock()
	now := k.c.clock.Now()
	taken, trouble := k.room.Hears(w.want(), a, now)
	k.mu.Unlock()
	w.wasTaken = (taken || w.wasTaken) && trouble.Err == nil
	err := trouble.Err
	if err == nil && (trouble.Silent > 0 || !w.wasTaken) {
		err = unanswered(cmp.Or(trouble.Silent, now.Sub(w.began)))
	}
	return w.withContextEnd(err)
}

// withContextEnd returns err, which may be nil. If the context has ended, it puts the context's error in front.
func (w *waiting) withContextEnd(err error) error {
	switch {
	case err == nil:
		return ending.Of(w.ctx)
	case w.ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", ending.Of(w.ctx), err)
	}
	return err
}

// endOfTry replaces err if it is the end of a TryLock's wait: by errOccupied if a lost hold occupied the handle, or by
// ErrNotAcquired if the call knows that the lock was taken. Otherwise the error says why the call does not know.
func (w *waiting) endOfTry(err error) error {
	trouble, is := errors.AsType[*requestError](err)
	if is && trouble.silent > trust.Attempt(w.lock.terms.TTL) { // an outage: after less Redis may yet answer
		w.wasTaken = false
	}
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
	if is {
		return trouble
	}
	return unanswered(w.keeper.c.clock.Now().Sub(w.began))
}

// explain is endOfTry, and adds hints: grants that ended unused, a hold of this client that is in the way, the holder.
func (w *waiting) explain(err error) error {
	err = w.endOfTry(err)
	if w.goneGrants > 1 {
		err = fmt.Errorf("%w; %d grants had ended before they could be used: by ForceUnlock or with an ancestor's hold, or the TTL of %v is too short for the way to redis or the pauses of the process",
			err, w.goneGrants, w.lock.terms.TTL)
	}
	// The holder may be an outer call of this one or an unrelated goroutine, so hintBeside is never logged.
	if w.hint == "" && w.wasTaken && w.heldFor(w.keeper.room.HeldSince) >= w.lock.terms.TTL/3 {
		w.hint = hintBeside
	}
	if w.hint != "" {
		err = fmt.Errorf("%w; %s", err, w.hint)
	}
	taken := ending.Is(err, ErrNotAcquired)
	if w.keeper.c.cfg.whoHolds && w.wasTaken && !w.inQuorum && (taken && !w.falseIfTaken || !taken && w.ctx.Err() != nil) {
		if who := w.whoHolds(); who != "" {
			err = fmt.Errorf("%w; %s", err, who)
		}
	}
	return err
}

// whoHolds returns text for the error of a wait: the first holder and how many more there are, or that the name rests.
// It returns "" if the name is free, or if Redis does not answer within whoWithin.
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

const (
	hintHeld   = "this handle holds the lock for another owner: a nested call has to name the owner of the outer one, see relock.WithOwner"
	hintLost   = "a lost hold of this handle is not unlocked: each success needs its Unlock, even after a loss; a nested call has to name the owner of the outer one, see relock.WithOwner"
	hintBeside = "another handle of this client holds the lock: if that is an outer call of this one, both have to name one owner, see relock.WithOwner"
)

// note sets the hint for the call's error, and reports whether to log it: each call logs only its first hint.
func (w *waiting) note(hint string) (log bool) {
	log = w.hint == ""
	w.hint = hint
	return log
}

// noteSelf is called when the timer hint fires. If a hold of the same handle has kept the call waiting for a third of
// the TTL, it notes and logs that: an outer call may have that hold. Otherwise it sets the timer again.
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

// heldFor returns for how long of the call's wait the hold that heldSince reports has lasted, or 0 if there is none.
// It calls heldSince under the keeper's mu.
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

// deadTicket returns err, but replaces errGone by the error of a ticket that gives no hold.
func (w *waiting) deadTicket(err error) error {
	switch {
	case !ending.Is(err, errGone):
		return err
	case w.keeper.c.refusing.Load():
		return ErrClosed // a hold that came has been given back
	}
	return fmt.Errorf("%w: nobody holds by this ticket: it has been resumed, its time is over, or the hold was removed", ErrLost)
}

// resume asks Redis for the detached hold of w.ticket. owner is the ticket's. w.owner is "" if that was generated.
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
	if err != nil { // a has ended, or confirmed has given it up
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

// gaveUpHook calls Hooks.GaveUp. The release that removes the call's place in the queue may still be under way.
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
