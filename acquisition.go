package relock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/replay"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// An acquisition is the room's acquisition with its keeper and its nonce in Redis.
type acquisition struct {
	room.Acquisition
	keeper *keeper
	nonce  wire.Nonce
	number int64        // numbers the generated owner name; 0 if the owner is named
	task   renewal.Task // its timer in the watchdog
	// turn is nil until a call has to state something. Most anonymous holds never do: their count is always one.
	turn *turn
}

// A turn lets one call at a time make statements: the others wait. The watchdog's renewals take no turn.
type turn struct {
	place chan struct{} // has capacity one; a send takes the turn
	// end is the outcome of the release that ends the session, or nil if none has begun. It is a field of turn and not
	// of acquisition to save memory: most held locks have no turn. It is guarded by the keeper's mu.
	end *outcome
}

// acquired returns the acquisition that wraps a.
func acquired(a *room.Acquisition) *acquisition { return a.Of.(*acquisition) }

// nameLen is how many random letters of a client are in the owner names that it generates. People use the names to tell
// clients apart; Redis compares nonces. A short name lets a record fit into 64 bytes. Up to that size Redis stores a
// hash in its compact form, in half the memory (hash-max-listpack-value).
const nameLen = 8

// owner returns the given name, or the generated one. An acquisition that resumes a ticket was given the name that was
// generated for the detached hold. Generated names are built on demand, because they are rarely read.
func (a *acquisition) owner() string {
	if a.Name != "" {
		return a.Name
	}
	text := make([]byte, 0, 64)
	text = append(append(append(text, room.MadeMark), a.keeper.c.name...), ':')
	return string(strconv.AppendInt(text, a.number, 36))
}

// session returns what a statement needs to identify the acquisition in Redis.
func (a *acquisition) session() wire.Session {
	return wire.Session{Hash: a.keeper.hash, Nonce: a.nonce.String(), Owner: a.owner(), Permits: a.Terms.Permits}
}

// waitOver returns a channel that is closed when the acquisition stops waiting, or already if it does not wait.
func (a *acquisition) waitOver() <-chan struct{} {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	if !a.Waits() {
		return closed
	}
	if a.Entry.Waiter == nil {
		a.Entry.Waiter = make(chan struct{})
	}
	return a.Entry.Waiter.(chan struct{})
}

// giveUp ends an acquisition that its call does not want any more: see room.Acquisition.GiveUp.
func (a *acquisition) giveUp() {
	at := a.keeper.begin()
	a.GiveUp(&at)
	a.keeper.end(&at)
}

// reenter adds a hold to a session of the same owner, and first tells Redis if it must know. If reserved is set, the
// session already counts the hold. errGone means that the call must ask Redis for the lock like any other.
func (a *acquisition) reenter(w *waiting, reserved bool) (h *Hold, err error) {
	k, s := a.keeper, a.Session
	at := k.begin()
	x, in := s.Reenter(&w.lock.terms.Terms, w.lock.read, reserved, &at)
	switch in {
	case room.Open:
		h, err = w.firstHold(a, &at)
	case room.Shut:
		err = errGone
	case room.Crowded:
		err = fmt.Errorf("%w: owner %q has %d", ErrTooManyHolds, a.owner(), room.MaxHolds)
	}
	k.end(&at)
	if x == nil {
		return h, err
	}
	err = errGone
	defer func() { // deferred, because a hook of the redis client may panic or end the goroutine
		at := k.begin()
		defer k.end(&at)
		switch admitted := s.Admit(x, reserved, err == nil, &at); {
		case admitted:
			h = w.lock.newHold(w.manner)
			s.Hold(&h.hold, &at)
		case err == nil:
			err = errGone
		}
	}()
	_, err = a.tell(w.ctx, x, w.once)
	return nil, err
}

// prove sends a statement before a hold is made of a grant that shows too little: see Session.ToConfirm. It gives a
// fixed lease its full TTL, and lets replicas acknowledge the grant.
func (a *acquisition) prove(ctx context.Context, once bool) error {
	a.keeper.mu.Lock()
	x := a.Session.Confirmation()
	a.makeTurn()
	a.Session.Ledger.Wish(x)
	a.keeper.mu.Unlock()
	defer func() { // deferred, because a hook of the redis client may panic or end the goroutine
		a.keeper.mu.Lock()
		defer a.keeper.mu.Unlock()
		a.Session.Ledger.Withdraw(x)
	}()
	_, err := a.tell(ctx, x, once)
	return err
}

// makeTurn makes sure that the acquisition has a turn, so that it can send statements. It needs the keeper's mu.
func (a *acquisition) makeTurn() {
	if a.turn == nil {
		a.turn = &turn{place: make(chan struct{}, 1)}
	}
}

// takeTurn waits until no other call sends a statement. It returns ctx's error if that ends first, and ErrClosed
// if the client does.
func (a *acquisition) takeTurn(ctx context.Context) error {
	select {
	case a.turn.place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ending.Of(ctx)
	case <-a.keeper.c.ctx.Done():
		return ErrClosed // the call that has the turn may never give it back
	}
}

// takeTurnToChange is takeTurn for a Cond's Wait or signal. It makes the turn if needed.
func (a *acquisition) takeTurnToChange(ctx context.Context) error {
	a.keeper.mu.Lock()
	a.makeTurn()
	a.keeper.mu.Unlock()
	return a.takeTurn(ctx)
}

// markGone marks the session as lost because Redis no longer has it, and returns why.
func (a *acquisition) markGone() error {
	at := a.keeper.begin()
	if a.Held() {
		a.Session.Gone(room.ErrRemoved, &at)
	}
	why := lostFor(a.Why())
	a.keeper.end(&at)
	if why == nil {
		return ErrNotHeld // it was released in the meantime
	}
	return why
}

// tell sends statements until Redis knows what the session needs, or until ctx ends. w, unless nil, is what this caller
// needs. With once it does not try again after a failure. It returns errGone if the session is lost or has ended. If
// nothing is needed any more, it returns last: the session's release, which the caller must send.
func (a *acquisition) tell(ctx context.Context, w *ledger.Wish, once bool) (last *releasing, err error) {
	c := a.keeper.c
	began := c.clock.Now()
	final := true // err is already the error to return
	err = transport.Try(ctx, nil, func() (again bool, err error) {
		if err := a.takeTurn(ctx); err != nil {
			final = ending.Is(err, ErrClosed)
			return false, err // if ctx has ended, another call's statement is unanswered
		}
		defer func() { <-a.turn.place }() // deferred, because a hook of the redis client may panic
		var st *room.Statement
		if st, last, err = a.step(w); st != nil {
			again, err = a.sendStatement(ctx, st)
		}
		if ending.Is(err, ErrReplicas) && (w == nil || w.Lease == 0) {
			err = nil // only another call's wish in the same statement asked for replicas
		}
		final = err == nil || ending.Is(err, errGone) || ending.Is(err, ErrReplicas)
		return again || !final && (!once || ctx.Err() != nil), err
	})
	switch {
	case final:
		return last, err
	case transport.Hopeless(err):
		return nil, &requestError{err: err}
	}
	err = failed(ctx, err, c.clock.Now(), began)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w; until then: %w", ending.Of(ctx), err)
	}
	return nil, err
}

// step returns the next statement, or the release if no hold is left, or neither. The caller has the turn.
func (a *acquisition) step(w *ledger.Wish) (st *room.Statement, last *releasing, err error) {
	at := a.keeper.begin()
	defer a.keeper.end(&at)
	st, ends, over := a.Session.Next(w, &at)
	switch {
	case over:
		st, err = nil, errGone
	case ends:
		last = a.releasing()
	}
	return st, last, err
}

// sendStatement sends one statement. more means that another one must follow at once: it must name the queue, or the
// queue was too long for one downgrade.
func (a *acquisition) sendStatement(ctx context.Context, st *room.Statement) (more bool, err error) {
	raw, acks, err := a.keeper.do(ctx, st.Need.Within(a.Terms.TTL), st.Need, a.statementCall(st))
	if err != nil {
		return false, err
	}
	return a.stated(st, raw, acks)
}

// statementCall returns the command for a statement.
func (a *acquisition) statementCall(st *room.Statement) transport.Call {
	c, s := a.keeper.c, a.session()
	if st.Said.Opens {
		return c.wire.Downgrade(a.keeper.keys(), s, st.Said.Op, st.Said.Counts, st.Lease)
	}
	call := c.wire.Renew(st.Lease, []wire.Renewal{{Session: s, Op: st.Said.Op, Writes: st.Said.Writes, Reads: st.Said.Reads}})
	if st.Several { // then the script needs the queue
		call.Keys = append(call.Keys, a.keeper.keys().Queue)
	}
	return call
}

// stated processes the reply to a statement that acks replicas have acknowledged. more says that another
// statement must follow at once. ErrReplicas means that Redis has the statement, but too few replicas do, so
// trust does not grow.
func (a *acquisition) stated(st *room.Statement, raw []any, acks int) (more bool, err error) {
	reply, err := wire.DecodeStatement(raw, st.Said.Opens)
	if err != nil {
		return false, err
	}
	a.keeper.sample(reply.Now)
	at := a.keeper.begin()
	defer a.keeper.end(&at)
	switch st.Stated(reply, acks, &at) {
	case room.Over:
		err = errGone
	case room.Again:
		more = true
	case room.Short:
		err = tooFew(a.Session.Need(), acks)
	}
	return more, err
}

// tellLater sends statements in the background. It stops after patience: by then the lease has ended, and
// with it everything that the statements were about.
func (a *acquisition) tellLater() {
	left := a.keeper.c.leaving.Begin(a.keeper.hash) // the statement may be that nothing is held any more
	a.keeper.c.background(a.patience(), left, func(ctx context.Context) {
		if last, _ := a.tell(ctx, nil, false); last != nil {
			last.later()
		}
	})
}

// lower tells Redis for an Unlock that the session has fewer holds, or none, and returns the result of the Unlock.
func (a *acquisition) lower() error {
	c := a.keeper.c
	by := time.Now().Add(c.cfg.releaseTimeout)
	ctx, cancel := context.WithDeadline(c.ctx, by)
	defer cancel()
	returned := false
	defer func() {
		if !returned { // a hook of the redis client has panicked or ended the goroutine
			a.tellLater()
		}
	}()
	last, err := a.tell(ctx, nil, false)
	returned = true
	switch {
	case last != nil:
		return last.soon(by)
	case err == nil:
		return nil
	case errors.Is(err, errGone):
		return a.awaitRelease(ctx)
	case transport.Hopeless(err):
		return fmt.Errorf("%w, and will not be: %w; the next renewal says what is left, or the lease ends it", ErrUnconfirmed, err)
	}
	a.tellLater()
	return c.unconfirmed(err)
}

// fate returns why the session was lost. It returns nil if the session is live or was released.
func (a *acquisition) fate() error {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	return lostFor(a.Why())
}

// awaitRelease returns the result of an Unlock whose session ended, or began to wait, before Redis had answered it.
func (a *acquisition) awaitRelease(ctx context.Context) error {
	a.keeper.mu.Lock()
	lost, over, end := lostFor(a.Why()), a.Over, a.turn.end
	a.keeper.mu.Unlock()
	switch {
	case lost != nil:
		return lost
	case !over: // its owner waits on a condition, and Redis has answered that it holds nothing
		return nil
	case end == nil: // the client is closing and releases the session
		end = &outcome{}
	}
	select {
	case <-end.known:
		return end.err
	case <-ctx.Done():
		return a.keeper.c.unconfirmed(nil)
	}
}

// wasGone returns why a release found no hold in Redis. The hold may have been trusted when it was ended,
// while its lease ran out on the way to Redis.
func (a *acquisition) wasGone() error {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	if a.keeper.c.clock.Now().Reached(a.Session.Until()) {
		reason := loss.Unreachable
		if a.Terms.Fixed {
			reason = loss.FixedLease
		}
		return lostFor(loss.Because(reason, "its lease ended before the release reached redis"))
	}
	return lostFor(loss.Because(loss.DataLost, "redis no longer had it"))
}

// note returns what the journal keeps of a release. It is taken before the release is sent, so that a server
// that changes after that is noticed. It needs the keeper's mu.
func (a *acquisition) note() replay.Release {
	c, keys := a.keeper.c, a.keeper.keys()
	// The name must not rest if no call has had a hold, or if its caller says that the hold does not count.
	undone := a.Terms.Rest.For > 0 && (a.Session == nil || a.Session.Used <= 0)
	return replay.Release{
		Keys: keys, Nonce: a.nonce, Owner: a.owner(), Undone: undone, Doubt: a.Doubt(),
		Until: c.clock.Now().Add(a.LongestLease()), Server: c.transport.Server(keys.Hash),
		Epoch: c.registry.journal.Epoch.Load(),
	}
}

// patience is how long the client keeps sending what Redis has not confirmed. After that the lease has ended,
// and with it everything that was asked for.
func (a *acquisition) patience() time.Duration {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	return a.LongestLease() + room.LateAfter
}

// releasing returns the release of an acquisition that has ended or is about to end. It needs the keeper's mu.
func (a *acquisition) releasing() *releasing {
	r := new(releasing)
	r.prepare(a)
	if a.turn != nil && a.Session != nil {
		r.end = &outcome{known: make(chan struct{})}
		a.turn.end = r.end
	}
	return r
}

// releaseLater releases an ended acquisition in the background, whether or not Redis has granted it.
func (a *acquisition) releaseLater() {
	a.keeper.mu.Lock()
	r := a.releasing()
	a.keeper.mu.Unlock()
	r.later()
}

// A releasing is a release in progress.
type releasing struct {
	a    *acquisition
	note replay.Release
	also []*releasing // served acquisitions, which end with it
	call transport.Call
	// was says that the lock was held until the release, as far as can be known. If a first try was
	// unanswered and a second one finds nothing, the first one may have released the lock.
	was        bool
	unanswered bool // an earlier try went unanswered
	// end is the outcome for other calls whose holds this release ends; nil if there cannot be any.
	end *outcome
}

// prepare makes the command that releases a, and its note for the journal. Acquisitions that a's grant also served go
// with it. The caller allocates r: most Unlocks have it on their stack. It needs the keeper's mu.
func (r *releasing) prepare(a *acquisition) {
	r.a, r.note = a, a.note()
	var served []string
	for _, with := range a.Session.Served() {
		r.also = append(r.also, &releasing{a: acquired(with), note: acquired(with).note()})
		served = append(served, acquired(with).nonce.String())
	}
	s := wire.Session{Nonce: a.nonce.String(), Owner: r.note.Owner, Permits: a.Terms.Permits}
	r.call = a.keeper.c.wire.Release(r.note.Keys, s, r.note.Doubt, a.LongestLease(), r.note.Undone, served...)
}

// soon releases for an Unlock and returns its result. If Redis has not answered at the instant by, the
// release goes on in the background.
func (r *releasing) soon(by time.Time) error {
	a, c := r.a, r.a.keeper.c
	// The first try is bounded by its timeout alone, so nobody has to watch a context. A Close in the meantime does not
	// interrupt it. A try may take two thirds longer if a connection must be made first, and again if the server does not
	// know the script. So it gets 3/7 of the time that is left.
	returned := false
	defer func() {
		if !returned { // a hook of the redis client has panicked or ended the goroutine
			late := *r
			late.later()
		}
	}()
	done, err := r.try(context.Background(), max(min(trust.Attempt(a.Terms.TTL), time.Until(by)*3/7), 1))
	if !done {
		ctx, cancel := context.WithDeadline(c.ctx, by)
		defer cancel()
		err = r.run(ctx, err)
	}
	returned = true
	result := r.result(err)
	switch {
	case err == nil:
	case transport.Hopeless(err):
		r.forget(false)
	default:
		late := *r // a copy, because r may be on the stack of the Unlock
		late.later()
		return result
	}
	if r.end != nil {
		r.settle(result)
	}
	return result
}

// result returns what Unlock returns if its release ended with err.
func (r *releasing) result(err error) error {
	switch {
	case err == nil && r.was:
		return nil
	case err == nil:
		return r.a.wasGone()
	case transport.Hopeless(err):
		return fmt.Errorf("%w, and will not be: %w; the lease ends it", ErrUnconfirmed, err)
	}
	return r.a.keeper.c.unconfirmed(err)
}

// later releases in the background. When it gives up, the lease has ended, and Shutdown waits no longer. Only a name
// that must not rest would still be taken: its release is tried for as long as it would rest, or until Shutdown.
func (r *releasing) later() {
	c := r.a.keeper.c
	left := c.leaving.Begin(r.a.keeper.hash)
	c.background(r.a.patience(), left, func(ctx context.Context) {
		err := r.run(ctx, nil)
		left()
		if err != nil {
			r.forget(false)
		}
		if r.end != nil {
			r.settle(r.result(err))
		}
		if err != nil && r.note.Undone {
			late, cancel := context.WithTimeout(c.open, r.a.Terms.Rest.For)
			defer cancel()
			_ = r.run(late, nil)
		}
	})
}

// run tries until Redis has answered or ctx ends. err is the result of an earlier try, which counts as the first.
func (r *releasing) run(ctx context.Context, err error) error {
	tried, unsent := err != nil, false
	err = transport.Try(ctx, nil, func() (again bool, _ error) {
		if tried {
			tried = false
			return true, err
		}
		done, err := r.try(ctx, trust.Attempt(r.a.Terms.TTL))
		if !unsent && err != nil && transport.Classify(err) == transport.NotExecuted {
			unsent = true
			return true, nil // an interrupted call has closed its connection; a new one is tried at once
		}
		return !done, err
	})
	return err
}

// errAgain says that the release must be sent again, with all its keys.
var errAgain = errors.New("redis asks for another form of the request")

// try sends the release once. If done is false, the caller must try again: at once if err is nil.
func (r *releasing) try(ctx context.Context, timeout time.Duration) (done bool, err error) {
	a, c := r.a, r.a.keeper.c
	raw, err := c.transport.Do(ctx, timeout, r.call)
	if err != nil {
		switch transport.Classify(err) {
		case transport.Closed, transport.Refused:
			return true, err
		case transport.Unknown:
			r.unanswered = true
		}
		if transport.TryAgain(err) && len(r.call.Keys) > 1 {
			r.call.Keys = r.call.Keys[:1]
			return false, nil
		}
		r.call.Keys = []string{r.note.Keys.Hash, r.note.Keys.Queue}
		return false, err
	}
	state, now, more, err := wire.DecodeRelease(raw)
	if err != nil {
		return true, err
	}
	a.keeper.sample(now)
	if state != room.QueueKey && !more {
		r.forget(true)
		r.was = r.was || r.unanswered || state == wire.WasHeld
		return true, nil
	}
	// If more is set, the lock is released, but the queue needs further calls to move on.
	r.was = r.was || state == wire.WasHeld
	r.call.Keys = []string{r.note.Keys.Hash, r.note.Keys.Queue}
	if more {
		return false, nil
	}
	return false, errAgain
}

// forget moves what was released from the registry to the journal. answered says whether Redis has answered.
func (r *releasing) forget(answered bool) {
	for _, with := range r.also {
		with.forget(answered)
	}
	r.a.keeper.c.registry.forget(r.a, &r.note, answered)
}

// settle publishes the result of the release to the calls that wait for it.
func (r *releasing) settle(verdict error) {
	if r.end == nil {
		return
	}
	r.end.err = verdict
	close(r.end.known)
}

// An outcome is the result of a release that ends a session.
type outcome struct {
	known chan struct{} // closed once err is set
	err   error
}
