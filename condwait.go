package relock

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// An awaiting is one call of Wait or WaitFor. Its session gives up the lock. A signal, or the end of the wait, moves it
// to the lock's queue. It holds again before the call returns, unless it is lost.
type awaiting struct {
	*Cond
	a              *acquisition
	by             *Hold         // the hold that the call acts for; nil: the call names the owner that it acts for
	signalDoubtful chan struct{} // closed when the server may have lost a signal
	server         string        // the lock's server in a Cluster, read before the wait is sent
	await          *room.Await   // nil: the wait has not begun, and gave up nothing
}

// rejoin puts the holds back on their handles, lost ones too. While another owner's hold is on a handle, it waits: their
// Unlocks could not be told apart. A lock that is held meanwhile is lost after a TTL.
func (w *awaiting) rejoin() error {
	k, s := w.a.keeper, w.a.Session
	limit := time.NewTimer(w.a.Terms.TTL)
	defer limit.Stop()
	for late := false; ; {
		at := k.look()
		occupied := s.Return(w.await, &at)
		if occupied != nil && late {
			s.Lose(errOccupied, &at)
			occupied = s.Return(w.await, &at)
		}
		// The last hold may have been unlocked meanwhile. The session may go on until Redis is told, or for another call.
		ended := w.a.Why() == nil && (s.Live() == 0 || !w.a.Named() && w.by.hold.Released)
		var freed <-chan struct{}
		if occupied != nil && !ended {
			freed = occupied.WhenFreed(make(chan struct{})).(chan struct{})
		}
		k.end(&at)
		switch {
		case ended:
			return lostFor(room.ErrLeft)
		case freed == nil:
			return w.a.loss()
		}
		select {
		case <-freed:
		case <-limit.C:
			late = true
		}
	}
}

// beginWait makes the session wait on the condition, here and in Redis. Until the request is sent, only ctx ends the
// call. Then bounded limits the request (outlast). A WaitFor gives up the lock even if its time has passed.
func (w *awaiting) beginWait(ctx, bounded context.Context) error {
	k := w.a.keeper
	if k.c.tracker.Draining() {
		return ErrClosed
	}
	if err := w.a.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-w.a.turn.place }()
	at := k.begin()
	var e *room.Entry
	var reads bool
	if w.by == nil || !w.by.hold.Released { // otherwise the session may be another call's by now
		e, reads = w.a.Session.BeginWait(w.signalDoubtful, &at)
	}
	k.end(&at)
	switch {
	case e != nil:
		w.await = e.Await
		return w.sendWait(bounded, e)
	case reads:
		return cmp.Or(w.a.loss(), fmt.Errorf("%w: owner %q also reads, and a wait gives up write holds only; unlock the read holds first", ErrUpgrade, w.a.owner()))
	}
	return cmp.Or(w.a.loss(), ErrNotHeld) // by has ended, or the session is lost, waits already, or has no write hold left
}

// sendWait sends the wait until Redis has answered. If an earlier copy went unanswered, the session waits even if Redis
// says that it does not hold, and asks Redis at once. If Redis may have executed the wait and never answers, the holds
// are lost, unless a message has granted the lock again. A loss in the meantime comes before a refusal.
func (w *awaiting) sendWait(ctx context.Context, e *room.Entry) error {
	k, doubt := w.a.keeper, false
	began := k.c.clock.Now()
	w.server = k.c.transport.Server(k.hash)
	said := room.NotHeld
	patient, cancel := w.outlast(ctx)
	defer cancel()
	err := transport.Try(patient, nil, func() (again bool, err error) {
		call := k.c.wire.Await(k.keys(), w.a.session(), e.Await, w.a.Terms.TTL, w.name, k.c.listeners.Echo(k.listener, false))
		raw, err := k.c.transport.Do(patient, trust.Attempt(w.a.Terms.TTL), call)
		if err != nil {
			doubt = doubt || transport.Classify(err) == transport.Unknown
			return true, err
		}
		var now int64
		var more bool
		if said, now, more, err = wire.DecodeAwait(raw); more {
			k.c.settle(k.keys())
		}
		k.noteServerClock(now)
		return false, err
	})
	at := k.begin()
	switch {
	case err != nil && w.a.Held(): // a message has granted the lock again, so Redis has executed the wait
		k.end(&at)
		return nil
	case err == nil && (said == room.OnCondition || said == room.NotHeld && doubt):
		e.WaitBegun(doubt, &at)
		k.end(&at)
		return nil
	case err != nil && doubt:
		w.a.Session.Lose(failed(patient, err, at.Now, began), &at)
	default:
		e.Rejoin(&at)
	}
	k.end(&at)
	switch lost := w.a.loss(); {
	case lost != nil:
		return lost
	case err != nil:
		return failed(patient, err, at.Now, began)
	case said == room.OwnerElsewhere:
		return fmt.Errorf("%w: owner %q also holds the lock in another process or call, or an ancestor or a branch holds it, and a wait gives up only its own holds; unlock the others first", ErrOwnerMismatch, w.a.owner())
	}
	return w.a.markGone()
}

// outlast returns a context for a request whose outcome must be known even if ctx ends, as Redis may have executed it.
// It ends a TTL after ctx, or with the client. By then Redis has answered, or the lease has ended.
func (w *awaiting) outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	patient, cancel := context.WithCancel(w.a.keeper.c.ctx)
	stop := context.AfterFunc(ctx, func() {
		ending.Pause(patient, nil, w.a.Terms.TTL)
		cancel()
	})
	return patient, func() { stop(); cancel() }
}

// sleep waits for a signal and then for the lock. signalled is also true if a signal may have been lost (awaitSignal).
// Once ctx has ended, a TTL of silence ends the wait for the lock, and the holds are lost. Close loses them, too.
func (w *awaiting) sleep(ctx context.Context) (signalled bool, err error) {
	woken := w.a.waitOver()
	look := time.NewTicker(trust.Pulse(w.a.Terms.TTL)) // when to look for a failover of a Cluster, or for silence
	defer look.Stop()
	for signalled, err = w.awaitSignal(ctx, woken, look.C); err == nil; {
		select {
		case <-woken:
			return signalled, w.endWait(ctx)
		case <-look.C:
			err = w.silence(ctx)
		}
	}
	return false, w.lose(err)
}

// awaitSignal waits until the session holds again after a signal, or is lost, or until ctx or the client ends. It also
// reports a signal if a change of the lock's server may have lost one: its channel has a new connection, or the
// Cluster's layout says so.
func (w *awaiting) awaitSignal(ctx context.Context, woken <-chan struct{}, look <-chan time.Time) (signalled bool, err error) {
	c := w.a.keeper.c
	for {
		var moved bool
		select {
		case <-woken:
			return true, nil
		case <-w.signalDoubtful:
			moved = true
		case <-look:
			moved = c.transport.Server(w.a.keeper.hash) != w.server
		case <-ctx.Done():
			return w.abandon(ctx)
		case <-c.draining:
			return w.abandon(c.open)
		}
		if moved {
			_, err = w.abandon(ctx)
			return true, err
		}
	}
}

// silence returns an error if ctx has ended and Redis has not answered for a TTL: then the wait is given up.
func (w *awaiting) silence(ctx context.Context) error {
	if ctx.Err() == nil { // not under the mutex: Err of a context of this lock's holds takes it
		return nil
	}
	k := w.a.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := w.a.Entry; e != nil && e.Silent(k.c.clock.Now()) > w.a.Terms.TTL {
		return unanswered(e.Silent(k.c.clock.Now()))
	}
	return nil
}

// abandon stops waiting for a signal: the waiter then only waits for the lock. It reports whether a signal came first.
// A waiter that Redis does not know any more counts as signalled, because Redis may have dropped it together with a
// signal. So does a waiter that holds again without an answer to the request: a signal may have moved it to the queue.
func (w *awaiting) abandon(ctx context.Context) (signalled bool, err error) {
	k := w.a.keeper
	call := k.c.wire.Abandon(k.keys(), w.a.session())
	patient, cancel := w.outlast(ctx)
	defer cancel()
	said, moved := wire.OnNone, false // moved: an unanswered copy may have moved the waiter to the queue
	err = transport.Try(patient, nil, func() (again bool, err error) {
		raw, err := k.c.transport.Do(patient, trust.Attempt(w.a.Terms.TTL), call)
		if err != nil {
			moved = moved || transport.Classify(err) == transport.Unknown
			return true, err
		}
		var now int64
		var more bool
		if said, more, now, err = wire.DecodeAbandon(raw); more {
			k.c.settle(k.keys())
		}
		k.noteServerClock(now)
		return false, err
	})
	at := k.begin()
	defer k.end(&at)
	switch {
	case err != nil && w.a.Held():
		return true, nil // it may have been signalled
	case err != nil:
		return false, &requestError{err: err}
	case w.a.Waits():
		w.a.Entry.Kick(&at) // this puts it into the queue if Redis does not know it any more
	}
	return said == wire.Signalled || said == wire.OnNone && !moved, nil
}

// endWait ends the wait. If the session does not hold again, it returns the loss.
func (w *awaiting) endWait(ctx context.Context) error {
	k := w.a.keeper
	at := k.begin()
	held, unproven := w.a.Held(), w.a.Held() && w.a.Session.ToConfirm()
	k.end(&at)
	if unproven {
		patient, cancel := w.outlast(ctx)
		defer cancel()
		if err := w.a.prove(patient, false); err != nil {
			return w.lose(err)
		}
	}
	if !held {
		return w.lose(nil)
	}
	at = k.begin()
	w.a.Session.EndWait(&at)
	k.end(&at)
	return nil
}

// lose ends a wait that cannot acquire its lock again: the holds are lost for the reason why.
func (w *awaiting) lose(why error) error {
	k := w.a.keeper
	at := k.begin()
	w.a.Session.Lose(why, &at)
	k.end(&at)
	return cmp.Or(w.a.loss(), why)
}
