package relock

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// Info is what Redis knows of a lock at one instant, or for many readers as Lock.Info says.
type Info struct {
	Kind    string // as which the name is in use, or was within the token keep time; else ""
	Holders []Holder
	Waiters int
}

// A Holder is an owner with live holds.
type Holder struct {
	Owner string
	Read  bool
	Holds int           // of all its processes
	Token int64         // the grant's first; the holds of one process may have later ones of a block
	TTL   time.Duration // until its lease ends unless it is renewed
}

// A Waiter is an entry in the queue. A process' anonymous calls on a plain lock stand
// there as one, and so do its calls of one named owner in one mode.
type Waiter struct {
	Owner string
	Read  bool
	Age   time.Duration // since it joined the queue
}

// inspectTimeout bounds one try of a call that only reads; its caller's ctx
// bounds them all.
const inspectTimeout = 5 * time.Second

// waitersPage is how much of a long queue is read in one script.
const waitersPage = 500

// readersPage is how many sessions are looked at in one script.
const readersPage = 250

// Info reads from Redis who holds the lock and how many wait, whatever kind of
// lock the name is in use as. More than 250 readers are read in pages, between which
// others may come and go: who reads all the time is in it, once. What is renewed between two
// pages may count twice among an owner's Holds.
func (l *Lock) Info(ctx context.Context) (Info, error) {
	var all Info
	at := map[string]int{}
	for after := int64(0); ; {
		raw, err := l.ask(ctx, func(e *wire.Encoder, keys key.Keys) transport.Call { return e.Info(keys, after, readersPage) })
		if err != nil {
			return Info{}, err
		}
		page, err := wire.DecodeInfo(raw)
		if err != nil {
			return Info{}, lockError(l.Name(), err)
		}
		if after == 0 {
			all.Kind, all.Waiters = page.Kind, page.Waiters
		}
		for _, h := range page.Holders {
			all.add(Holder(h), at)
		}
		if page.Next <= after {
			return all, nil
		}
		after = page.Next
	}
}

// add adds what a page says of an owner, which may have been on a page before: at is
// where those are. Each page has sessions of their own.
func (all *Info) add(h Holder, at map[string]int) {
	i, known := at[h.Owner]
	if !known || all.Holders[i].Token != h.Token {
		at[h.Owner] = len(all.Holders)
		all.Holders = append(all.Holders, h)
		return
	}
	one := &all.Holders[i]
	one.Holds += h.Holds
	one.TTL = max(one.TTL, h.TTL)
}

// Waiters reads the queue from Redis, in its order. A queue longer than 500 is
// read in pages, between which it may move on.
func (l *Lock) Waiters(ctx context.Context) ([]Waiter, error) {
	var all []Waiter
	for last := int64(0); ; {
		raw, err := l.ask(ctx, func(e *wire.Encoder, keys key.Keys) transport.Call { return e.Waiters(keys, last, waitersPage) })
		if err != nil {
			return nil, err
		}
		page, next, err := wire.DecodeWaiters(raw)
		if err != nil {
			return nil, lockError(l.Name(), err)
		}
		for _, w := range page {
			all = append(all, Waiter(w))
		}
		if last = next; last == 0 {
			return all, nil
		}
	}
}

// ForceUnlock ends the grants that the lock has now, whoever has them, and reports
// whether there was one. Its holders are told at once, or notice at their next
// renewal, and may work on until then beside the next holder: only the token
// protects from them. It is for an operator who knows that the holder is gone.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	info, err := l.Info(ctx)
	if err != nil {
		return false, err
	}
	removed := false
	for _, h := range info.Holders {
		one, err := l.force(ctx, h)
		if err != nil {
			return removed, err
		}
		removed = removed || one
	}
	return removed, nil
}

// force ends one holder's grant. The token keeps a copy of the request from
// removing a later one.
func (l *Lock) force(ctx context.Context, h Holder) (removed bool, err error) {
	for after := int64(0); ; {
		raw, unanswered, err := l.askAgain(ctx, func(e *wire.Encoder, keys key.Keys) transport.Call { return e.Force(keys, h.Owner, h.Token, after) })
		if err != nil {
			return false, err
		}
		one, more, next, err := wire.DecodeForce(raw)
		// What a second try finds gone, an unanswered first one may have removed.
		removed = one || removed || unanswered
		switch {
		case err != nil:
			return removed, lockError(l.Name(), err)
		case !more:
			return removed, nil
		}
		after = next
	}
}

// A question makes the call that asks it.
type question func(e *wire.Encoder, keys key.Keys) transport.Call

// ask runs a script that reads.
func (l *Lock) ask(ctx context.Context, q question) ([]any, error) {
	raw, _, err := l.askAgain(ctx, q)
	return raw, err
}

// askAgain runs a script that may be sent again: up to three times, or until ctx
// ends. It reports whether a try before the one answered may have run.
func (l *Lock) askAgain(ctx context.Context, q question) (raw []any, unanswered bool, err error) {
	switch {
	case l.bad() != nil:
		return nil, false, lockError(l.Name(), l.bad())
	case ctx == nil:
		return nil, false, lockError(l.Name(), fmt.Errorf("%w: the context is nil; pass context.Background()", ErrInvalidOption))
	case ctx.Err() != nil:
		return nil, false, lockError(l.Name(), ended(ctx))
	case l.c.ctx.Err() != nil:
		return nil, false, lockError(l.Name(), ErrClosed)
	}
	call := q(l.c.wire, key.Of(l.c.cfg.prefix, l.hash))
	tries := 0
	err = transport.Try(ctx, l.c.ctx.Done(), func() (again bool, err error) {
		tries++
		raw, err = l.c.transport.Do(ctx, inspectTimeout, call)
		unanswered = unanswered || err != nil && transport.Classify(err) == transport.Unknown
		return err != nil && tries < 3, err
	})
	switch {
	case err == nil:
		return raw, unanswered, nil
	case transport.Hopeless(err):
		err = &requestError{err}
	case ctx.Err() != nil:
		err = ended(ctx)
	case l.c.ctx.Err() != nil:
		err = ErrClosed
	default:
		err = &requestError{err}
	}
	return nil, unanswered, lockError(l.Name(), err)
}

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
