package relock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// This file is how a session makes Redis know what its holds need, as its ledger says.
// Whoever changes what is needed has it told; who comes meanwhile waits for the turn,
// and finds that what it needs has been told as well, or tells it.

// wish is what a call asks for that is about to have n holds more.
func (t *terms) wish(n ledger.Counts) *ledger.Wish {
	return &ledger.Wish{
		More: n, Lease: t.ttl, Replicas: t.replicas.n, Timeout: t.replicas.timeout, Kept: !t.fixed && t.maxHold == 0,
	}
}

// step returns what is to be stated, for w or because needs have changed: none if Redis
// knows it already. Where nothing is needed any more the session is ended, and last is
// its release. The caller has the turn. It needs room.mu.
func (s *session) step(w *ledger.Wish, now instant) (st *statement, last *releasing, err error) {
	if s.check(now); s.over {
		return nil, nil, errGone
	}
	switch s.ledger.Next(w) {
	case ledger.Say:
		st = s.statement(now)
	case ledger.End:
		last = s.releasing()
		s.end()
	}
	return st, last, nil
}

// statement needs room.mu.
func (s *session) statement(now instant) *statement {
	s.op++
	said := s.ledger.State(s.op)
	st := &statement{s: s, sent: now, said: said}
	if said.Lease > 0 { // else it gives up holds, which needs nobody's acknowledgement
		st.need = s.need()
	}
	lease := said.Lease
	if said.Kept && st.need.n == 0 && s.renews(lease, now) {
		lease = 0
	}
	s.longest = max(s.longest, lease)
	encode := s.room.c.wire
	if said.Opens {
		st.call = encode.Downgrade(s.room.keys(), s.wireSession(), said.Op, said.Counts, lease)
	} else {
		st.call = encode.Hold(s.wireSession(), said.Op, said.Counts, lease)
	}
	return st
}

// renews says that the watchdog keeps a lease that is as long, and that renewals have
// worked of late: a statement that leaves it as it is costs the server half as much. It
// needs room.mu.
func (s *session) renews(lease time.Duration, now instant) bool {
	kept, renewed := s.renewal(now)
	return renewed && kept >= lease && !s.unproven && s.term.Fresh(now, lease)
}

// errTurn is why a call has not asked Redis.
var errTurn = &requestError{errors.New("redis has not answered what another call of the same owner has told it")}

// takeTurn waits until no other call states anything.
func (s *session) takeTurn(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errTurn
	case <-s.room.c.ctx.Done():
		return ErrClosed // whoever has the turn may never give it back
	}
}

// tell has Redis know what the session needs, of which w, unless nil, is what the caller
// needs, until it has answered or ctx ends. errGone: the session is lost, or was ended.
// last is its release, for the caller to send, where nothing is needed any more.
func (s *session) tell(ctx context.Context, w *ledger.Wish, once bool) (last *releasing, err error) {
	r, c := s.room, s.room.c
	began := c.clock.Now()
	final := true // the error is to be told as it is
	err = transport.Try(ctx, nil, func() (again bool, err error) {
		if err := s.takeTurn(ctx); err != nil {
			final = true
			return false, err
		}
		defer func() { <-s.turn }() // also where a hook does not return
		r.mu.Lock()
		var st *statement
		st, last, err = s.step(w, c.clock.Now())
		r.unlock()
		if st != nil {
			again, err = s.state(ctx, st)
		}
		if errors.Is(err, ErrReplicas) && (w == nil || w.Lease == 0) {
			err = nil // replicas are what another call's wish in it asks for
		}
		final = err == nil || errors.Is(err, errGone) || errors.Is(err, ErrReplicas)
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
		err = fmt.Errorf("%w; until then: %w", ended(ctx), err)
	}
	return nil, err
}

// state makes one statement; more: it is to be made again at once.
func (s *session) state(ctx context.Context, st *statement) (more bool, err error) {
	raw, acks, err := s.room.c.do(ctx, s.within(st.need), st.need, st.call)
	if err != nil {
		return false, err
	}
	more, todo, err := s.stated(raw, st.sent, acks)
	runAll(todo)
	if more || err != nil && !errors.Is(err, ErrReplicas) {
		return more, err
	}
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.ledger.Answered(st.said, err == nil)
	return false, err
}

// stated takes the answer to a statement sent at the given time, which so many
// replicas have acknowledged; more: it is to be made again. With ErrReplicas
// Redis has it, and no trust rests on it. todo is for who has nothing else to do.
func (s *session) stated(raw []any, sent instant, acks int) (more bool, todo []func(), err error) {
	r, c := s.room, s.room.c
	reply, err := wire.DecodeHold(raw)
	if err != nil {
		return false, nil, err
	}
	r.sample(reply.Now)
	r.mu.Lock()
	now := c.clock.Now()
	s.check(now)
	switch {
	case s.over:
		err = errGone
	case reply.Several && !s.several:
		s.several, reply.More = true, true
	case !reply.Held:
		s.gone(fmt.Errorf("%w: redis no longer has it", ErrLost), now)
		err = errGone
	case reply.Now == 0: // the lease is as it was
		s.fails = 0
	case s.extend(sent, s.trusted(sent, reply.Remaining), acks):
		s.fails = 0
		s.schedule(now)
	default:
		err = s.need().short(acks)
	}
	return reply.More, r.unlockFirst(), err
}

// tellApart has Redis told without anybody waiting for it. By the end of its time the
// lease has ended, and what was asked for with it.
func (s *session) tellApart() {
	s.room.c.background(s.patience(), func(ctx context.Context) {
		if last, _ := s.tell(ctx, nil, false); last != nil {
			last.later()
		}
	})
}

// catchUp has Redis told of what nobody will tell it of else: what was stated may have
// arrived, or may yet, and a later statement overrides it. It needs room.mu.
func (s *session) catchUp() {
	if !s.over && !s.ledger.Knows() {
		s.room.then(s.tellApart)
	}
}
