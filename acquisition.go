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
	"github.com/relock-go/relock/internal/wire"
)

// An acquisition is one of a keeper's room, and how Redis knows it.
type acquisition struct {
	room.Acquisition
	keeper *keeper
	nonce  wire.Nonce
	number int64 // of the owner made for it; 0: it has a name
	task   renewal.Task
	// turn is nil where no count has been stated, and none can be but by the call that waits.
	turn *turn
}

// A turn is one caller's at a time: who states a new count waits for the statement before.
type turn struct {
	place chan struct{} // there is one
	// end is what comes of the release that ends the session; nil: none has begun. It stands
	// here as most held locks have no turn. It is guarded by the keeper's mu.
	end *outcome
}

// acquired is what a room's acquisition is here.
func acquired(a *room.Acquisition) *acquisition { return a.Of.(*acquisition) }

// nameLen is how much of 128 random bits tells the anonymous holds of two clients apart,
// for people: their nonces do for Redis. So a record fits into the 64 bytes up to
// which Redis keeps a hash as one string, in half the memory (hash-max-listpack-value).
const nameLen = 8

// owner returns the name given, or the one made for the acquisition, or for the one that
// its hold was handed over by. That is made on demand: most holds are anonymous, and their
// names are never read.
func (a *acquisition) owner() string {
	if a.Name != "" {
		return a.Name
	}
	text := make([]byte, 0, 64)
	text = append(append(append(text, room.MadeMark), a.keeper.c.name...), ':')
	return string(strconv.AppendInt(text, a.number, 36))
}

// session is what statements name that tell Redis of the acquisition.
func (a *acquisition) session(several bool) wire.Session {
	s := wire.Session{Hash: a.keeper.hash, Nonce: a.nonce.String(), Owner: a.owner(), Permits: a.Terms.Permits}
	if several {
		s.Queue = a.keeper.keys().Queue
	}
	return s
}

// waitable returns a channel that is closed when the acquisition waits no more.
func (a *acquisition) waitable() <-chan struct{} {
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

func (a *acquisition) giveUp() {
	at := a.keeper.begin()
	a.GiveUp(&at)
	a.keeper.end(&at)
}

// reenter adds a hold to a session of the same owner; reserved: the session counts
// it already.
func (a *acquisition) reenter(w *waiting, reserved bool) (h *Hold, err error) {
	k, s := a.keeper, a.Session
	at := k.begin()
	x, in := s.Reenter(&w.lock.terms.Terms, w.lock.read, reserved, &at)
	switch in {
	case room.Open:
		h = w.lock.newHold(w.unlock)
		s.Hold(&h.hold, &at)
	case room.Shut:
		err = errGone
	case room.Crowded:
		err = fmt.Errorf("%w: owner %q has %d", ErrTooManyHolds, a.owner(), room.MaxHolds)
	}
	if reserved && x == nil {
		s.Entered(&at)
	}
	k.end(&at)
	if x == nil {
		return h, err
	}
	err = errGone
	defer func() { // also where a hook does not return
		at := k.begin()
		defer k.end(&at)
		switch admitted := s.Admit(x, reserved, err == nil, &at); {
		case admitted:
			h = w.lock.newHold(w.unlock)
			s.Hold(&h.hold, &at)
		case err == nil:
			err = errGone
		}
	}()
	if _, err = a.tell(w.ctx, x, w.once); ending.Is(err, errTurn) {
		err = w.overOr(errTurn)
	}
	return nil, err
}

// confirm states a hold that was granted by a message: one with a fixed lease
// has its full TTL then, and replicas acknowledge this statement where they did
// not the grant. If it fails the grant goes to the next in the queue.
func (a *acquisition) confirm(w *waiting) error {
	err := a.prove(w.ctx, w.once)
	if ending.Is(err, errTurn) {
		err = w.overOr(errTurn)
	}
	if err != nil {
		a.giveUp()
	}
	return err
}

// prove is confirm for who gives up nothing.
func (a *acquisition) prove(ctx context.Context, once bool) error {
	a.keeper.mu.Lock()
	x := a.Session.Confirmation()
	a.makeTurn()
	a.Session.Ledger.Wish(x)
	a.keeper.mu.Unlock()
	_, err := a.tell(ctx, x, once)
	a.keeper.mu.Lock()
	a.Session.Ledger.Withdraw(x)
	a.keeper.mu.Unlock()
	return err
}

// makeTurn has the acquisition state counts. It needs the keeper's mu.
func (a *acquisition) makeTurn() {
	if a.turn == nil {
		a.turn = &turn{place: make(chan struct{}, 1)}
	}
}

// takeTurn waits until no other call states anything.
func (a *acquisition) takeTurn(ctx context.Context) error {
	select {
	case a.turn.place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errTurn
	case <-a.keeper.c.ctx.Done():
		return ErrClosed // whoever has the turn may never give it back
	}
}

// errTurn is why a call has not asked Redis.
var errTurn = &requestError{errors.New("redis has not answered what another call of the same owner has told it")}

// begin takes the turn of who has Redis change what a session holds.
func (a *acquisition) begin(ctx context.Context) error {
	a.keeper.mu.Lock()
	a.makeTurn()
	a.keeper.mu.Unlock()
	err := a.takeTurn(ctx)
	if ending.Is(err, errTurn) {
		return ending.Of(ctx)
	}
	return err
}

// gone notes that Redis does not have a session any more.
func (a *acquisition) gone() error {
	at := a.keeper.begin()
	if a.Held() {
		a.Session.Gone(room.ErrRemoved, &at)
	}
	why := lostFor(a.Why())
	a.keeper.end(&at)
	if why == nil {
		return ErrNotHeld // it was released meanwhile
	}
	return why
}

// tell has Redis know what the session needs, of which w, unless nil, is what the caller
// needs, until it has answered or ctx ends. errGone: the session is lost, or was ended.
// last is its release, for the caller to send, where nothing is needed any more.
func (a *acquisition) tell(ctx context.Context, w *ledger.Wish, once bool) (last *releasing, err error) {
	c := a.keeper.c
	began := c.clock.Now()
	final := true // the error is to be told as it is
	err = transport.Try(ctx, nil, func() (again bool, err error) {
		if err := a.takeTurn(ctx); err != nil {
			final = true
			return false, err
		}
		defer func() { <-a.turn.place }() // also where a hook does not return
		var st *room.Statement
		st, last, err = a.step(w)
		if st != nil {
			again, err = a.state(ctx, st)
		}
		if ending.Is(err, ErrReplicas) && (w == nil || w.Lease == 0) {
			err = nil // replicas are what another call's wish in it asks for
		}
		final = err == nil || ending.Is(err, errGone) || ending.Is(err, ErrReplicas)
		return again || !final && (!once || ctx.Err() != nil), err
	})
	switch {
	case final:
		return last, err
	case transport.Hopeless(err):
		return nil, &requestError{err}
	}
	err = failed(ctx, err, c.clock.Now(), began)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w; until then: %w", ending.Of(ctx), err)
	}
	return nil, err
}

// step returns what is to be stated, or the release where nothing is needed any more.
// The caller has the turn.
func (a *acquisition) step(w *ledger.Wish) (st *room.Statement, last *releasing, err error) {
	at := a.keeper.begin()
	defer a.keeper.end(&at)
	st, ends, over := a.Session.Next(w, &at)
	switch {
	case over:
		return nil, nil, errGone
	case ends:
		last = a.releasing()
	}
	return st, last, nil
}

// state makes one statement; more: it is to be made again at once.
func (a *acquisition) state(ctx context.Context, st *room.Statement) (more bool, err error) {
	raw, acks, err := a.keeper.c.do(ctx, st.Need.Within(a.Terms.TTL), st.Need, a.statementCall(st))
	if err != nil {
		return false, err
	}
	more, todo, err := a.stated(st, raw, acks)
	runAll(todo)
	if more || err != nil && !ending.Is(err, ErrReplicas) {
		return more, err
	}
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	st.Answered(err == nil)
	return false, err
}

// statementCall is a statement as it is sent.
func (a *acquisition) statementCall(st *room.Statement) transport.Call {
	c, s := a.keeper.c, a.session(st.Several)
	if st.Said.Opens {
		return c.wire.Downgrade(a.keeper.keys(), s, st.Said.Op, st.Said.Counts, st.Lease)
	}
	return c.wire.Hold(s, st.Said.Op, st.Said.Counts, st.Lease)
}

// stated takes the answer to a statement, which so many replicas have acknowledged;
// more: it is to be made again. With ErrReplicas Redis has it, and no trust rests on it.
// todo is for who has nothing else to do.
func (a *acquisition) stated(st *room.Statement, raw []any, acks int) (more bool, todo []func(), err error) {
	reply, err := wire.DecodeHold(raw)
	if err != nil {
		return false, nil, err
	}
	a.keeper.sample(reply.Now)
	at := a.keeper.begin()
	switch st.Stated(reply, acks, &at) {
	case room.Over:
		err = errGone
	case room.Again:
		more = true
	case room.Short:
		err = tooFew(a.Session.Need(), acks)
	}
	return more, a.keeper.endFirst(&at), err
}

// tellApart has Redis told without anybody waiting for it. By the end of its time the
// lease has ended, and what was asked for with it.
func (a *acquisition) tellApart() {
	left := a.keeper.c.leaving.Begin(a.keeper.hash) // what is told may be that nothing is held any more
	spawned := a.keeper.c.background(a.patience(), func(ctx context.Context) {
		defer left()
		if last, _ := a.tell(ctx, nil, false); last != nil {
			last.later()
		}
	})
	if !spawned {
		left()
	}
}

// finish has Redis hear of the end of a hold.
func (a *acquisition) finish(ending room.Ending, last *releasing) error {
	switch ending {
	case room.Fewer:
		return a.lower()
	case room.Last:
		return last.soon(time.Now().Add(a.keeper.c.cfg.releaseTimeout))
	case room.WasLost:
		return a.fate()
	}
	return nil
}

// lower tells Redis that a session has fewer holds now, or none.
func (a *acquisition) lower() error {
	c := a.keeper.c
	by := time.Now().Add(c.cfg.releaseTimeout)
	ctx, cancel := context.WithDeadline(c.ctx, by)
	defer cancel()
	last, err := a.tell(ctx, nil, false)
	switch {
	case last != nil:
		return last.soon(by)
	case err == nil:
		return nil
	case errors.Is(err, errGone):
		return a.verdict(ctx)
	case transport.Hopeless(err):
		return fmt.Errorf("%w, and will not be: %w; the next renewal says what is left, or the lease ends it", ErrUnconfirmed, err)
	case errors.Is(err, errTurn), errors.Is(err, ErrClosed):
		err = nil
	}
	a.tellApart()
	return c.unconfirmed(err)
}

// fate is why the session is over, or nil where a release ended it or it is not.
func (a *acquisition) fate() error {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	return lostFor(a.Why())
}

// verdict is that of an Unlock whose session was ended before Redis had answered it.
func (a *acquisition) verdict(ctx context.Context) error {
	a.keeper.mu.Lock()
	lost, over, end := lostFor(a.Why()), a.Over(), a.turn.end
	a.keeper.mu.Unlock()
	switch {
	case lost != nil:
		return lost
	case !over: // its owner waits on a condition, and Redis has answered that it holds nothing
		return nil
	case end == nil: // the client closes, and releases it
		end = &outcome{}
	}
	select {
	case <-end.known:
		return end.err
	case <-ctx.Done():
		return a.keeper.c.unconfirmed(nil)
	}
}

// wasGone says why a release found nothing: the hold may have been trusted when it
// was ended, and its lease have run out on the way.
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

// note is what is remembered of a release that is about to be sent: what changes after
// that is noticed. It needs the keeper's mu.
func (a *acquisition) note() replay.Release {
	c, keys := a.keeper.c, a.keeper.keys()
	return replay.Release{
		Keys: keys, Nonce: a.nonce, Owner: a.owner(), Undone: a.Undone(), Doubt: a.until(),
		Until: c.clock.Now().Add(a.Lasts()), Server: c.transport.Server(keys.Hash), Epoch: c.registry.journal.Epoch(),
	}
}

// until is when no copy of a request counts any more; negative: it owes a signal.
func (a *acquisition) until() int64 {
	if a.Owes() {
		return -max(a.Doubt(), 1)
	}
	return a.Doubt()
}

// patience is how long the client goes on telling Redis what it has not
// confirmed: by then the lease has ended, and what was asked for with it.
func (a *acquisition) patience() time.Duration {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	return a.Lasts() + room.LateAfter
}

// releasing is the release of an acquisition that is over, or about to be. It needs the keeper's mu.
func (a *acquisition) releasing() *releasing {
	r := new(releasing)
	r.begin(a)
	if a.turn != nil && a.Session != nil {
		r.end = &outcome{known: make(chan struct{})}
		a.turn.end = r.end
	}
	return r
}

// releaseLater releases an acquisition that is over, whatever it has come to in Redis.
func (a *acquisition) releaseLater() {
	a.keeper.mu.Lock()
	r := a.releasing()
	a.keeper.mu.Unlock()
	r.later()
}
