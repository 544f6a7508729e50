package relock

import (
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

// ask makes one request for the session, and another once the inbox hears if the
// first found the lock taken before that: a waiter must be reachable. Until then it
// asks again and again without queueing: nobody else would tell it that the lock is
// free.
func (w *waiting) ask(a *acquisition, ticket int64) error {
	c, listener := w.keeper.c, w.keeper.listener
	if listener.Inbox != nil && !listener.Up() {
		listener.Inbox.Start()
	}
	if err := c.permit(w); err != nil {
		return &requestError{err}
	}
	if w.once {
		c.leaving.Await(w.ctx, w.keeper.hash, trust.Attempt(a.Terms.TTL)/2)
		return w.attempt(a)
	}
	for deaf := false; !listener.Up(); deaf = true {
		err := w.request(a, room.PlaceNone)
		if deaf && err != nil && w.ctx.Err() != nil {
			return w.overOr(&requestError{listener.Subscribing(listener.Down())})
		}
		if err != nil || w.said.Code != room.Busy {
			return err
		}
		w.waitingHook()
		if err := w.reachable(min(w.lock.terms.TTL/3, time.Second)); err != nil {
			return err
		}
	}
	w.listen()
	return w.request(a, ticket)
}

// permit asks what the call needs, of that what has not been answered yet.
func (c *Client) permit(w *waiting) error {
	terms := &w.lock.terms
	if err := c.access.Run(w.ctx, w.keeper.hash, w.keeper.listener, terms.TTL); err != nil {
		return err
	}
	if terms.Replicas.N > 0 {
		if err := c.access.Wait(w.ctx, w.keeper.hash, terms.TTL); err != nil {
			return err
		}
	}
	c.labels.Introduce(w.ctx, terms.TTL)
	return nil
}

// attempt makes one request that does not queue. Of a semaphore it asks again where so many
// of those who held are dead that one script could not forget them all: their permits,
// which it counts as used, are free.
func (w *waiting) attempt(a *acquisition) (err error) {
	for again := true; again; again = err == nil && w.said.Code == room.Busy && w.said.More && a.Terms.Permits.Of > 0 {
		err = w.request(a, room.PlaceNone)
	}
	return err
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
func (w *waiting) request(a *acquisition, ticket int64) error {
	tries, again, sent := 0, false, w.keeper.c.clock.Now()
	waits := false    // counted as a call that Redis has not answered
	var trouble error // what was the matter with Redis, while the call had time to see
	// Nothing cuts a pause short when Redis can be reached again, so none is long.
	err := transport.TryEvery(w.ctx, w.keeper.c.closing, trust.Attempt(a.Terms.TTL), func() (bool, error) {
		tries++
		err := w.sendOnce(a, ticket)
		useless := err == nil && (w.said.Code == room.Late || w.said.Code == room.QueueKey)
		switch {
		case err == nil && !useless, ending.Is(err, ErrReplicas), ending.Is(err, ErrClosed):
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
		w.taken = w.taken || w.said.Code != room.OfKind && w.said.Code != room.Upgrade
		return nil
	case ending.Is(err, ErrReplicas), ending.Is(err, ErrClosed):
		return err
	case again && w.ctx.Err() == nil && !transport.Hopeless(err):
		return ErrClosed
	}
	return w.overOr(trouble)
}

// askingAgain logs that calls ask again. One line speaks for all calls of the client.
func (w *waiting) askingAgain(trouble error) {
	c := w.keeper.c
	if calls, due := c.unheard.Due(c.clock.Now()); due {
		c.cfg.log.Warn("asking for a lock again", slog.String("lock", w.lock.Name()), slog.Int("calls", calls), slog.Any("err", trouble))
	}
}

// sendOnce makes one try, and tells the room what its answer says.
func (w *waiting) sendOnce(a *acquisition, ticket int64) error {
	k, c := a.keeper, a.keeper.c
	q, call, block, echo, err := w.next(a, ticket)
	if err != nil || q.Entry == nil {
		w.said = room.Answer{Code: room.Queued}
		return err
	}
	need := a.Terms.Replicas
	raw, acks, err := c.do(w.ctx, need.Within(a.Terms.TTL), need, call)
	var now int64
	if err == nil {
		now, w.said, err = wire.DecodeAnswer(raw, block, a.Terms.TTL)
	}
	if err != nil {
		at := k.begin()
		defer k.end(&at)
		ran := need.N > 0 && transport.Hopeless(err) // only its WAIT may have been refused
		q.Unanswered(failure(err), transport.TryAgain(err), ran)
		return err
	}
	k.sample(now)
	if w.said.More {
		c.settle(k.keys())
	}
	return w.answered(q, acks, echo)
}

// next is the next request, if no message has overtaken the answer to an earlier copy: what it
// says, and of that the block of tokens and the echo.
func (w *waiting) next(a *acquisition, ticket int64) (q room.Request, call transport.Call, block int, echo wire.Echo, err error) {
	k, c := a.keeper, a.keeper.c
	at := k.begin()
	defer k.end(&at)
	if !a.Waits() || a.Entry.Queued() {
		return q, call, 0, echo, nil
	}
	if err = c.register(a); err != nil { // not when it is over: nobody would take it off again
		return q, call, 0, echo, err
	}
	at.Server = k.serverNow()
	if ticket >= room.PlaceNew {
		echo = c.listeners.Echo(k.listener, time.Since(k.listener.Heard()) > trust.Pulse(a.Terms.TTL))
	}
	q = a.Entry.Send(&at)
	return q, w.call(q, ticket, echo), a.Entry.Block(), echo, nil
}

// answered tells the room what was answered. Where that is a grant, the call has its hold.
func (w *waiting) answered(q room.Request, acks int, echo wire.Echo) error {
	k, need := w.keeper, q.Terms.Replicas
	at := k.begin()
	defer k.end(&at)
	short := q.Answered(&w.said, acks, &at)
	switch {
	case short:
		return tooFew(need, acks)
	case w.said.Code == room.Held && !q.Session.ToConfirm():
		w.hold, _ = w.firstHold(acquired(q.Acquisition), &at) // where it has none, acquire says why
	case w.said.Code == room.Queued && echo != wire.Quiet:
		k.c.listeners.Expect(k.listener, q.Sent)
	}
	return nil
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

// over is the error of a call whose context ends while it stands in line, or while
// the acquisition waits for which it has asked. It says what was the matter with Redis.
func (w *waiting) over(a *acquisition) error {
	k := w.keeper
	var of *room.Acquisition
	if a != nil {
		of = &a.Acquisition
	}
	k.mu.Lock()
	now := k.c.clock.Now()
	taken, trouble := k.room.Hears(w.want(), of, w.began, now)
	k.mu.Unlock()
	w.taken = w.taken || taken
	switch {
	case trouble.Err != nil:
		return w.overOr(trouble.Err)
	case trouble.Is():
		return w.overOr(unanswered(trouble.Silent))
	case !w.taken:
		return w.overOr(unanswered(now.Sub(w.began)))
	}
	return w.overOr(nil)
}

// overOr returns the context's error if that has ended, with err as what was
// the matter until then; else err.
func (w *waiting) overOr(err error) error {
	switch {
	case err == nil:
		return ending.Of(w.ctx)
	case w.ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", ending.Of(w.ctx), err)
	}
	return err
}

// failed is the error of a request: where ctx has ended meanwhile it went unanswered, since sent.
func failed(ctx context.Context, err error, now, sent clock.Instant) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return unanswered(now.Sub(sent))
	}
	return &requestError{err}
}

// verdict makes of the end of a TryLock's wait what that returns: ErrNotAcquired where
// it was told that the lock is taken, by Redis or by who holds it in this client;
// else an error, as nobody knows who has it.
func (w *waiting) verdict(err error) error {
	wait, bounded := errors.AsType[waitError](context.Cause(w.ctx))
	switch {
	case !bounded || !errors.Is(err, wait):
		return err
	case w.occupied:
		return errOccupied
	case w.taken && wait > 0:
		return fmt.Errorf("%w within %v", ErrNotAcquired, time.Duration(wait))
	case w.taken:
		return ErrNotAcquired
	}
	if trouble, is := errors.AsType[*requestError](err); is {
		return trouble
	}
	return unanswered(w.keeper.c.clock.Now().Sub(w.began))
}
