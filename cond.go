package relock

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// A Cond is a condition of a lock. The holder of the lock waits on it until others have changed what the lock protects.
// All Conds of one name on one lock are one condition, in every process. The contract is that of Java's Condition:
//
//	for !ready() { // under the lock
//		if err := cond.Wait(ctx); err != nil {
//			return err
//		}
//	}
//
// A wait may end without a signal, so it must be in a loop that checks. If the receiver of a signal dies, or loses the
// lock before its Unlock, the next waiter gets that signal. Goroutines may share a Cond.
//
// Every call except Waiters needs the lock. It acts for the owner that the context or the Cond's lock handle names. If
// neither names one, it acts for the hold from which the context descends, or else for the handle's newest hold.
type Cond struct {
	lock *Lock
	name string
	err  error // what every call returns, if not nil
}

// Wait gives up all holds of the owner, waits for a signal, and returns when the owner holds again. The owner then has
// the same holds, under a larger token, and their time (MaxHold, NoWatchdog) begins again. If a failover loses the
// wait, Wait returns as after a signal, and the token may be the old one.
//
// If ctx ends first, or the client is shut down, Wait stops waiting for a signal. It still waits for the lock, which
// ctx does not bound, and returns ctx's error or ErrClosed. The owner holds again then: Hold.Err is nil. Only ErrLost
// means that the lock or its handle could not be taken again. If another owner holds by the handle then, Wait returns
// after that owner's Unlock, which could not be told from the caller's. ctx does not bound that. Wait keeps the lock
// meanwhile for a TTL at most, and then has lost its holds. Lost holds must be unlocked as after any loss.
//
// A Wait that is refused gives up nothing: the owner keeps what it holds. It returns ErrNotHeld if the caller does not
// hold the lock. It returns ErrOwnerMismatch if the owner also holds in another process, or if a branch or an ancestor
// of it holds. It returns ErrUpgrade if the owner also reads. It returns ErrClosed on a client that is shutting down,
// the error of a ctx that had ended, and Redis' refusal. In an outage Wait asks again until a TTL after ctx's end.
// Nothing renews the holds meanwhile: if they end, it returns ErrLost. Test for that first: it matches ErrNotHeld too.
//
// During the wait the holds are not trusted (Hold.Err is ErrNotHeld). Their contexts do not end, and other owners may
// use the handle. If the owner has several holds, Unlock could not tell them apart: then Lock by others returns
// ErrOwnerMismatch. If a goroutine of the owner unlocks during the wait, its call returns ErrNotHeld, and Wait returns
// without that hold. If it was the last one, Wait returns ErrLost, and nothing is left to unlock.
func (c *Cond) Wait(ctx context.Context) error {
	_, err := c.wait(ctx, nil)
	return err
}

// WaitFor is Wait, but waits for a signal for at most d. It gives up the lock in any case, even if d is zero or less.
// After a signal it returns (true, nil). When d has passed or ctx has ended, it still waits for the lock, without a
// bound, and returns (false, nil) or ctx's error. In all these cases the owner holds again. Other errors are those of
// Wait. After ErrLost, and only then, the owner does not hold.
func (c *Cond) WaitFor(ctx context.Context, d time.Duration) (signalled bool, err error) {
	return c.wait(ctx, &d)
}

// Signal wakes the waiter that has waited longest, which gets the lock in its turn, after the caller has unlocked. If
// nobody waits, Signal does nothing. The caller (see Cond) must hold the lock: otherwise Signal returns ErrNotHeld, and
// after a loss ErrLost. If ctx ends before Redis has answered, the signal may have been given. Give ctx a deadline.
func (c *Cond) Signal(ctx context.Context) error { return c.signal(ctx, 1) }

// Broadcast wakes all current waiters. They get the lock one after the other, once the caller has unlocked. If nobody
// waits, it does nothing. The caller (see Cond) must hold the lock: otherwise Broadcast returns ErrNotHeld, and after a
// loss ErrLost. If ctx ends before Redis has answered, signals may have been given. Give ctx a deadline.
func (c *Cond) Broadcast(ctx context.Context) error { return c.signal(ctx, 0) }

// Waiters reads from Redis the owners that wait on the condition for a signal, the longest waiter first. It needs no
// hold. If nobody waits it returns nil. Its errors are those of Lock.Waiters.
func (c *Cond) Waiters(ctx context.Context) (all []Waiter, err error) {
	if err := c.bad(); err != nil {
		return nil, c.fail(err)
	}
	for from := ""; ; {
		raw, err := ask(ctx, c.lock, func(e *wire.Encoder, keys key.Keys) transport.Call {
			return e.Awaiting(keys, c.name, from, waitersPage)
		})
		if err != nil {
			return nil, err
		}
		page, next, err := wire.DecodeAwaiting(raw)
		if err != nil {
			return nil, c.fail(err)
		}
		all = appendWaiters(all, page)
		if next == "" {
			c.lock.c.labelWaiters(ctx, all)
			return all, nil
		}
		from = next
	}
}

func (c *Cond) fail(err error) error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", err)
	}
	return lockError(c.lock.Name(), fmt.Errorf("condition %s: %w", key.Quote(c.name), err))
}

// caller makes all checks that need no Redis, and returns the session that the call acts for. If the call names no
// owner, it also returns the hold. Once that has ended, the client may have passed the session on to another call.
func (c *Cond) caller(ctx context.Context) (*acquisition, *Hold, error) {
	if err := cmp.Or(c.bad(), unusable(ctx)); err != nil {
		return nil, nil, err
	}
	owner, err := ownerFor(ctx, c.lock)
	if err != nil {
		return nil, nil, err
	}
	if owner != "" {
		a, err := c.lock.sessionOf(owner)
		return a, nil, err
	}
	h := cmp.Or(holdIn(ctx, c.lock), c.lock.newest())
	if h == nil {
		return nil, nil, fmt.Errorf("%w by this handle, and the context neither descends from a hold nor names an owner", ErrNotHeld)
	}
	if err := h.judge(); err != nil {
		return nil, nil, err
	}
	return h.acquisition(), h, nil
}

// signal is Signal or Broadcast: it wakes the longest waiters, up to the number most, or all if most is 0.
func (c *Cond) signal(ctx context.Context, most int) error {
	a, _, err := c.caller(ctx)
	if err == nil {
		err = c.signalBy(ctx, a, most)
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// signalBy has Redis move waiters to the lock's queue, in the name of session a. A session sends one signal at a time:
// Redis ignores a signal whose number is not above that of the last one, such as a copy.
func (c *Cond) signalBy(ctx context.Context, a *acquisition, most int) error {
	k := a.keeper
	if err := a.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-a.turn.place }()
	k.mu.Lock()
	number, writes, waits := a.Session.TakeOp(), a.Session.Ledger.Meant.Writes > 0, a.Session.Absent()
	k.mu.Unlock()
	if waits { // the owner has begun to wait since c.caller looked
		return errAbsent
	}
	if !writes { // Redis would say that the session does not hold, and the live read hold would be lost
		return fmt.Errorf("%w for writing, which a condition needs", ErrNotHeld)
	}
	call, began := k.c.wire.Signal(k.keys(), a.session(), number, c.name, most), k.c.clock.Now()
	held := false
	err := transport.Try(ctx, k.c.ctx.Done(), func() (again bool, err error) {
		raw, err := k.c.transport.Do(ctx, trust.Attempt(a.Terms.TTL), call)
		if err != nil {
			return true, err
		}
		var now int64
		held, again, now, err = wire.DecodeSignal(raw)
		k.noteServerClock(now)
		return again, err
	})
	switch {
	case err != nil && k.c.ctx.Err() != nil:
		return cmp.Or(a.loss(), ErrClosed)
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", ending.Of(ctx), failed(ctx, err, k.c.clock.Now(), began))
	case err != nil:
		return &requestError{err: err}
	case !held:
		return a.markGone()
	}
	return nil
}

// wait is WaitFor, or Wait if limit is nil.
func (c *Cond) wait(ctx context.Context, limit *time.Duration) (signalled bool, err error) {
	a, by, err := c.caller(ctx)
	if err != nil {
		return false, c.fail(err)
	}
	w := &awaiting{Cond: c, a: a, by: by, signalDoubtful: make(chan struct{})}
	defer a.keeper.listener.Join()()
	bounded := ctx
	if limit != nil {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	if err = w.beginWait(ctx, bounded); err == nil {
		if signalled, err = w.sleep(bounded); err == nil && !signalled {
			if err = ending.Of(ctx); err == nil && a.keeper.c.tracker.Draining() { // if not, a WaitFor's time has passed
				err = ErrClosed
			}
		}
	}
	if w.await != nil {
		err = cmp.Or(w.rejoin(), err)
	}
	if err != nil {
		return false, c.fail(err)
	}
	return signalled, nil
}

func (c *Cond) unmade() bool { return c == nil || c.lock == nil && c.err == nil } // NewCond of a nil lock sets err

// bad returns the error that every call on the condition returns, or nil.
func (c *Cond) bad() error {
	if c.unmade() {
		return errUnmadeCond
	}
	return c.err
}
