package relock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
)

// LocalReentry answers a nested acquisition by the same owner in this client without a command. The
// outer hold must be trusted, of the same mode, and renewed by the watchdog. Its TTL must be as
// long, and as many replicas must have it. Redis then counts the outer holds only, and so do Info
// and other processes. The lock is released in Redis when the last hold ends in this client, in any
// order.
//
// A nested acquisition asks Redis, as without the option, if it has a longer TTL, more Replicas,
// NoWatchdog or MaxHold. It also asks if the outer hold was not renewed in time.
func LocalReentry() LockOption {
	return lockOption(func(t *terms) error {
		t.Local = true
		return nil
	})
}

// nest is the short way of a nested acquisition through the handle that has the
// outer hold; nil: take the long way.
func (l *Lock) nest(owner string, unlock bool) *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.only()
	if a == nil || a.owner() != owner {
		return nil
	}
	at := a.keeper.begin()
	h := l.join(a.Session, unlock, &at)
	a.keeper.end(&at) // a hold that is made calls nobody
	if h != nil {
		l.holds.add(h)
	}
	return h
}

// join makes a hold that Redis is not told of, or returns nil where it has to be. It
// needs the keeper's mu.
func (l *Lock) join(s *room.Session, unlock bool, at *room.Step) *Hold {
	if !s.CanJoin(&l.terms.Terms, l.read, at) {
		return nil
	}
	h := l.newHold(unlock)
	s.Join(&h.hold, at)
	return h
}

// unnest is the short way of an Unlock that Redis need not hear of; nil: take
// the long way.
func (l *Lock) unnest() *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.only()
	if a == nil {
		return nil
	}
	h := l.holds.newest()
	if !h.unlock {
		return nil
	}
	at := a.keeper.begin()
	ended := (h.extras == nil || h.contexts == nil) && h.hold.Unnest(&at)
	a.keeper.end(&at)
	if !ended {
		return nil
	}
	l.remove(h)
	return h
}

// only returns the named acquisition that all holds of the handle are of, or nil. It
// needs l.mu.
func (l *Lock) only() *acquisition {
	s := l.holds.whole()
	if s == nil || !s.Named() {
		return nil
	}
	return acquired(s.Acquisition)
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

// heldBy returns an acquisition of the owner in this client that a hold of the mode can
// join, judged by the clock, and the hold where Redis need not be told of it.
func (w *waiting) heldBy() (*acquisition, *Hold) {
	k := w.keeper
	at := k.begin()
	defer k.end(&at)
	s := k.room.HeldBy(w.owner, w.lock.read, &at)
	if s == nil {
		return nil, nil
	}
	return acquired(s.Acquisition), w.lock.join(s, w.unlock, &at)
}

// sessionOf returns what the owner holds in this client, or nil.
func (l *Lock) sessionOf(owner string) *acquisition {
	k := l.c.enter(l)
	defer l.c.leave(k)
	at := k.begin()
	defer k.end(&at)
	if s := k.room.HeldBy(owner, false, &at); s != nil {
		return acquired(s.Acquisition)
	}
	return nil
}

// The rest is what an Unlock returns of an owner that may have several holds. The last one
// sends the session's release; whose own statement was not answered until then returns what
// comes of that.

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

// An outcome is what comes of a release by which a session ends.
type outcome struct {
	known chan struct{} // closed once err is the verdict
	err   error
}

// settle notes what has come of a release, for those who wait for that.
func (r *releasing) settle(verdict error) {
	if r.end == nil {
		return
	}
	r.end.err = verdict
	close(r.end.known)
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
