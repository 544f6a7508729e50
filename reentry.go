package relock

import "github.com/relock-go/relock/internal/clock"

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
	told, meant := s.count.writes, s.intent.writes
	if l.read {
		told, meant = s.count.reads, s.intent.reads
	}
	// Freshness as for a hold that is passed on: less than a third of a lease
	// left says that renewals fail.
	if !l.terms.local || l.terms.fixed || l.terms.maxHold != 0 || !s.named || s.phase != held ||
		told == 0 || meant == 0 || now.Until(s.trust) < l.terms.ttl/3 {
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

// settledWith reports whether Redis has been told of exactly what the session
// holds now. It needs room.mu.
func (s *session) settledWith(n counts) bool {
	return s.phase == held && n == s.count && n == s.intent
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
	if s.phase != held || h.released || h.extras != nil && h.contexts != nil || l.c.clock.Now().Reached(s.trust) {
		return nil
	}
	s.drop(h)
	if !s.settledWith(s.claims()) {
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
	if s == nil || !s.named {
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
