package relock

import (
	"errors"
	"fmt"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
)

// LocalReentry answers a nested acquisition by the same owner in this client
// without a command, where it joins a hold of the same mode that is trusted, that
// the watchdog renews, whose TTL is as long, and which as many replicas have. The count of holds in Redis then
// shows the outer ones only, to other processes of the owner and to Info; the
// lock is released there when the last hold ends here, in whatever order they do.
// A nested acquisition with a longer TTL, more Replicas, NoWatchdog or MaxHold, and
// one whose hold has not been renewed in time, asks Redis as without the option.
func LocalReentry() LockOption {
	return lockOption(func(t *terms) error {
		t.local = true
		return nil
	})
}

// join adds a hold that Redis is not told of, or returns nil where it has to be.
// It needs room.mu.
func (s *session) join(l *Lock, now clock.Instant) *Hold {
	told, meant := s.ledger.Told().Writes, s.ledger.Meant().Writes
	if l.read {
		told, meant = s.ledger.Told().Reads, s.ledger.Meant().Reads
	}
	// Freshness as for a hold that is passed on: less than a third of a lease
	// left says that renewals fail.
	if !l.terms.local || l.terms.fixed || l.terms.maxHold != 0 || !s.named() || s.over ||
		told == 0 || meant == 0 || !s.term.Fresh(now, l.terms.ttl) {
		return nil
	}
	for _, outer := range s.holds.all() {
		if outer.read == l.read && outer.lock.terms.covers(l.terms) {
			h := &Hold{session: s, lock: l, read: l.read, local: true, token: s.next, acquired: now}
			s.add(h)
			return h
		}
	}
	return nil
}

// covers says that a hold of these terms is renewed for as long as one of the others
// would be, and by statements that as many replicas acknowledge.
func (t *terms) covers(nested terms) bool {
	return !t.fixed && t.maxHold == 0 && t.ttl >= nested.ttl && t.replicas.n >= nested.replicas.n
}

// nest is the short way of a nested acquisition through the handle that has the
// outer hold; nil: take the long way.
func (l *Lock) nest(owner string, unlock bool) *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.only()
	if s == nil || s.owner() != owner {
		return nil
	}
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	h := s.join(l, l.c.clock.Now())
	if h != nil {
		h.unlock = unlock
		l.holds.add(h)
	}
	return h
}

// unnest is the short way of an Unlock that Redis need not hear of; nil: take
// the long way.
func (l *Lock) unnest() *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.only()
	if s == nil {
		return nil
	}
	h := l.holds.newest
	if !h.unlock || !h.local {
		return nil
	}
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.over || h.released || h.extras != nil && h.contexts != nil || s.term.Over(l.c.clock.Now()) {
		return nil
	}
	s.drop(h)
	if !s.ledger.Knows() {
		s.add(h) // the last one: it is released in Redis
		return nil
	}
	h.released = true
	l.remove(h)
	return h
}

// only returns the named session that all holds of the handle are of, or nil. It
// needs l.mu.
func (l *Lock) only() *session {
	s := l.holds.session()
	if s == nil || !s.named() {
		return nil
	}
	return s
}

func (h *Hold) releasedHook(err error, c *clock.Clock) {
	if hook := h.lock.c.cfg.hooks.Released; hook != nil {
		ev := h.event(err)
		ev.Held = c.Now().Sub(h.acquired)
		hook(ev)
	}
}

// reenter adds a hold to a session of the same owner; reserved: the session counts
// it already.
func (s *session) reenter(w *waiting, reserved bool) (h *Hold, err error) {
	r := s.room
	r.mu.Lock()
	h, x, err := s.ask(w.lock, reserved)
	r.unlock()
	if x == nil {
		return h, err
	}
	err = errGone
	defer func() { // also where a hook does not return
		r.mu.Lock()
		defer r.unlock()
		h, err = s.admitted(w.lock, x, reserved, err)
	}()
	if _, err = s.tell(w.ctx, x, w.once); errors.Is(err, errTurn) {
		err = w.overOr(errTurn)
	}
	return nil, err
}

// ask returns a hold of which Redis knows already, or the wish for one. It needs room.mu.
func (s *session) ask(l *Lock, reserved bool) (h *Hold, x *ledger.Wish, err error) {
	now := s.room.c.clock.Now()
	s.check(now)
	x = l.terms.wish(ledger.Counts{})
	if !reserved {
		x.More = ledger.One(l.read)
	}
	needs := s.ledger.Needs()
	switch {
	case reserved && s.covers(l, now):
		h = s.newHold(l, now)
	case s.over:
		err = errGone
	case !l.read && needs.Writes == 0 && (needs.Reads > 0 || s.ledger.Meant().Writes == 0):
		// The last write hold becomes a read hold: once Redis knows, others may read,
		// and it has to be asked.
		x = &ledger.Wish{}
		s.ledger.Wish(x)
		return nil, x, nil
	case needs.And(x.More).Total() > maxHolds:
		err = fmt.Errorf("%w: owner %q has %d", ErrTooManyHolds, s.owner(), maxHolds)
	default:
		s.ledger.Wish(x)
		return nil, x, nil
	}
	if reserved {
		s.unreserve()
		s.catchUp()
	}
	return h, nil, err
}

// admitted makes the hold of a wish that Redis knows of, or takes the wish back. It
// needs room.mu.
func (s *session) admitted(l *Lock, x *ledger.Wish, reserved bool, err error) (*Hold, error) {
	if s.ledger.Withdraw(x); reserved {
		s.unreserve()
	}
	switch {
	case err == nil && (s.over || x.Lease == 0):
		return nil, errGone
	case err != nil:
		s.catchUp()
		return nil, err
	}
	return s.newHold(l, s.room.c.clock.Now()), nil
}

// heldBy returns a session of the owner in this client that a hold of the mode can
// join, judged by the clock, and the hold where Redis need not be told of it. Whether
// one that reads may write, Redis decides.
func (w *waiting) heldBy() (*session, *Hold) {
	r := w.room
	r.mu.Lock()
	defer r.unlock()
	now := r.c.clock.Now()
	for _, s := range r.sessions.all() {
		if s.name != w.owner || s.over || !w.lock.read && s.ledger.Meant().Writes == 0 {
			continue
		}
		if s.check(now); s.over {
			return nil, nil
		}
		return s, s.join(w.lock, now)
	}
	return nil, nil
}
