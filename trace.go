package relock

import (
	"context"
	"log/slog"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/wire"
)

// Hooks are functions that are called as locks change hands. They are called outside of every mutex
// of the library: on the caller's goroutine, or, if no call is involved, on a goroutine that delays
// no renewal and no message. A hook that blocks delays the goroutine that it is called on, and
// Close and Shutdown. A hook must not call Close or Shutdown. Any hook may be nil.
//
// Renewed and RenewalFailed are called once for each lease, with the newest of the holds that share
// it. The others are called once for each call or hold. A Multi and a Quorum call the hooks for
// each of their locks.
//
// A hook must return. If Waiting or Acquired panics or ends its goroutine, the call has no hold:
// what Redis granted is given back. If Acquired was called for such a hold, Released is called too.
// A panic of another hook continues on the calling goroutine after all else is done: the hold has
// ended, and the remaining hooks have been called. Renewed and RenewalFailed always run without a
// caller, and Lost mostly does. A panic there ends the process, as any panic of a goroutine does in
// Go.
type Hooks struct {
	// Waiting: the call has to wait for the lock. It may not stand in the queue yet.
	Waiting func(context.Context, Event)
	// Acquired: the call has a hold, after Event.Waited.
	Acquired func(context.Context, Event)
	// GaveUp: the call has ended without a hold, after Event.Waited, for the reason in Event.Err: the lock was taken
	// all the time, its context has ended, or Redis could not be asked. That is what the call returns, but that
	// TryLock, TryDo and Once return no error of a lock that was taken. It is not called if the call was refused
	// before it came to the handle (a name or an option, a deadlock). It is not called if a hook did not return.
	GaveUp func(context.Context, Event)
	// Renewed: the hold's lease was extended.
	Renewed func(Event)
	// RenewalFailed: a try to extend it was not answered, or refused, for the reason in
	// Event.Err. It is tried again until the hold's trust ends; then Lost is called.
	RenewalFailed func(Event)
	// Released: the hold was ended by its holder, after Event.Held. Event.Err is what that
	// returned: ErrLost where it was the first to find the hold lost, of which Lost is not called.
	Released func(Event)
	// Lost: the hold ended otherwise, for the reason in Event.Err. Beside an Acquired, it is
	// called for holds only that that was called for, and after it.
	Lost func(Event)
}

// Trace sets functions that are called as locks change hands.
func Trace(h Hooks) Option {
	return option(func(c *config) error {
		c.hooks = h
		return nil
	})
}

// Join returns hooks that call h's and then those of the others, in that order. If one panics or
// ends its goroutine, the others are still called.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		h.Waiting, h.Acquired, h.GaveUp = bothOf(h.Waiting, o.Waiting), bothOf(h.Acquired, o.Acquired), bothOf(h.GaveUp, o.GaveUp)
		h.Renewed, h.RenewalFailed = both(h.Renewed, o.Renewed), both(h.RenewalFailed, o.RenewalFailed)
		h.Released, h.Lost = both(h.Released, o.Released), both(h.Lost, o.Lost)
	}
	return h
}

func both(first, then func(Event)) func(Event) {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(e Event) {
		defer then(e)
		first(e)
	}
}

// bothOf is both for hooks that are called by the call of a context.
func bothOf(first, then func(context.Context, Event)) func(context.Context, Event) {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(ctx context.Context, e Event) {
		defer then(ctx, e)
		first(ctx, e)
	}
}

// An Event describes one step of one hold.
type Event struct {
	Name   string // the lock's
	Owner  string
	Token  int64         // the hold's fencing token; 0 before there is one
	Waited time.Duration // until it was acquired, or given up
	Held   time.Duration // until it was released or lost
	Err    error
	Kind   string // "plain", "fair", "rw", "fair rw" or "semaphore"
	Read   bool   // for reading, of a read/write lock
}

func (h *Hold) event(err error) Event {
	owner := h.acquisition().owner()
	return Event{Name: h.lock.Name(), Owner: owner, Token: h.tokenOf(owner), Err: err, Kind: h.lock.kind, Read: h.lock.kind != wire.KindSemaphore && h.reads()}
}

// event describes a call that has no hold.
func (w *waiting) event(err error) Event {
	return Event{Name: w.lock.Name(), Owner: w.owner, Err: err, Kind: w.lock.kind, Read: w.lock.read && w.lock.kind != wire.KindSemaphore}
}

// waitingHook tells the trace, once, that the call has to wait.
func (w *waiting) waitingHook() {
	if w.told {
		return
	}
	w.told = true
	if hook := w.keeper.c.cfg.hooks.Waiting; hook != nil {
		hook(w.ctx, w.event(nil))
	}
}

// gaveUpHook is called when nothing of the call is left.
func (w *waiting) gaveUpHook(err error) {
	if hook := w.keeper.c.cfg.hooks.GaveUp; hook != nil {
		ev := w.event(lockError(w.lock.Name(), err))
		ev.Waited = w.keeper.c.clock.Now().Sub(w.began)
		hook(w.ctx, ev)
	}
}

// renewedHook returns what calls the hook.
func (c *Client) renewedHook(st room.Statement) func() {
	return newestHook(c.cfg.hooks.Renewed, st, nil)
}

// unrenewedHook returns what calls the hook.
func (c *Client) unrenewedHook(st room.Statement, err error) func() {
	return newestHook(c.cfg.hooks.RenewalFailed, st, err)
}

// newestHook returns what calls a hook with the newest hold of a session.
func newestHook(hook func(Event), st room.Statement, err error) func() {
	return func() {
		if hook == nil {
			return
		}
		k := keeperOf(st)
		k.mu.Lock()
		h := st.Session.Newest()
		k.mu.Unlock()
		if h != nil {
			hook(h.Of.(*Hold).event(err))
		}
	}
}

// acquiredHook is for a call that began then; zero: it has not waited. A loss that came before is
// told after it.
func (h *Hold) acquiredHook(ctx context.Context, began clock.Instant) {
	hook := h.lock.c.cfg.hooks.Acquired
	if hook == nil {
		return
	}
	k := h.keeper()
	k.mu.Lock()
	h.told = true
	since, lost := h.hold.Acquired, h.hold.Lost()
	why := lostFor(h.hold.Session.Why())
	k.mu.Unlock()
	ev := h.event(nil)
	if !began.IsZero() {
		ev.Waited = since.Sub(began)
	}
	returned := false
	defer func() {
		if !returned { // others that are joined with it have been told of the hold
			h.releasedHook(nil, since)
		}
	}()
	hook(ctx, ev)
	returned = true
	if lost {
		h.lostHook(why, k.c.clock.Now())
	}
}

func (h *Hold) releasedHook(err error, now clock.Instant) {
	if ending.Is(err, ErrLost) { // nobody has found it before, or it would not come here
		h.logLoss(err)
	}
	if hook := h.lock.c.cfg.hooks.Released; hook != nil {
		ev := h.event(err)
		ev.Held = now.Sub(h.hold.Acquired)
		hook(ev)
	}
}

// lostHook tells of a loss.
func (h *Hold) lostHook(why error, now clock.Instant) {
	h.logLoss(why)
	c := h.lock.c
	if hook := c.cfg.hooks.Lost; hook != nil {
		ev := h.event(why)
		ev.Held = now.Sub(h.hold.Acquired)
		hook(ev)
	}
}

// since returns when the hold was acquired, or last again by a wait of its owner.
func (h *Hold) since() clock.Instant {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return h.hold.Acquired
}

func (h *Hold) logLoss(why error) {
	c := h.lock.c
	log := c.cfg.log.Error
	if loss.AskedFor(why) {
		log = c.cfg.log.Warn
	}
	log("lock lost", slog.String("lock", h.lock.Name()), slog.String("owner", h.acquisition().owner()), slog.Int64("token", h.token()), slog.Any("err", why))
}
