package relock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
)

// This file is how a call comes to a hold of its handle, or to say why not. How it
// gets one of Redis, or of its own process, is in pubsub_wait.go.

// obtain makes a hold of this handle. A grant that is lost again before the
// call could return, as in a pause, is not a result: it asks anew.
func (l *Lock) obtain(ctx context.Context, owner string, m manner) (*Hold, error) {
	k := l.c.enter(l)
	defer l.c.leave(k)
	w := &waiting{ctx: ctx, lock: l, keeper: k, owner: owner, manner: m, began: l.c.clock.Now()}
	l.c.labels.Keep(l.terms.TTL, w.began)
	for {
		err := l.gate(w)
		if err == nil {
			var h *Hold
			if h, err = w.acquire(); err == nil {
				err = w.inTime(h)
			}
			if err == nil {
				err = l.hand(w, h)
			}
			if err == nil {
				return h, nil
			}
		}
		if again, err := w.anew(err); !again {
			err = w.explain(err)
			w.gaveUpHook(err)
			return nil, err
		}
	}
}

// errOccupied is what a call returns that does not wait for the Unlock of a lost hold.
var errOccupied = fmt.Errorf("%w; an earlier hold of this handle was lost and must be unlocked first: each success needs its Unlock, also after a loss", ErrLost)

// gate waits while a lost hold of somebody else, not yet unlocked, occupies the
// handle: its Unlock is still to come, and must not end a later hold.
func (l *Lock) gate(w *waiting) error {
	if err := l.owes(w.owner); err != nil {
		return err
	}
	if l.holds.newest() == nil {
		return nil
	}
	var hint *time.Timer
	for {
		freed, err := l.attach(w, nil)
		if freed == nil {
			return err
		}
		if w.once {
			return errOccupied
		}
		if hint == nil {
			hint = time.NewTimer(l.terms.TTL / 3)
			defer hint.Stop()
		}
		select {
		case <-freed:
		case <-hint.C:
			w.noteLost()
		case <-w.ctx.Done():
			w.occupied = true
			return ending.Of(w.ctx)
		case <-w.keeper.c.closing:
			return ErrClosed
		}
	}
}

// inTime gives back a hold that came after the call's context or wait had ended, and returns
// that error. A select takes either branch where the end and the grant are both there.
func (w *waiting) inTime(h *Hold) error {
	if !ending.Passed(w.ctx) {
		return nil
	}
	if _, bounded := errors.AsType[waitError](context.Cause(w.ctx)); bounded && w.once {
		return nil // one attempt has no wait that could be over
	}
	w.taken = true // until now, as far as the call is concerned
	h.giveBack()
	return w.overOr(nil)
}

// hand puts a hold on the handle, for its call to return, or gives it back.
func (l *Lock) hand(w *waiting, h *Hold) error {
	return l.keep(h, func() error {
		if w.ticket == "" { // else the hold is one that was handed over
			// The loss may have been found as Redis was asked. A loss of h itself does not count.
			if err := l.owes(w.owner); err != nil && h.peek() == nil {
				return err
			}
		}
		freed, err := l.attach(w, h)
		switch {
		case err != nil:
			return err
		case freed != nil:
			return errOccupied
		}
		h.acquiredHook(w.ctx, w.began)
		return nil
	})
}

// keep leaves a hold to its call if fn returns nil. It is given back at once else,
// and where a hook panics or ends its goroutine: nobody would ever unlock it.
func (l *Lock) keep(h *Hold, fn func() error) (err error) {
	kept := false
	h.use(1)
	defer func() {
		if !kept {
			h.use(-1)
			l.detach(h)
			h.giveBack()
		}
	}()
	err = fn()
	kept = err == nil
	return err
}

// attach adds h to the handle, or only looks if h is nil. If a lost hold of another owner is in
// the way, attach returns a channel that is closed when a hold has been unlocked.
func (l *Lock) attach(w *waiting, h *Hold) (freed <-chan struct{}, err error) {
	l.mu.Lock()
	for l.holds.newest() != nil {
		l.mu.Unlock()
		l.judge() // may call hooks, and so take any time
		if h != nil && h.judge() != nil {
			return nil, errGone
		}
		l.mu.Lock()
		if h == nil {
			break
		}
		rival := l.rival(h)
		if rival == nil {
			break
		}
		l.mu.Unlock()
		h.outdo(rival) // the holder may not have heard of its loss: its Unlock must not end h
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	freed, err = l.occupied(w.owner, h, w.unlock)
	if err == nil && freed == nil && h != nil && !h.listed { // a wait of its owner may have put it there, and an Unlock have taken it
		l.holds.add(h)
	}
	return freed, err
}

// firstHold makes the hold for which the call has waited. It needs the keeper's mu.
func (w *waiting) firstHold(a *acquisition, at *room.Step) (*Hold, error) {
	s := a.Session
	s.Check(at)
	switch {
	case a.Over():
		return nil, errGone
	case w.keeper.c.ending.Load():
		// Close came while the answer was under way, and has not seen the grant.
		s.Close(lostFor(ErrClosed), at)
		return nil, ErrClosed
	}
	h := w.lock.newHold(w.unlock)
	s.First(&h.hold, at)
	return h, nil
}

// granted returns an acquisition that holds.
func (w *waiting) granted() (*acquisition, error) {
	k := w.keeper
	at := k.begin()
	way, p, s := k.room.Want(w.want(), &at)
	switch way {
	case room.Behind:
		taken, _ := k.room.Hears(w.want(), nil, w.began, at.Now) // the hold that shows it may end just before the wait does
		w.taken = w.taken || taken
		turn := make(chan struct{})
		p.Who = turn
		k.end(&at)
		return w.stand(p, turn)
	case room.Join:
		k.end(&at)
		w.joins = true
		return acquired(s.Acquisition), nil
	}
	a := k.newEntry(w.owner, w.lock, way == room.First)
	k.end(&at)
	return w.contend(a, room.PlaceNew)
}

func (w *waiting) want() room.Want {
	return room.Want{Owner: w.owner, Read: w.lock.read, Once: w.once, Terms: &w.lock.terms.Terms}
}

// anew says whether to ask again after an error, after a pause where grants end too soon; else what is told.
func (w *waiting) anew(err error) (again bool, told error) {
	switch {
	case ending.Is(err, errGone) && w.keeper.c.ending.Load():
		return false, ErrClosed // which is why it is gone
	case w.once && ending.Is(err, errGone):
		return false, fmt.Errorf("%w: %w", ErrNotAcquired, err)
	case w.once:
		return false, err
	case err == errOccupied: //nolint:errorlint // made here, never wrapped
		return true, nil // for the handle first
	case !ending.Is(err, errGone):
		return false, err
	}
	w.gone++
	if w.gone == 1 {
		return true, nil // after a pause, say
	}
	if w.gone == manyWasted {
		w.keeper.c.logWasted(w.lock.terms.TTL, w.keeper)
	}
	switch {
	case transport.Pause(w.ctx, w.keeper.c.closing, transport.Backoff(w.gone)):
		return true, nil
	case w.ctx.Err() != nil:
		return false, ending.Of(w.ctx)
	}
	return false, ErrClosed
}

// manyWasted is how many grants in a row may end before they are heard of without a word.
const manyWasted = 5

func (c *Client) logWasted(ttl time.Duration, k *keeper) {
	c.cfg.log.Warn("grants end before they can be used; a longer TTL is needed, or a quicker way to redis",
		slog.String("lock", key.Name(c.cfg.prefix, k.hash)), slog.Duration("ttl", ttl))
}

// noteWasted counts the grants of an entry that had ended when they were
// heard of.
func (w *waiting) noteWasted(a *acquisition) {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	if a.Entry != nil {
		w.gone += a.Entry.Wasted()
	}
}

// A hintError is the end of a wait in which the caller's own handle was in the way.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() + "; " + e.hint }
func (e *hintError) Unwrap() error { return e.err }

const (
	hintHeld = "this handle holds the lock for another owner: a nested call has to name the owner of the outer one, see relock.WithOwner"
	hintLost = "a lost hold of this handle is not unlocked: each success needs its Unlock, also after a loss; " +
		"a nested call has to name the owner of the outer one, see relock.WithOwner"
)

// note has the error say that the handle itself is in the way, and reports whether
// that is yet to be logged, which is once for a call.
func (w *waiting) note(hint string) (log bool) {
	log = w.hint == ""
	w.hint = hint
	return log
}

func (w *waiting) noteLost() {
	if w.note(hintLost) {
		w.keeper.c.cfg.log.Warn("waiting long for the Unlock of a lost hold of the same handle; each success needs one, also after a loss",
			slog.String("lock", w.lock.Name()))
	}
}

// noteSelf says, once, that the handle itself has had the lock for a third of
// the TTL, or looks again when it may have.
func (w *waiting) noteSelf(hint *time.Timer) {
	third := w.lock.terms.TTL / 3
	if left := third - w.onSelf(); left > 0 {
		hint.Reset(left)
		return
	}
	if w.note(hintHeld) {
		w.keeper.c.cfg.log.Warn("waiting long for a lock that the same handle holds; a nested call needs the owner of the outer one: see WithOwner",
			slog.String("lock", w.lock.Name()))
	}
}

// onSelf returns for how long the call has waited for a hold of its own handle.
func (w *waiting) onSelf() time.Duration {
	if w.lock.judge() == 0 {
		return 0
	}
	w.lock.mu.Lock()
	defer w.lock.mu.Unlock()
	oldest := w.lock.holds.last()
	if oldest == nil {
		return 0
	}
	return w.keeper.c.clock.Now().Sub(clock.Max(w.began, oldest.since()))
}

// explain adds to an error what else is known of the wait that ended in it.
func (w *waiting) explain(err error) error {
	err = w.verdict(err)
	if w.gone > 1 {
		err = &hintError{err, fmt.Sprintf("%d grants had ended before they could be used: the TTL of %v is too short for the way to redis, or for the pauses of the process",
			w.gone, w.lock.terms.TTL)}
	}
	if w.hint != "" {
		err = &hintError{err, w.hint}
	}
	taken := ending.Is(err, ErrNotAcquired)
	if w.keeper.c.cfg.whoHolds && w.taken && (taken && !w.quiet || !taken && w.ctx.Err() != nil) {
		if who := w.whoHolds(); who != "" {
			err = &hintError{err, who}
		}
	}
	return err
}
