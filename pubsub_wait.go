package relock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/wire"
)

// errGone says that a session was lost before its caller had a hold of it.
var errGone = errors.New("lost before it could be used")

// waiting is one call that wants the lock.
type waiting struct {
	ctx    context.Context
	lock   *Lock
	keeper *keeper
	owner  string // "" for a new one
	manner
	began    clock.Instant
	told     bool        // the Waiting hook has been called
	hint     string      // what the caller's own handle has to do with a long wait
	gone     int         // grants that had ended before they could be used
	joins    bool        // the acquisition holds, and has reserved a hold for the call
	said     room.Answer // what Redis said to the latest request
	hold     *Hold       // made as soon as the answer came; nil: it is yet to be made
	taken    bool        // told that the lock is taken
	occupied bool        // the wait ended at the handle: a lost hold is in the way
	ticket   string      // what the call has to resume; "": it asks for the lock
	leave    func()      // ends what listen began; nil: it has not
}

// acquire returns a hold, or errGone if it was lost at once.
func (w *waiting) acquire() (*Hold, error) {
	defer w.unlisten()
	k := w.keeper
	if w.owner != "" {
		a, h := w.heldBy()
		if h != nil {
			return h, nil
		}
		if a != nil {
			if h, err := a.reenter(w, false); !ending.Is(err, errGone) {
				return h, err
			}
		}
	}
	if k.c.tracker.Draining() {
		return nil, ErrClosed
	}
	w.joins, w.hold = false, nil
	a, err := w.granted()
	switch {
	case err != nil:
		return nil, err
	case w.joins:
		return a.reenter(w, true)
	case w.hold != nil:
		return w.hold, nil
	}
	return w.confirmed(a)
}

// confirmed makes the hold of what was granted, once it is all that its terms promise.
func (w *waiting) confirmed(a *acquisition) (*Hold, error) {
	k := w.keeper
	at := k.begin()
	if a.Session.ToConfirm() {
		k.end(&at)
		if err := a.confirm(w); err != nil {
			return nil, err
		}
		at = k.begin()
	}
	defer k.end(&at)
	return w.firstHold(a, &at)
}

// stand waits in line, and goes on with what is handed over.
func (w *waiting) stand(p *room.Follower, turn <-chan struct{}) (*acquisition, error) {
	left := false
	defer func() {
		if !left { // a hook has panicked
			w.leaveLine(p)
		}
	}()
	w.listen() // it may be the next to ask
	w.waitingHook()
	hint := time.NewTimer(w.lock.terms.TTL / 3)
	defer hint.Stop()
	for {
		var err error
		select {
		case <-turn:
			left = true
			return w.take(p.Given)
		case <-hint.C:
			w.noteSelf(hint)
			continue
		case <-w.ctx.Done():
			err = w.over(nil)
		case <-w.keeper.c.closing:
			err = ErrClosed
		}
		left = true
		w.leaveLine(p)
		return nil, err
	}
}

func (w *waiting) leaveLine(p *room.Follower) {
	at := w.keeper.begin()
	w.keeper.room.Leave(p, &at)
	w.keeper.end(&at)
}

// listen keeps the call's lock heard of until the call is over.
func (w *waiting) listen() {
	if w.keeper.listener.Inbox == nil && w.leave == nil {
		w.leave = w.keeper.listener.Join()
	}
}

func (w *waiting) unlisten() {
	if w.leave != nil {
		w.leave()
		w.leave = nil
	}
}

// take goes on as the front of the line.
func (w *waiting) take(got room.Handover) (*acquisition, error) {
	if w.joins = got.Joined; w.joins {
		return acquired(got.Acquisition), nil
	}
	if got.Acquisition != nil {
		return w.await(acquired(got.Acquisition))
	}
	w.keeper.mu.Lock()
	a := w.keeper.newEntry(w.owner, w.lock, true)
	w.keeper.mu.Unlock()
	return w.contend(a, got.Ticket)
}

// contend asks Redis for the lock, and waits in its queue unless once.
func (w *waiting) contend(a *acquisition, ticket int64) (got *acquisition, err error) {
	mine := true
	defer func() {
		if mine && got == nil { // failed, or a hook has panicked
			a.giveUp()
		}
	}()
	err = w.ask(a, ticket)
	switch {
	case err != nil:
		return nil, err
	case w.said.Code == room.Held:
		return a, nil
	case w.said.Code == room.Queued:
		mine = false // await gives it up, and then it may become another's
		return w.await(a)
	}
	return nil, w.refused(a, &w.said)
}

// refused is the error of an answer that ends the call.
func (w *waiting) refused(a *acquisition, said *room.Answer) error {
	switch said.Code {
	case room.Busy:
		return ErrNotAcquired
	case room.OfKind:
		return fmt.Errorf("%w: %q is a %s lock while it has holders or waiters, not a %s one", ErrKind, w.lock.Name(), said.Kind, w.keeper.kind)
	case room.Upgrade:
		return fmt.Errorf("%w: owner %q", ErrUpgrade, a.owner())
	}
	return errGone
}

func (a *acquisition) giveUp() {
	at := a.keeper.begin()
	a.GiveUp(&at)
	a.keeper.end(&at)
}

// await waits in Redis' queue until the acquisition holds.
func (w *waiting) await(a *acquisition) (got *acquisition, err error) {
	defer func() {
		if got == nil {
			w.noteWasted(a)
			a.giveUp()
		}
	}()
	w.listen() // the caller may have inherited the entry: its messages are the caller's now
	w.waitingHook()
	done := a.waitable()
	hint := time.NewTimer(w.lock.terms.TTL / 3)
	defer hint.Stop()
	for {
		select {
		case <-done:
			return w.outcome(a)
		case <-hint.C:
			w.noteSelf(hint)
			continue
		case <-w.ctx.Done():
			err = w.over(a)
		case <-w.keeper.c.closing:
			err = ErrClosed
		}
		return nil, err
	}
}

// waitable returns a channel that is closed when the acquisition waits no more.
func (a *acquisition) waitable() <-chan struct{} {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	if !a.Waits() {
		return closed
	}
	if a.Entry.Waiter == nil {
		a.Entry.Waiter = make(chan struct{})
	}
	return a.Entry.Waiter.(chan struct{})
}

// outcome returns what an acquisition that waits no more has come to.
func (w *waiting) outcome(a *acquisition) (*acquisition, error) {
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	why := a.Why()
	refusal, refused := errors.AsType[*room.Refusal](why)
	switch {
	case a.Entry != nil && a.Entry.Given() != nil:
		return acquired(a.Entry.Given()), nil
	case !a.Over():
		return a, nil
	case refused:
		return nil, w.refused(a, &refusal.Answer)
	case why == nil, a.Session != nil && !w.keeper.c.tracker.Draining():
		return nil, errGone
	case a.Session != nil:
		return nil, lostFor(why)
	}
	return nil, why
}

// deliver takes a message from the inbox. It runs on the inbox's goroutine and does not wait.
func (c *Client) deliver(payload string) {
	m, err := wire.ParseMessage(payload)
	if err != nil {
		c.cfg.log.Warn("message not understood", slog.Any("err", err))
		return
	}
	if m.Verb == "echo" {
		if c.listeners.Echoed(m.Sight) {
			c.rouse(func(*acquisition) bool { return true }, false)
		}
		return
	}
	a := c.lookup(m.Nonce)
	if a == nil {
		if m.Verb == "grant" {
			c.disown(m.Nonce, nil, instant{})
		}
		return
	}
	behind := c.behind(a, m.Run)
	at := a.keeper.begin()
	switch {
	case m.Verb == "look" && a.Waits():
		a.Entry.Kick(&at)
	case m.Verb == "lost" && a.Held():
		a.Session.Gone(errForced, &at)
	case m.Verb == "grant" && a.Waits():
		a.Entry.Granted(m.Op, m.Low, m.High, behind, &at)
	}
	c.tellApart(a.keeper.endFirst(&at)...)
}

// behind are the acquisitions of a run, as far as they are known.
func (c *Client) behind(first *acquisition, run []string) (all []*room.Acquisition) {
	for _, name := range run {
		a := c.lookup(name)
		if a == nil || a.keeper != first.keeper {
			break // it has been given up: the next of it is found by Redis
		}
		all = append(all, &a.Acquisition)
	}
	return all
}

// errForced is why a hold is lost that an operator has ended.
var errForced = loss.Because(loss.Forced, "removed by ForceUnlock")
