package relock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/wire"
)

// errGone says that a session was lost before its caller had a hold of it.
var errGone = errors.New("lost before it could be used")

// waiting is one call that wants the lock.
type waiting struct {
	ctx      context.Context
	lock     *Lock
	room     *room
	owner    string // "" for a new one
	once     bool   // one attempt, no waiting
	began    clock.Instant
	told     bool   // the Waiting hook has been called
	hint     string // what the caller's own handle has to do with a long wait
	gone     int    // grants that had ended before they could be used
	joins    bool   // the session is held, and has reserved a hold for the call
	hold     *Hold  // made as soon as the answer came; nil: it is yet to be made
	taken    bool   // told that the lock is taken
	occupied bool   // the wait ended at the handle: a lost hold is in the way
	leave    func() // ends what listen began; nil: it has not
}

// acquire returns a hold, or errGone if it was lost at once.
func (w *waiting) acquire() (*Hold, error) {
	defer w.unlisten()
	r := w.room
	if w.owner != "" {
		s, h := w.heldBy()
		if h != nil {
			return h, nil
		}
		if s != nil {
			if h, err := s.reenter(w, false); !errors.Is(err, errGone) {
				return h, err
			}
		}
	}
	if r.c.isClosing() {
		return nil, ErrClosed
	}
	w.joins, w.hold = false, nil
	s, err := w.session()
	switch {
	case err != nil:
		return nil, err
	case w.joins:
		return s.reenter(w, true)
	case w.hold != nil:
		return w.hold, nil
	}
	r.mu.Lock()
	if s.toConfirm() {
		r.mu.Unlock()
		if err := s.confirm(w); err != nil {
			return nil, err
		}
		r.mu.Lock()
	}
	defer r.unlock()
	return s.firstHold(w.lock, r.c.clock.Now())
}

// session returns one that is held.
func (w *waiting) session() (*session, error) {
	r := w.room
	r.mu.Lock()
	if w.owner != "" && !w.once {
		r.mu.Unlock()
		return w.follow()
	}
	if w.owner != "" || r.kind != wire.KindPlain || w.once && r.claimed {
		e := r.newEntry(w.owner, w.lock, false)
		r.mu.Unlock()
		return w.contend(e, wire.PlaceNew)
	}
	if !r.claimed {
		r.claimed = true
		e := r.newEntry("", w.lock, true)
		r.mu.Unlock()
		return w.contend(e, wire.PlaceNew)
	}
	p := &place{terms: &w.lock.terms, turn: make(chan handover, 1)}
	r.gather()
	spot := r.line.PushBack(p)
	r.mu.Unlock()
	return w.stand(p, spot)
}

// stand waits in line, and goes on with what is handed over.
func (w *waiting) stand(p *place, spot *list.Element) (*session, error) {
	left := false
	defer func() {
		if !left { // a hook has panicked
			w.room.leaveLine(p, spot)
		}
	}()
	w.listen() // it may be the next to ask
	w.waitingHook()
	hint := time.NewTimer(w.lock.terms.ttl / 3)
	defer hint.Stop()
	for {
		var err error
		select {
		case got := <-p.turn:
			left = true
			return w.take(got)
		case <-hint.C:
			w.noteSelf(hint)
			continue
		case <-w.ctx.Done():
			err = w.over(nil)
		case <-w.room.c.closing:
			err = ErrClosed
		}
		left = true
		w.room.leaveLine(p, spot)
		return nil, err
	}
}

// take goes on as the front of the line.
func (w *waiting) take(got handover) (*session, error) {
	if w.joins = got.joined; w.joins {
		return got.acquisition.session, nil
	}
	if got.acquisition != nil {
		return w.await(got.acquisition)
	}
	w.room.mu.Lock()
	e := w.room.newEntry(w.owner, w.lock, true)
	w.room.mu.Unlock()
	return w.contend(e, got.ticket)
}

// contend asks Redis for the lock, and waits in its queue unless once.
func (w *waiting) contend(e *entry, ticket int64) (got *session, err error) {
	a, mine := e.acquisition, true
	defer func() {
		if mine && got == nil { // failed, or a hook has panicked
			a.giveUp()
		}
	}()
	said, err := w.ask(e, ticket)
	switch {
	case err != nil:
	case said.Code == wire.Held:
		return a.session, nil
	case said.Code == wire.Queued:
		mine = false // await gives it up, and then it may become another's
		return w.await(a)
	case said.Code == wire.Busy:
		err = ErrNotAcquired
	case said.Code == wire.OfKind:
		err = fmt.Errorf("%w: %q is a %s lock while it has holders or waiters, not a %s one", ErrKind, w.lock.Name(), said.Kind, w.room.kind)
	case said.Code == wire.Upgrade:
		err = fmt.Errorf("%w: owner %q", ErrUpgrade, a.owner())
	default:
		err = errGone
	}
	return nil, err
}

// await waits in Redis' queue until the acquisition holds.
func (w *waiting) await(a *acquisition) (got *session, err error) {
	defer func() {
		if got == nil {
			w.noteWasted(a)
			a.giveUp()
		}
	}()
	w.listen() // the caller may have inherited the entry: its messages are the caller's now
	w.waitingHook()
	a.room.mu.Lock()
	done := a.waitable()
	a.room.mu.Unlock()
	hint := time.NewTimer(w.lock.terms.ttl / 3)
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
		case <-w.room.c.closing:
			err = ErrClosed
		}
		return nil, err
	}
}

// outcome returns what an acquisition that waits no more has come to.
func (w *waiting) outcome(a *acquisition) (*session, error) {
	a.room.mu.Lock()
	defer a.room.mu.Unlock()
	switch {
	case !a.over:
		return a.session, nil
	case a.lost == nil, errors.Is(a.lost, ErrLost) && !w.room.c.isClosing():
		return nil, errGone
	}
	return nil, a.lost
}

// deliver takes a message from the inbox. It runs on the inbox's goroutine and
// does not wait.
func (c *Client) deliver(payload string) {
	m, err := wire.ParseMessage(payload)
	if err != nil {
		c.cfg.log.Warn("message not understood", slog.Any("err", err))
		return
	}
	if m.Verb == "echo" {
		return // the inbox has noted that it hears
	}
	a := c.lookup(m.Nonce)
	if a == nil {
		if m.Verb == "grant" {
			c.disown(m.Nonce, nil, instant{})
		}
		return
	}
	a.room.mu.Lock()
	now := c.clock.Now()
	switch {
	case m.Verb == "look" && a.waits():
		a.entry.kick(now)
	case m.Verb == "lost" && a.held():
		a.session.gone(fmt.Errorf("%w: removed by ForceUnlock", ErrLost), now)
	case m.Verb == "grant" && a.waits():
		a.entry.granted(m, now)
	}
	c.tellApart(a.room.unlockFirst()...)
}

// linked is called when a channel has a new connection: any message may have
// been missed, and the server may be another one, which has lost the latest
// writes. Every waiter who would have heard of them there asks, and what was
// released of late is released again.
func (c *Client) linked(channel string, first bool) {
	c.mu.Lock()
	waiters := make([]*acquisition, 0, len(c.sessions))
	for _, a := range c.sessions {
		if a.room.ear.channel == channel {
			waiters = append(waiters, a)
		}
	}
	if !first {
		c.suspectServer(c.clock.Now())
	}
	c.mu.Unlock()
	for _, a := range waiters {
		a.room.mu.Lock()
		if a.waits() {
			a.entry.kick(c.clock.Now())
		}
		a.room.mu.Unlock()
	}
}

// waitingHook tells the trace, once, that the call has to wait.
func (w *waiting) waitingHook() {
	if w.told {
		return
	}
	w.told = true
	if hook := w.room.c.cfg.hooks.Waiting; hook != nil {
		hook(w.ctx, Event{Name: w.lock.Name(), Owner: w.owner})
	}
}
