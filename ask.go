package relock

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// A requestError is why Redis could not be asked.
type requestError struct{ err error }

func (e *requestError) Error() string { return "redis could not be asked: " + e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// ask makes one request for the session, and another once the inbox hears if the
// first found the lock taken before that: a waiter must be reachable. Until then it
// asks again and again without queueing: nobody else would tell it that the lock is
// free.
func (w *waiting) ask(e *entry, ticket int64) (wire.Answer, error) {
	c, ear := w.room.c, w.room.ear
	if ear.shard == nil && !ear.Up() {
		c.inbox.Start()
	}
	if err := c.permit(w, w.room.keys()); err != nil {
		return wire.Answer{}, &requestError{err}
	}
	if w.once {
		return w.request(e, wire.PlaceNone)
	}
	for deaf := false; !ear.Up(); deaf = true {
		a, err := w.request(e, wire.PlaceNone)
		if deaf && err != nil && w.ctx.Err() != nil {
			return wire.Answer{}, w.overOr(&requestError{ear.subscribing(ear.Down())})
		}
		if err != nil || a.Code != wire.Busy {
			return a, err
		}
		w.waitingHook()
		if err := w.reachable(min(w.lock.terms.ttl/3, time.Second)); err != nil {
			return wire.Answer{}, err
		}
	}
	w.listen()
	return w.request(e, ticket)
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
func (w *waiting) request(e *entry, ticket int64) (a wire.Answer, err error) {
	tries, again, sent := 0, false, w.room.c.clock.Now()
	var trouble error // what was the matter with Redis, while the call had time to see
	err = transport.Try(w.ctx, w.room.c.closing, func() (bool, error) {
		tries++
		a, err = w.sendOnce(e, ticket)
		useless := err == nil && (a.Code == wire.Late || a.Code == wire.QueueKey)
		switch {
		case err == nil && !useless, errors.Is(err, ErrReplicas):
			return false, err
		case tries == 1 && (useless || transport.TryAgain(err)):
			return true, nil // the answer brought what the request lacked
		case useless:
			err = errLateAnswers
		}
		if trouble == nil || w.ctx.Err() == nil {
			trouble = failed(w.ctx, err, w.room.c.clock.Now(), sent)
		}
		if again = useless || !w.once; again && tries > 1 && w.ctx.Err() == nil {
			w.room.c.cfg.log.Warn("asking for a lock again", slog.String("lock", w.lock.Name()), slog.Any("err", trouble))
		}
		return again, err
	})
	switch {
	case err == nil:
		w.taken = w.taken || a.Code != wire.OfKind && a.Code != wire.Upgrade
		return a, nil
	case errors.Is(err, ErrReplicas):
		return wire.Answer{}, err
	case again && w.ctx.Err() == nil && !transport.Hopeless(err):
		return wire.Answer{}, ErrClosed
	}
	return wire.Answer{}, w.overOr(trouble)
}

// sendOnce makes one try, and notes what its answer says in the entry.
func (w *waiting) sendOnce(e *entry, ticket int64) (said wire.Answer, err error) {
	r, c := e.room, e.room.c
	// An inbox that has been silent is asked to prove that it hears.
	echo := ticket >= wire.PlaceNew && time.Since(r.ear.Heard()) > trust.Pulse(e.terms.ttl)
	r.mu.Lock()
	if !e.waits() || e.queued {
		// A message overtook the answer to an earlier copy.
		r.mu.Unlock()
		return wire.Answer{Code: wire.Queued}, nil
	}
	c.register(e.acquisition) // not when it is over: nobody would take it off again
	p := e.send(c.clock.Now())
	call, block := p.call(ticket, echo), e.block()
	r.mu.Unlock()

	need := e.terms.replicas
	raw, acks, err := c.do(w.ctx, need.within(e.terms.ttl), need, call)
	var reply wire.AcquireReply
	if err == nil {
		reply, err = wire.DecodeAcquire(raw, 1, block)
	}
	r.mu.Lock()
	defer r.unlock()
	if err != nil {
		return said, e.unanswered(err)
	}
	r.sample(reply.Now)
	if reply.More {
		c.settle(r.keys())
	}
	said, err = p.answered(reply.Answers[0], acks)
	switch {
	case err != nil:
	case said.Code == wire.Held && !e.session.toConfirm():
		w.hold, _ = e.session.firstHold(w.lock, c.clock.Now()) // where it has none, acquire says why
	case said.Code == wire.Queued && echo:
		c.expectEcho(r.ear, p.sent)
	}
	return said, err
}

// call needs room.mu.
func (p poll) call(ticket int64, echo bool) transport.Call {
	e, r := p.e, p.e.room
	call := r.c.wire.Acquire(r.keys(), r.kind, p.notAfter, echo, e.request(p.op, ticket))
	if e.oneKey {
		call.Keys = call.Keys[:1]
	}
	return call
}

// unanswered notes that a request of the entry failed. It needs room.mu.
func (e *entry) unanswered(err error) error {
	if e.terms.replicas.n > 0 && transport.Hopeless(err) {
		e.doubt.kept = true // the script may have run, and only its WAIT been refused
	}
	e.settled(err)
	e.oneKey = transport.TryAgain(err)
	return err
}

// answered takes what so many replicas have acknowledged. It needs room.mu.
func (p poll) answered(said wire.Answer, acks int) (wire.Answer, error) {
	e, a := p.e, p.e.acquisition
	a.settled(nil)
	e.oneKey = e.oneKey && said.Code != wire.QueueKey
	if said.Code == wire.Held && acks < a.terms.replicas.n && !a.held() {
		a.doubt.keep(p.notAfter) // it is to be released
		return said, a.terms.replicas.short(acks)
	}
	a.room.c.apply(p, said, acks)
	if said.Code == wire.Held && !a.held() {
		// The lease had run out before its answer came; Redis may not know yet.
		said.Code = wire.Ended
		a.doubt.keep(p.notAfter)
	}
	return said, nil
}

// apply notes an answer that so many replicas have acknowledged. It needs room.mu.
func (c *Client) apply(p poll, said wire.Answer, acks int) {
	a, now := p.e.acquisition, c.clock.Now()
	switch {
	case said.Code == wire.Held && a.session != nil:
		a.session.extend(p.sent, a.trusted(p.sent, said.Remaining), acks)
	case said.Code == wire.Held:
		if a.entry.grant(said.Low, said.High, p.sent, said.Remaining, now, acks) {
			a.session.handed = said.Remaining < a.terms.ttl
		}
	case said.Code == wire.Queued && a.waits():
		a.entry.queue(p.op, said, now)
	case said.Code == wire.Busy:
		a.room.gather()
		a.room.word(a, now)
	}
	if said.Ghost != "" {
		c.disown(said.Ghost, a.room, p.sent)
	}
}

// isRefused says that Redis answered with an error that is not a passing one.
func isRefused(err error) bool { return transport.Classify(err) == transport.Refused }
