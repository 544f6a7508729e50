package relock

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/relock-go/relock/internal/room"
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
func (w *waiting) ask(a *acquisition, ticket int64) (room.Answer, error) {
	c, listener := w.keeper.c, w.keeper.listener
	if listener.Inbox != nil && !listener.Up() {
		listener.Inbox.Start()
	}
	if err := c.permit(w); err != nil {
		return room.Answer{}, &requestError{err}
	}
	if w.once {
		return w.attempt(a)
	}
	for deaf := false; !listener.Up(); deaf = true {
		said, err := w.request(a, room.PlaceNone)
		if deaf && err != nil && w.ctx.Err() != nil {
			return room.Answer{}, w.overOr(&requestError{listener.Subscribing(listener.Down())})
		}
		if err != nil || said.Code != room.Busy {
			return said, err
		}
		w.waitingHook()
		if err := w.reachable(min(w.lock.terms.TTL/3, time.Second)); err != nil {
			return room.Answer{}, err
		}
	}
	w.listen()
	return w.request(a, ticket)
}

// attempt makes one request that does not queue. Of a semaphore it asks again where so many
// of those who held are dead that one script could not forget them all: their permits,
// which it counts as used, are free.
func (w *waiting) attempt(a *acquisition) (said room.Answer, err error) {
	for again := true; again; again = err == nil && said.Code == room.Busy && said.More && a.Terms.Permits.Of > 0 {
		said, err = w.request(a, room.PlaceNone)
	}
	return said, err
}

// reachable waits until messages for the lock are heard, but no longer than limit.
func (w *waiting) reachable(limit time.Duration) error {
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
		return w.overOr(&requestError{e.Subscribing(e.Down())})
	case c.tracker.Draining():
		return ErrClosed
	case ctx.Err() != nil:
		return nil // not yet
	}
	return &requestError{e.Subscribing(err)}
}

// request sends until it is answered. Every copy has its own number; Redis
// takes copies of one nonce for one request.
func (w *waiting) request(a *acquisition, ticket int64) (said room.Answer, err error) {
	tries, again, sent := 0, false, w.keeper.c.clock.Now()
	var trouble error // what was the matter with Redis, while the call had time to see
	// Nothing cuts a pause short when Redis can be reached again, so none is long.
	err = transport.TryEvery(w.ctx, w.keeper.c.closing, trust.Attempt(a.Terms.TTL), func() (bool, error) {
		tries++
		said, err = w.sendOnce(a, ticket)
		useless := err == nil && (said.Code == room.Late || said.Code == room.QueueKey)
		switch {
		case err == nil && !useless, errors.Is(err, ErrReplicas):
			return false, err
		case tries == 1 && (useless || transport.TryAgain(err)):
			return true, nil // the answer brought what the request lacked
		case useless:
			err = errLateAnswers
		}
		if trouble == nil || w.ctx.Err() == nil {
			trouble = failed(w.ctx, err, w.keeper.c.clock.Now(), sent)
		}
		if again = useless || !w.once; again && tries > 1 && w.ctx.Err() == nil {
			w.keeper.c.cfg.log.Warn("asking for a lock again", slog.String("lock", w.lock.Name()), slog.Any("err", trouble))
		}
		return again, err
	})
	switch {
	case err == nil:
		w.taken = w.taken || said.Code != room.OfKind && said.Code != room.Upgrade
		return said, nil
	case errors.Is(err, ErrReplicas):
		return room.Answer{}, err
	case again && w.ctx.Err() == nil && !transport.Hopeless(err):
		return room.Answer{}, ErrClosed
	}
	return room.Answer{}, w.overOr(trouble)
}

// sendOnce makes one try, and tells the room what its answer says.
func (w *waiting) sendOnce(a *acquisition, ticket int64) (said room.Answer, err error) {
	k, c := a.keeper, a.keeper.c
	at := k.begin()
	if !a.Waits() || a.Entry.Queued() {
		// A message overtook the answer to an earlier copy.
		k.end(&at)
		return room.Answer{Code: room.Queued}, nil
	}
	c.register(a) // not when it is over: nobody would take it off again
	at.Server = k.serverNow()
	echo := wire.Quiet
	if ticket >= room.PlaceNew {
		echo = c.listeners.Echo(k.listener, time.Since(k.listener.Heard()) > trust.Pulse(a.Terms.TTL))
	}
	q := a.Entry.Send(&at)
	call, block := w.call(q, ticket, echo), a.Entry.Block()
	k.end(&at)

	need := a.Terms.Replicas
	raw, acks, err := c.do(w.ctx, need.Within(a.Terms.TTL), need, call)
	var reply wire.AcquireReply
	if err == nil {
		reply, err = wire.DecodeAcquire(raw, 1, block, a.Terms.TTL)
	}
	if err != nil {
		at = k.begin()
		defer k.end(&at)
		ran := need.N > 0 && transport.Hopeless(err) // only its WAIT may have been refused
		q.Unanswered(failure(err), transport.TryAgain(err), ran)
		return said, err
	}
	k.sample(reply.Now)
	if reply.More {
		reply.Answers[0].More = true
		c.settle(k.keys())
	}
	return w.answered(q, reply.Answers[0], acks, echo)
}

// answered tells the room what was answered. Where that is a grant, the call has its hold.
func (w *waiting) answered(q room.Request, said room.Answer, acks int, echo wire.Echo) (room.Answer, error) {
	k, need := w.keeper, q.Terms.Replicas
	at := k.begin()
	defer k.end(&at)
	said, short := q.Answered(said, acks, &at)
	switch {
	case short:
		return said, tooFew(need, acks)
	case said.Code == room.Held && !q.Session.ToConfirm():
		w.hold, _ = w.firstHold(acquired(q.Acquisition), &at) // where it has none, acquire says why
	case said.Code == room.Queued && echo != wire.Quiet:
		k.c.listeners.Expect(k.listener, q.Sent)
	}
	return said, nil
}

// failure is how a request went unanswered.
func failure(err error) room.Failure {
	return room.Failure{
		Err:     &requestError{err},
		Unknown: transport.Classify(err) == transport.Unknown,
		Left:    errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded),
	}
}

// call is what the request says. It needs the keeper's mu.
func (w *waiting) call(q room.Request, ticket int64, echo wire.Echo) transport.Call {
	if w.ticket != "" {
		return w.keeper.c.wire.Resume(w.keeper.keys(), w.ticket, wireRequest(q, ticket), q.NotAfter)
	}
	return w.keeper.acquireCall(q, ticket, echo)
}

// acquireCall needs k.mu.
func (k *keeper) acquireCall(q room.Request, ticket int64, echo wire.Echo) transport.Call {
	call := k.c.wire.Acquire(k.keys(), k.kind, q.NotAfter, echo, wireRequest(q, ticket))
	if q.OneKey {
		call.Keys = call.Keys[:1]
	}
	return call
}

// wireRequest is a request as it is sent.
func wireRequest(q room.Request, place int64) wire.Request {
	a, rest := acquired(q.Acquisition), q.Terms.Rest
	if q.Await != nil {
		rest = room.Rest{} // what it had from its first grant on lasts
	}
	return wire.Request{
		Nonce: a.nonce.String(), Op: q.Op, Owner: a.owner(), Read: a.Read,
		TTL: a.Terms.TTL, Rest: rest, Block: q.Block(), Place: place, Writes: q.Writes(), Permits: a.Terms.Permits,
	}
}

// isRefused says that Redis answered with an error that is not a passing one.
func isRefused(err error) bool { return transport.Classify(err) == transport.Refused }
