package redisson

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
)

// A waiting is one call that acquires a hold.
type waiting struct {
	ctx        context.Context
	lock       *Lock
	once       bool // one attempt, no waiting
	s          *session
	owner      string
	downgraded *owner // the owner of the hold that is downgraded; otherwise nil
	taken      bool   // Redis has answered that the lock is taken
	hold       *Hold
	unlock     bool // the hold will be ended by Unlock
	// occupied says that the hold is not on its handle: an older hold there is lost, or Unlock could confuse the two.
	occupied bool
	todo     []func() // to call without the client's mu
}

// slack is how long after its timeout a copy of a request may still be executed.
const slack = time.Second

// pulse is how long a waiter relies on messages. A message may be lost, and some ways to free a lock send none.
const pulse = 10 * time.Second

// errSessionEnded says that the session has ended. The call goes on in a new one, perhaps with another owner in Redis.
var errSessionEnded = errors.New("the session has ended")

// decided reports whether another try gets the same error as long as the caller does not unlock.
func decided(err error) bool {
	return ending.Is(err, relock.ErrNotHeld) || ending.Is(err, relock.ErrTooManyHolds)
}

// outage makes an error an ErrUnavailable, unless it says something that another try cannot change.
func outage(err error) error {
	outcome := transport.Classify(err)
	if decided(err) || ending.Is(err, relock.ErrClosed) || ending.Is(err, relock.ErrNotAcquired) || outcome == transport.Refused || outcome == transport.Closed {
		return err
	}
	return fmt.Errorf("%w: %w", relock.ErrUnavailable, err)
}

// pulse is the longest time between two requests of the call. A waiter of a fair lock counts as dead after its
// deadline, so it asks so often that one lost request does no harm, unless FairWait is only some seconds.
func (w *waiting) pulse() time.Duration {
	if w.lock.kind == fair {
		return min(pulse, w.lock.c.cfg.fairWait/3)
	}
	return pulse
}

// obtain asks for the lock until the call has its hold or an error. A single attempt asks once.
func (w *waiting) obtain() error {
	c := w.lock.c
	if err := w.hear(); err != nil {
		return err
	}
	if w.once {
		c.leaving.Await(w.ctx, w.lock.names.key, trust.Attempt(w.lock.terms.ttl)/2)
	}
	rest, err := w.ask()
	if err != nil || w.hold != nil {
		return err
	}
	// For a downgrade, the owner's own write hold cannot keep its read hold out. So another owner holds.
	if w.once || w.downgraded != nil {
		return relock.ErrNotAcquired
	}
	seat := c.join(w.s.channel())
	defer func() { c.part(seat) }()
	for {
		if name := w.s.channel(); name != seat.name { // a new session of a fair lock has another channel
			c.part(seat)
			seat = c.join(name)
		}
		seat.awaitSubscribed(w.ctx, min(time.Second, max(rest, 10*time.Millisecond)))
		select { // a message that came before the next request is answered by that request
		case <-seat.news:
			seat.told = true
		default:
		}
		if rest, err = w.ask(); err != nil {
			return err
		}
		seat.told = false
		if w.hold != nil {
			return nil
		}
		if w.s.channel() != seat.name {
			continue // the call has queued in a new session, which is told elsewhere
		}
		if err := w.sleep(seat, rest); err != nil {
			return err
		}
	}
}

// hear waits until it is known how clients announce unlocks. A single attempt waits no longer than for one request.
func (w *waiting) hear() error {
	c := w.lock.c
	if !w.once {
		return c.hearInTime(w.ctx)
	}
	limited, cancel := context.WithTimeout(w.ctx, trust.Attempt(w.lock.terms.ttl))
	defer cancel()
	err := c.hear(limited)
	switch {
	case err == nil:
		return nil
	case limited.Err() != nil && w.ctx.Err() == nil:
		err = transport.ErrNoReply
	}
	return unheard(w.ctx, c.open, err)
}

// sleep waits for a message, or until the lease may have ended.
func (w *waiting) sleep(seat *waiter, rest time.Duration) error {
	if most := w.pulse(); rest < 0 || rest > most {
		rest = most
	}
	if !seat.all.channel.Up() {
		rest = min(rest, time.Second) // no message can come
	}
	t := time.NewTimer(rest + time.Millisecond)
	defer t.Stop()
	select {
	case <-seat.news:
		seat.told = true
	case <-t.C:
	case <-w.ctx.Done():
		return ending.Of(w.ctx)
	case <-w.lock.c.open.Done():
		return relock.ErrClosed
	}
	return nil
}

// ask sends a request until it is answered. rest is how long to wait before the next request.
func (w *waiting) ask() (rest time.Duration, err error) {
	var said answer
	tries, open := 0, w.open()
	err = transport.Try(w.ctx, open.Done(), func() (bool, error) {
		tries++
		said, err = w.request()
		switch {
		case ending.Is(err, errSessionEnded):
			err = w.again()
			return err == nil, err
		case err == nil && said.code == codeLate && w.ctx.Err() != nil:
			return false, ending.Of(w.ctx)
		case err == nil && said.code == codeLate && tries < 3:
			return true, nil // the answer has set the clock skew
		case err == nil && said.code == codeLate:
			err = errors.New("redis answered only that the request came too late")
		}
		return err != nil && !w.once && !decided(err), err
	})
	if err != nil {
		return 0, w.failed(open, err)
	}
	switch said.code {
	case codeKind:
		return 0, fmt.Errorf("%w: Redis has a hash of another form; one name is for one kind of lock, in Java as in Go", relock.ErrKind)
	case codeUpgrade:
		return 0, fmt.Errorf("%w: the owner reads; unlock its read hold first, or lock for writing from the start", relock.ErrUpgrade)
	}
	w.taken = true
	return said.rest, nil
}

// open returns the context whose end refuses the call. It ends with Shutdown, and for a re-entry with Close.
func (w *waiting) open() context.Context {
	c := w.lock.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.s.owner.holds() {
		return c.ctx
	}
	return c.open
}

// failed returns the error of a request that was not answered. Once Redis has said that the lock is taken, the call has
// waited for the lock. Then the end of ctx is the error, whatever happened to the latest requests.
func (w *waiting) failed(open context.Context, err error) error {
	if w.taken && w.ctx.Err() != nil && !decided(err) && !transport.Hopeless(err) {
		return ending.Of(w.ctx)
	}
	return unheard(w.ctx, open, err)
}

// unheard returns the error of a call whose last try failed with err. open ends when the client refuses such calls.
func unheard(ctx, open context.Context, err error) error {
	waited := ctx.Err() != nil && errors.Is(context.Cause(ctx), errWait) // the caller's own context goes on
	switch {
	case waited && errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: no answer within the wait", relock.ErrUnavailable)
	case waited:
		return outage(err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w; until then: %w", ending.Of(ctx), relock.ErrUnavailable)
	case ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", ending.Of(ctx), outage(err))
	case open.Err() != nil:
		return relock.ErrClosed
	}
	return outage(err)
}

// again continues in a new session.
func (w *waiting) again() error {
	w.lock.c.leave(w.s)
	s, err := w.lock.c.session(w)
	w.s = s
	return err
}

func (w *waiting) request() (said answer, err error) {
	s, c, t := w.s, w.lock.c, &w.lock.terms
	if err := s.takeTurn(w.ctx); err != nil {
		return said, err
	}
	defer s.giveTurn()
	sent, timeout := c.clock.Now(), trust.Attempt(t.ttl)
	server := c.transport.Server(s.names.key)
	c.mu.Lock()
	count := s.counted(sent) + 1
	if err = s.refused(count); err != nil {
		c.mu.Unlock()
		return said, err
	}
	s.top, s.longest = max(s.top, count), max(s.longest, t.ttl)
	s.queued = s.queued || s.kind == fair && !w.once
	call := s.acquireCall(count, t.ttl, c.notAfter(server, timeout), c.cfg.fairWait, !w.once)
	c.mu.Unlock()
	raw, err := c.transport.Do(w.ctx, timeout, call)
	if err == nil {
		said, err = readAnswer(raw)
	}
	c.mu.Lock()
	switch {
	case err == nil:
		c.skews[server] = said.now - time.Now().UnixMilli()
		said, err = w.answered(said, sent, count)
	case transport.Classify(err) == transport.Unknown:
		s.doubt, s.until = true, clock.Max(s.until, sent.Add(timeout+2*slack)) // handles of one owner differ in timeouts
	}
	todo := w.todo
	w.todo = nil
	c.mu.Unlock()
	run(todo)
	return said, err
}

// gate waits while a lost hold that is not yet unlocked occupies the handle. A single attempt does not wait.
func (w *waiting) gate() error {
	for {
		freed, err := w.lock.occupied(w.owner, w.unlock)
		if freed == nil {
			return err
		}
		if w.once {
			return fmt.Errorf("%w by an earlier hold of this handle; unlock that hold first: each success needs its Unlock, even after a loss", relock.ErrLost)
		}
		select {
		case <-freed:
		case <-w.ctx.Done():
			if errors.Is(context.Cause(w.ctx), errWait) {
				return fmt.Errorf("%w by an earlier hold of this handle, which is not unlocked", relock.ErrLost)
			}
			return fmt.Errorf("%w by an earlier hold of this handle, which is not unlocked: %w", relock.ErrLost, ending.Of(w.ctx))
		case <-w.lock.c.open.Done():
			return relock.ErrClosed // a hold that Close has lost may never be unlocked
		}
	}
}

// grant obtains a hold that is on its handle. If an older hold occupies the handle by then, grant gives the new hold
// back, and waits for the older one's Unlock or fails.
func (w *waiting) grant() error {
	for {
		err := w.gate()
		if err == nil {
			err = w.take()
		}
		if err != nil || !w.occupied {
			return err
		}
		w.giveBack()
	}
}

// giveBack ends a hold that is not on its handle because the handle is occupied.
func (w *waiting) giveBack() {
	h := w.hold
	w.hold, w.occupied = nil, false
	h.lock.c.mu.Lock()
	h.released, h.told = true, true
	h.lock.c.mu.Unlock()
	h.s.tellFewerInBackground(h)
}

// answered processes the answer to a request for a hold. It needs the client's mu.
func (w *waiting) answered(said answer, sent clock.Instant, count int) (answer, error) {
	s, now := w.s, w.lock.c.clock.Now()
	switch {
	case said.code == codeLost:
		err := fmt.Errorf("%w: redis no longer has the owner's holds; unlock them first", relock.ErrLost)
		w.todo = append(w.todo, s.lose(err)...)
		return said, err
	case said.code != codeHeld:
		return said, nil
	}
	h := &Hold{s: s, lock: w.lock, terms: &w.lock.terms, acquired: sent, token: said.token, unlock: w.unlock}
	s.lasts = clock.Max(s.lasts, now.Add(said.rest))
	rest := min(said.rest, h.terms.ttl) // another hold of the owner may have a longer lease
	h.trust = clock.Max(h.trust, trust.Until(sent, rest))
	if now.Reached(h.trust) { // the lease ended before the answer came; unless it is a single attempt, the call asks again
		s.doubt = true
		return said, errors.New("redis has answered after the lease had ended")
	}
	if w.lock.c.closing {
		s.doubt = true // so that the grant is undone, while Close still waits
		return said, relock.ErrClosed
	}
	if count > 1 && len(s.holds) > 0 {
		h.token = s.token // a nested hold belongs to the same grant
	}
	s.token = h.token
	s.holds = append(s.holds, h)
	w.occupied = w.lock.loseOlder(s, &w.todo) || w.unlock && w.lock.mixed(w.owner) // again, since gate
	if !w.occupied {
		w.lock.holds = append(w.lock.holds, h)
	}
	w.hold = h
	s.arm(now)
	s.wakeOthers(1)
	return said, nil
}

// inTime gives back a hold that came after the call's context or wait had ended, and returns that error.
func (w *waiting) inTime() error {
	if ending.Passed(w.ctx) == nil {
		return nil
	}
	if w.once && errors.Is(context.Cause(w.ctx), errWait) {
		return nil // a single attempt has no wait that can end
	}
	w.hold.giveBack()
	return ending.Of(w.ctx)
}

// take obtains a hold in a session of the owner.
func (w *waiting) take() (err error) {
	c := w.lock.c
	if w.s, err = c.session(w); err != nil {
		return err
	}
	err = w.obtain()
	if w.s != nil {
		c.leave(w.s)
	}
	return err
}
