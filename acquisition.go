package relock

import (
	"cmp"
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

// An acquisition is a room.Acquisition with its keeper and its nonce.
type acquisition struct {
	room.Acquisition
	keeper *keeper
	nonce  wire.Nonce
	number int64        // the number in the generated owner name; 0 if the owner is named
	task   renewal.Task // its timer in the watchdog
	// turn is nil until a call must send a statement. Most anonymous holds never need one: their count is always one.
	turn *turn
}

// A turn is the right to send statements of one session: one call has it at a time. The watchdog's renewals need none.
type turn struct {
	place chan struct{} // has capacity one; a send takes the turn, and a receive gives it back
	// end is the outcome of the release that ends the session, or nil if none has begun. It is a field of turn and not
	// of acquisition to save memory: most held locks have no turn. It is guarded by the keeper's mu.
	end *outcome
}

// acquired returns the acquisition that a is embedded in.
func acquired(a *room.Acquisition) *acquisition { return a.Of.(*acquisition) }

// nameLen is how many random letters identify the client in the owner names that it generates. Few will do: Redis knows
// sessions by their nonces, and names of two clients are rarely alike. A short name lets a record fit into 64 bytes. Up
// to that size Redis stores a hash in its compact form, in half the memory (hash-max-listpack-value).
const nameLen = 8

// owner returns the owner's name, given or generated. An acquisition that resumes a ticket has the owner of the ticket
// in Name, even if it is generated. Other generated names are built on demand, because they are rarely read.
func (a *acquisition) owner() string {
	if a.Name != "" {
		return a.Name
	}
	text := make([]byte, 0, 64)
	text = append(append(append(text, room.MadeMark), a.keeper.c.ownerPrefix...), ':')
	return string(strconv.AppendInt(text, a.number, 36))
}

// session returns what a statement needs to identify the acquisition in Redis.
func (a *acquisition) session() wire.Session {
	return wire.Session{Hash: a.keeper.hash, Nonce: a.nonce.String(), Owner: a.owner(), Permits: a.Terms.Permits}
}

// waitOver returns a channel that is closed once the acquisition no longer waits.
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

// reenter adds a hold to a session of the same owner, and tells Redis first if necessary. With reserved, the session
// counts the hold already. After errGone, the call must ask Redis for the lock like any other call.
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

// prove sends the statement that a grant needs before a hold can be made of it: see Session.ToConfirm. It gives a fixed
// lease its full TTL, and lets replicas acknowledge the grant.
func (a *acquisition) prove(ctx context.Context, once bool) error {
	a.keeper.mu.Lock()
	x := a.Session.Confirmation()
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

// takeTurn waits until the caller has the turn, which it makes if there is none. It returns ctx's error if ctx ends
// first, and ErrClosed if the client closes first.
func (a *acquisition) takeTurn(ctx context.Context) error {
	a.keeper.mu.Lock()
	a.makeTurn()
	a.keeper.mu.Unlock()
	select {
	case a.turn.place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ending.Of(ctx)
	case <-a.keeper.c.ctx.Done():
		return ErrClosed // the call that has the turn may never give it back
	}
}

// markGone marks the session as lost because Redis no longer has it, and returns why.
func (a *acquisition) markGone() error {
	at := a.keeper.begin()
	if a.Held() {
		a.Session.Lose(room.ErrRemoved, &at)
	}
	why := lostFor(a.Why())
	a.keeper.end(&at)
	return cmp.Or(why, ErrNotHeld) // why is nil if it was released in the meantime
}

// tell sends statements until the caller's wish w is fulfilled or, if w is nil, until Redis knows the session's counts.
// It stops when ctx ends and, with once, after a failure. It returns errGone if the session has ended, or if its owner
// waits on a condition. If w is nil and no hold is left, it returns last: the release, which the caller must send.
func (a *acquisition) tell(ctx context.Context, w *ledger.Wish, once bool) (last *releasing, err error) {
	c := a.keeper.c
	began := c.clock.Now()
	final := true // err is what tell returns
	err = transport.Try(ctx, nil, func() (again bool, err error) {
		if err := a.takeTurn(ctx); err != nil {
			final = ending.Is(err, ErrClosed)
			return false, err // if ctx has ended, Redis has not answered the call that has the turn
		}
		defer func() { <-a.turn.place }() // deferred, because a hook of the redis client may panic
		var st *room.Statement
		if st, last, err = a.nextToTell(w); st != nil {
			again, err = a.sendStatement(ctx, st)
		}
		if ending.Is(err, ErrReplicas) && (w == nil || w.Lease == 0) {
			err = nil // only another call's wish in this statement asked for replicas
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

// nextToTell returns the next statement for w, or nil if none is needed. If w is nil and no hold is left, it ends the
// session and returns its release. errGone: it has ended, or its owner waits on a condition. The caller has the turn.
func (a *acquisition) nextToTell(w *ledger.Wish) (st *room.Statement, last *releasing, err error) {
	at := a.keeper.begin()
	defer a.keeper.end(&at)
	st, ends, gone := a.Session.Next(w, &at)
	switch {
	case gone:
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

func (a *acquisition) statementCall(st *room.Statement) transport.Call {
	c, s := a.keeper.c, a.session()
	if st.Said.Opens {
		return c.wire.Downgrade(a.keeper.keys(), s, st.Said.Op, st.Said.Counts, st.Lease)
	}
	call := c.wire.Renew(st.Lease, []wire.Renewal{{Session: s, Op: st.Said.Op, Writes: st.Said.Writes, Reads: st.Said.Reads}})
	if st.Several { // other sessions hold too, and the script finds them by the queue
		call.Keys = append(call.Keys, a.keeper.keys().Queue)
	}
	return call
}

// stated processes the reply to a statement that acks replicas have acknowledged. more says that another statement must
// follow at once. ErrReplicas means that Redis has the statement, but too few replicas do, so it extends no trust.
func (a *acquisition) stated(st *room.Statement, raw []any, acks int) (more bool, err error) {
	reply, err := wire.DecodeStatement(raw, st.Said.Opens)
	if err != nil {
		return false, err
	}
	a.keeper.noteServerClock(reply.Now)
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

// tellLater is tell in the background, without a wish. It stops after patience: the lease has ended by then.
func (a *acquisition) tellLater() {
	left := a.keeper.c.leaving.Begin(a.keeper.hash) // it may release the last hold
	a.keeper.c.background(a.patience(), left, func(ctx context.Context) {
		if last, _ := a.tell(ctx, nil, false); last != nil {
			last.release(ctx, left) // a later attempt of this client waits for that too
		}
	})
}

// tellFewer tells Redis that an Unlock has left the session fewer holds, or none. It returns the result of the Unlock.
func (a *acquisition) tellFewer() error {
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
		return last.releaseNow(by)
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

// loss returns why the session was lost. It returns nil if the session is live or was released.
func (a *acquisition) loss() error {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	return lostFor(a.Why())
}

// awaitRelease returns the result of an Unlock for which tell returned errGone: another call ended the session, its
// owner waits on a condition, or it was lost.
func (a *acquisition) awaitRelease(ctx context.Context) error {
	a.keeper.mu.Lock()
	lost, over, end := lostFor(a.Why()), a.Over, a.turn.end
	a.keeper.mu.Unlock()
	switch {
	case lost != nil:
		return lost
	case !over: // its owner waits on a condition, so the session holds nothing in Redis
		return nil
	case end == nil: // the client is closing and releases the session, but nobody hears the result
		end = &outcome{}
	}
	select {
	case <-end.known:
		return end.err
	case <-ctx.Done():
		return a.keeper.c.unconfirmed(nil)
	}
}

// wasGone returns why a release found no hold in Redis. The hold may still have been trusted when its holder ended it,
// but its lease ran out before the release reached Redis.
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

// journalEntry returns what the journal keeps of a release. It must be called before the release is sent, so that the
// journal notices if another server takes over after that. It needs the keeper's mu.
func (a *acquisition) journalEntry() replay.Release {
	c, keys := a.keeper.c, a.keeper.keys()
	// The name must not rest if no call returned a hold, or if the caller said that the hold does not count (skipRest).
	undone := a.Terms.Rest.For > 0 && (a.Session == nil || a.Session.Used <= 0)
	return replay.Release{
		Keys: keys, Nonce: a.nonce, Owner: a.owner(), Undone: undone, Doubt: a.Doubt(),
		Until: c.clock.Now().Add(a.LongestLease()), Server: c.transport.Server(keys.Hash),
		Epoch: c.registry.journal.Epoch.Load(),
	}
}

// patience returns for how long the client repeats a statement or a release that Redis has not answered. After that the
// lease has ended, and neither matters any more.
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
	r.releaseInBackground()
}

// A releasing is a release in progress.
type releasing struct {
	a      *acquisition
	note   replay.Release
	served []*releasing // of the acquisitions that the grant served: they end with a
	call   transport.Call
	// wasHeld: the lock was held until the release, as far as the client can know. It is also set if a try finds no hold
	// after an unanswered try, which may have released the lock.
	wasHeld    bool
	unanswered bool // an earlier try went unanswered
	// end is how other Unlocks hear the outcome (awaitRelease); nil if there cannot be any.
	end *outcome
}

// prepare makes the command that releases a, and the note for the journal. The command also ends the acquisitions that
// a's grant served. The caller allocates r: most Unlocks have it on their stack. prepare needs the keeper's mu.
func (r *releasing) prepare(a *acquisition) {
	r.a, r.note = a, a.journalEntry()
	var nonces []string
	for _, with := range a.Session.Served() {
		r.served = append(r.served, &releasing{a: acquired(with), note: acquired(with).journalEntry()})
		nonces = append(nonces, acquired(with).nonce.String())
	}
	s := wire.Session{Nonce: a.nonce.String(), Owner: r.note.Owner, Permits: a.Terms.Permits}
	r.call = a.keeper.c.wire.Release(r.note.Keys, s, r.note.Doubt, a.LongestLease(), r.note.Undone, nonces...)
}

// releaseNow sends the release of an Unlock, and returns the Unlock's result. If Redis has not answered by the deadline
// by, the release goes on in the background.
func (r *releasing) releaseNow(by time.Time) error {
	a, c := r.a, r.a.keeper.c
	// The first try is bounded by its timeout alone: nobody has to watch a context, and Close does not interrupt the try.
	// It may take two thirds longer than its timeout if it must make a connection. It may take another two thirds if the
	// server does not know the script. So the timeout is 3/7 of the time that is left.
	returned := false
	defer func() {
		if !returned { // a hook of the redis client has panicked or ended the goroutine
			late := *r
			late.releaseInBackground()
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
		late.releaseInBackground()
		return result
	}
	if r.end != nil {
		r.makeKnown(result)
	}
	return result
}

// result returns what Unlock returns if its release ended with err.
func (r *releasing) result(err error) error {
	switch {
	case err == nil && r.wasHeld:
		return nil
	case err == nil:
		return r.a.wasGone()
	case transport.Hopeless(err):
		return fmt.Errorf("%w, and will not be: %w; the lease ends it", ErrUnconfirmed, err)
	}
	return r.a.keeper.c.unconfirmed(err)
}

// releaseInBackground is release on a goroutine of its own. Shutdown waits for it until the lease has ended.
func (r *releasing) releaseInBackground() {
	c := r.a.keeper.c
	left := c.leaving.Begin(r.a.keeper.hash)
	c.background(r.a.patience(), left, func(ctx context.Context) { r.release(ctx, left) })
}

// release sends the release until Redis answers or ctx ends, which is when the lease has ended. Then it calls left. A
// name that must not rest would still be taken: for it, this goes on for as long as it would rest, or until Shutdown.
func (r *releasing) release(ctx context.Context, left func()) {
	err := r.run(ctx, nil)
	left()
	if err != nil {
		r.forget(false)
	}
	if r.end != nil {
		r.makeKnown(r.result(err))
	}
	if err != nil && r.note.Undone {
		late, cancel := context.WithTimeout(r.a.keeper.c.open, r.a.Terms.Rest.For)
		defer cancel()
		_ = r.run(late, nil)
	}
}

// run sends the release until Redis has answered or ctx ends. With the error err of an earlier try, run pauses first.
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
			return true, nil // at once, but only once: an interrupted call may have closed the connection
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
			r.call.Keys = r.call.Keys[:1] // the slot is migrating, so a Cluster takes only one key
			return false, nil
		}
		r.call.Keys = []string{r.note.Keys.Hash, r.note.Keys.Queue}
		return false, err
	}
	state, now, more, err := wire.DecodeRelease(raw)
	if err != nil {
		return true, err
	}
	a.keeper.noteServerClock(now)
	if state != room.QueueKey && !more {
		r.forget(true)
		r.wasHeld = r.wasHeld || r.unanswered || state == wire.WasHeld
		return true, nil
	}
	// If more is set, the lock is released, but the queue was too long for one call.
	r.wasHeld = r.wasHeld || state == wire.WasHeld
	r.call.Keys = []string{r.note.Keys.Hash, r.note.Keys.Queue}
	if more {
		return false, nil
	}
	return false, errAgain
}

// forget moves the released acquisitions from the registry to the journal. answered says whether Redis has answered.
func (r *releasing) forget(answered bool) {
	for _, with := range r.served {
		with.forget(answered)
	}
	r.a.keeper.c.registry.forget(r.a, &r.note, answered)
}

// makeKnown gives the result of the release to the calls that wait for it.
func (r *releasing) makeKnown(result error) {
	if r.end == nil {
		return
	}
	r.end.err = result
	close(r.end.known)
}

// An outcome is the result of a release that ends a session.
type outcome struct {
	known chan struct{} // closed once err is set
	err   error
}
