package relock

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

const maxHolds = math.MaxInt32

// A Hold is one successful acquisition of a lock. It ends with Release, or is
// lost before that; it always knows which, by the clock. Its methods may be
// called from any goroutine.
type Hold struct {
	session  *session
	lock     *Lock
	token    int64
	acquired clock.Instant

	// Guarded by the mu of the handle that has it, whose pile in is:

	in           atomic.Pointer[pile]
	above, below *Hold // the next newer and older one there
	dead         bool  // found lost

	unlock bool // made by Lock or TryLock, to be ended by Unlock; set before any handle has it

	// Guarded by session.room.mu:

	read     bool // shared with other readers
	local    bool // nested, and Redis has not been told of it
	released bool
	*extras  // nil until there is any
}

// extras are what few holds have.
type extras struct {
	moved    *Lock                     // the reading side it was moved to by a downgrade
	why      error                     // it was lost for this reason
	lostc    chan struct{}             // closed on loss; made by the first Lost
	contexts map[*holdContext]struct{} // that end with the hold
}

// extra returns the extras, to be written. It needs room.mu.
func (h *Hold) extra() *extras {
	if h.extras == nil {
		h.extras = &extras{}
	}
	return h.extras
}

// newHold makes a hold of a session that is held, unless it has just been lost.
// It needs s.room.mu.
func (s *session) newHold(l *Lock, now clock.Instant) *Hold {
	h := &Hold{session: s, lock: l, read: l.read, token: s.next, acquired: now}
	s.add(h)
	if s.terms != &l.terms { // else it is scheduled for such a hold
		s.schedule(now)
	}
	return h
}

// judge returns the hold's state now.
func (h *Hold) judge() error {
	s := h.session
	s.room.mu.Lock()
	defer s.room.unlock()
	if !h.released {
		s.check(s.room.c.clock.Now())
	}
	return h.state()
}

// peek is judge without the clock, for callers that hold a handle's mutex, under
// which nobody's hook may run. They have judged before.
func (h *Hold) peek() error {
	h.session.room.mu.Lock()
	defer h.session.room.mu.Unlock()
	return h.state()
}

func (h *Hold) reads() bool {
	h.session.room.mu.Lock()
	defer h.session.room.mu.Unlock()
	return h.read
}

func (h *Hold) downgraded() *Lock {
	h.session.room.mu.Lock()
	defer h.session.room.mu.Unlock()
	if h.extras == nil {
		return nil
	}
	return h.moved
}

// state needs room.mu, after a check.
func (h *Hold) state() error {
	switch {
	case h.released:
		return ErrNotHeld
	case h.extras != nil && h.why != nil:
		return h.why
	}
	return nil
}

// Err returns nil while the hold is trusted, ErrLost once it is lost, and
// ErrNotHeld after its release. It is judged by the clock at the call, and does
// no I/O. A nil is true when it is given; work that takes time after it is
// protected by the token, or not at all.
func (h *Hold) Err() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	if err := h.judge(); err != nil {
		return lockError(h.lock.Name(), err)
	}
	return nil
}

// Lost returns a channel that is closed when the hold is lost. It stays open
// when the hold is released in time.
func (h *Hold) Lost() <-chan struct{} {
	if h.unmade() {
		return closed
	}
	h.session.room.mu.Lock()
	defer h.session.room.mu.Unlock()
	x := h.extra()
	if x.lostc == nil {
		x.lostc = make(chan struct{})
		if x.why != nil {
			close(x.lostc)
		}
	}
	return x.lostc
}

// TrustedUntil returns until when the hold is certain as things stand: no other
// process can get the lock before. Each renewal moves it. It is the zero time
// once the hold is lost or released.
func (h *Hold) TrustedUntil() time.Time {
	if h.unmade() || h.judge() != nil {
		return time.Time{}
	}
	h.session.room.mu.Lock()
	defer h.session.room.mu.Unlock()
	return h.session.term.Until.Time()
}

// Token returns the fencing token: larger than that of every earlier grant of
// the lock's name. A resource that remembers the largest token it has seen, and
// refuses smaller ones, is safe from holders that do not know yet that they are
// none. Re-entries share the token of the outer hold.
func (h *Hold) Token() int64 {
	if h.unmade() {
		return 0
	}
	return h.token
}

// Name returns the lock's name.
func (h *Hold) Name() string {
	if h.unmade() {
		return ""
	}
	return h.lock.Name()
}

// Owner returns who holds, as Info shows it: the name given, or one that was made.
// That begins with "~", and is for people: nobody can enter such a hold. Anonymous
// holds that a process passes on within itself have one such name, as they are
// one grant in Redis; they exclude each other as any others do.
func (h *Hold) Owner() string {
	if h.unmade() {
		return ""
	}
	return h.session.owner()
}

// Release ends the hold. It returns nil when the lock was held until now,
// ErrLost when it was not, ErrNotHeld when the hold has been released before,
// and ErrUnconfirmed when Redis did not answer within the ReleaseTimeout.
func (h *Hold) Release() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	h.lock.detach(h)
	if side := h.downgraded(); side != nil {
		side.detach(h)
	}
	if err := h.end(); err != nil {
		return lockError(h.lock.Name(), err)
	}
	return nil
}

// end ends the hold here, then in Redis.
func (h *Hold) end() error {
	s, c := h.session, h.session.room.c
	s.room.mu.Lock()
	now := c.clock.Now()
	if !h.released {
		s.check(now)
	}
	err, untold := h.state(), h.local
	h.released = true
	s.room.then(h.cancelAll(ErrNotHeld)...)
	if err != nil {
		s.room.unlock()
		return err
	}
	s.drop(h)
	if untold && s.ledger.Knows() {
		s.room.unlock()
	} else {
		err = s.finish(now)
	}
	if hook := c.cfg.hooks.Released; hook != nil {
		ev := h.event(err)
		ev.Held = now.Sub(h.acquired)
		hook(ev)
	}
	return err
}

// giveBack ends a hold that its call will not return: whose context has ended does
// not wait for the release. A hook may have ended it before: then what it was held
// by may be the next call's.
func (h *Hold) giveBack() {
	s := h.session
	s.room.mu.Lock()
	if !s.over && !h.released {
		s.room.then(s.finishApart)
	}
	h.released = true
	s.drop(h)
	s.room.unlock()
}

func (h *Hold) event(err error) Event {
	return Event{Name: h.lock.Name(), Owner: h.session.owner(), Token: h.token, Err: err}
}

// lose marks the hold lost. It needs room.mu; what it returns runs without it: first
// cancel, which calls nobody, then tell.
func (h *Hold) lose(why error, now clock.Instant) (cancel []func(), tell func()) {
	x := h.extra()
	x.why = why
	if x.lostc != nil {
		close(x.lostc)
	}
	return h.cancelAll(why), func() {
		c := h.session.room.c
		c.cfg.log.Error("lock lost", slog.String("lock", h.lock.Name()), slog.String("owner", h.session.owner()), slog.Int64("token", h.token), slog.Any("err", why))
		if hook := c.cfg.hooks.Lost; hook != nil {
			ev := h.event(why)
			ev.Held = now.Sub(h.acquired)
			hook(ev)
		}
	}
}

// cancelAll returns what ends the contexts of the hold. It needs room.mu; what it
// returns runs without it.
func (h *Hold) cancelAll(cause error) []func() {
	if h.extras == nil || h.contexts == nil {
		return nil
	}
	contexts := h.contexts
	h.contexts = nil
	return []func(){func() {
		for ctx := range contexts {
			ctx.stop()
			ctx.cancel(cause)
		}
	}}
}

func (h *Hold) acquiredHook(ctx context.Context, waited time.Duration) {
	if hook := h.lock.c.cfg.hooks.Acquired; hook != nil {
		ev := h.event(nil)
		ev.Waited = waited
		hook(ctx, ev)
	}
}
