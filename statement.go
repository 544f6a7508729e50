package relock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// This file is how Redis is told what a session's holds need. Whoever changes what is
// needed has it told; who comes meanwhile waits for the turn, and finds that what it
// needs has been told as well, or tells it.

// lostFor is the error of holds whose session was lost for a reason.
func lostFor(why error) error {
	if why == nil || errors.Is(why, ErrLost) {
		return why
	}
	return fmt.Errorf("%w: %w", ErrLost, why)
}

// errTurn is why a call has not asked Redis.
var errTurn = &requestError{errors.New("redis has not answered what another call of the same owner has told it")}

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

const (
	maxReplicas = 16
	maxAckTime  = 10 * time.Second
	// ackShare is how much of the TTL the replicas may take at most: a renewal
	// that they miss leaves room for another before the trust ends.
	ackShare = 4
)

// Replicas makes a hold count only after n replicas of the server have acknowledged it, and each
// renewal too. A failover to one of them does not grant the lock again while the hold is trusted.
// If too few replicas answer within timeout, the grant is undone, and the call returns ErrReplicas,
// TryLock too. A renewal that too few acknowledge extends nothing, so the hold is lost when its
// last acknowledged lease ends.
//
// n is 1 to 16. timeout is 1 ms to 10 s, at most a quarter of the TTL, and less than the redis
// client's ReadTimeout. A failover to a replica that was not among the n, or that lost its data,
// can still lose the lock: see docs/guarantees.md.
func Replicas(n int, timeout time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		if n < 1 || n > maxReplicas {
			return fmt.Errorf("%w: Replicas of %d; allowed are 1 to %d", ErrInvalidOption, n, maxReplicas)
		}
		t.Terms.Replicas = room.Replicas{N: n, Timeout: timeout}
		return between("Replicas timeout", timeout, time.Millisecond, maxAckTime)
	})
}

// fits checks the time for replicas against what it is part of, once all options have been given.
func fits(r room.Replicas, ttl, readTimeout time.Duration) error {
	if r.Timeout > ttl/ackShare {
		return fmt.Errorf("%w: Replicas timeout of %v with a TTL of %v; it may be a quarter of the TTL at most", ErrInvalidOption, r.Timeout, ttl)
	}
	if readTimeout > 0 && r.Timeout >= readTimeout {
		return fmt.Errorf("%w: Replicas timeout of %v; it must be less than the redis client's ReadTimeout of %v", ErrInvalidOption, r.Timeout, readTimeout)
	}
	return nil
}

// tooFew is the error of a statement that too few replicas have acknowledged.
func tooFew(r room.Replicas, acks int) error {
	return fmt.Errorf("%w: %d of %d acknowledged it within %v; check the replicas of the primary, ask for fewer, or give them longer", ErrReplicas, acks, r.N, r.Timeout)
}

// raise has Redis' counter of tokens be as large as that token, and says whether it has
// answered that it is, and that this holds.
func (h *Hold) raise(ctx context.Context, within time.Duration, token int64) (held bool) {
	a := h.acquisition()
	s := wire.Session{Hash: a.keeper.keys().Hash, Nonce: a.nonce.String(), Owner: a.owner()}
	instant := wire.Instant(token) // the room and Redis know a token without its owner's digits
	raw, err := h.lock.c.transport.Do(ctx, within, h.lock.c.wire.Raise(s, instant, h.lock.terms.TTL))
	if err == nil {
		held, err = wire.DecodeRaise(raw)
	}
	if held && err == nil {
		a.keeper.mu.Lock()
		h.hold.Session.Raise(instant)
		a.keeper.mu.Unlock()
	}
	return held && err == nil
}

// do runs a script, and says how many replicas have what it wrote.
func (c *Client) do(ctx context.Context, timeout time.Duration, need room.Replicas, call transport.Call) (raw []any, acks int, err error) {
	if need.N == 0 {
		raw, err = c.transport.Do(ctx, timeout, call)
		return raw, 0, err
	}
	r := c.transport.DoAcked(ctx, timeout, need.N, need.Timeout, call)[0]
	return r.Reply, r.Acks, r.Err
}

// doAll is do for a batch.
func (c *Client) doAll(ctx context.Context, timeout time.Duration, need room.Replicas, calls []transport.Call) []transport.Acked {
	if need.N > 0 {
		return c.transport.DoAcked(ctx, timeout, need.N, need.Timeout, calls...)
	}
	results := make([]transport.Acked, len(calls))
	for i, r := range c.transport.DoAll(ctx, timeout, calls) {
		results[i] = transport.Acked{Reply: r.Reply, Err: r.Err}
	}
	return results
}
