package relock

import (
	"context"
	"log/slog"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// Hooks are called as locks change hands, outside of every mutex of the library: on
// the caller's goroutine, or where no call notices on one that holds up no renewal
// and no message. A hook that blocks delays the goroutine that it is called on, and
// Close and Shutdown with it, which it must not call. Any may be nil.
//
// A hook is to return. Where Waiting or Acquired panics, or ends its goroutine, the
// call has no hold: what Redis granted is given back. A panic of another hook goes up
// the calling goroutine too, after all else is done: a Released or Lost hold has
// ended, and the remaining hooks have been called. Where no caller is there to
// recover it, in Renewed always and in Lost mostly, it ends the process, as any
// panic of a goroutine does in Go.
type Hooks struct {
	// Waiting: the call has to wait for the lock. It may not stand in the queue yet.
	Waiting func(context.Context, Event)
	// Acquired: the call has a hold, after Event.Waited.
	Acquired func(context.Context, Event)
	// Renewed: the hold's lease was extended.
	Renewed func(Event)
	// Released: the hold was ended by its holder, after Event.Held.
	Released func(Event)
	// Lost: the hold ended otherwise, for the reason in Event.Err.
	Lost func(Event)
}

// Event describes one step of one hold.
type Event struct {
	Name   string // the lock's
	Owner  string
	Token  int64         // the hold's fencing token; 0 before there is one
	Waited time.Duration // until it was acquired
	Held   time.Duration // until it was released or lost
	Err    error
}

func (h *Hold) event(err error) Event {
	return Event{Name: h.lock.Name(), Owner: h.acquisition().owner(), Token: h.Hold.Token, Err: err}
}

func (h *Hold) acquiredHook(ctx context.Context, waited time.Duration) {
	if hook := h.lock.c.cfg.hooks.Acquired; hook != nil {
		ev := h.event(nil)
		ev.Waited = waited
		hook(ctx, ev)
	}
}

func (h *Hold) releasedHook(err error, now clock.Instant) {
	if hook := h.lock.c.cfg.hooks.Released; hook != nil {
		ev := h.event(err)
		ev.Held = now.Sub(h.Acquired)
		hook(ev)
	}
}

// lostHook tells of a loss.
func (h *Hold) lostHook(why error, now clock.Instant) {
	c := h.lock.c
	c.cfg.log.Error("lock lost", slog.String("lock", h.lock.Name()), slog.String("owner", h.acquisition().owner()), slog.Int64("token", h.Hold.Token), slog.Any("err", why))
	if hook := c.cfg.hooks.Lost; hook != nil {
		ev := h.event(why)
		ev.Held = now.Sub(h.Acquired)
		hook(ev)
	}
}
