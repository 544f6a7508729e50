package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/trust"
)

// A Hold is one successful acquisition of a lock. It ends with Release, or is lost before that. The
// hold always knows which, by the clock. Its methods may be called from any goroutine.
type Hold struct {
	s        *session
	lock     *Lock
	terms    *terms
	acquired clock.Instant
	token    int64
	unlock   bool // to be ended by Unlock

	// Guarded by the client's mu:

	trust    trust.Trust
	released bool
	told     bool  // Redis has been told of its end, or is being told
	lost     error // why
	lostc    chan struct{}
	contexts map[*holdContext]struct{}
}

var errBadHold = fmt.Errorf("%w (%w): the Hold was not made by Acquire or TryAcquire; look at the error that the call has returned",
	relock.ErrInvalidOption, relock.ErrNotHeld)

// unmade says that no call has made the hold: it is nil or a zero value.
func (h *Hold) unmade() bool { return h == nil || h.s == nil }

// closed is the Lost channel of a hold that nobody has made.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// answered takes an answer to a request for a hold. It needs the client's mu.
func (w *waiting) answered(said answer, sent clock.Instant, count int) (answer, error) {
	s, now := w.s, w.lock.c.clock.Now()
	switch {
	case said.code == codeLost:
		err := fmt.Errorf("%w: the owner's holds are not in Redis any more; unlock them first", relock.ErrLost)
		w.todo = append(w.todo, s.lose(err)...)
		return said, err
	case said.code != codeHeld:
		return said, nil
	}
	h := &Hold{s: s, lock: w.lock, terms: &w.lock.terms, acquired: sent, token: said.token, unlock: w.mark}
	rest := min(said.rest, h.terms.ttl) // an owner's other hold may have a longer lease
	h.trust.Extend(trust.Until(sent, rest))
	if h.trust.Over(now) { // the answer took all of the lease: it is asked for again
		s.doubt = true
		return said, errors.New("redis has answered after the lease had ended")
	}
	if w.lock.c.closed {
		return said, relock.ErrClosed
	}
	if count > 1 && len(s.holds) > 0 {
		h.token = s.token // a nested hold is of the same grant
	}
	s.token = h.token
	s.holds = append(s.holds, h)
	w.occupied = w.lock.outdo(s, &w.todo)
	if !w.occupied {
		w.lock.holds = append(w.lock.holds, h)
	}
	w.hold = h
	s.arm(now)
	return said, nil
}

// judge returns the hold's state: nil, ErrLost or ErrNotHeld. It needs the client's mu;
// todo is to be run without it.
func (h *Hold) judge(now clock.Instant) (err error, todo []func()) { //nolint:revive,staticcheck // what is to be done comes after what is
	switch {
	case h.released:
		return relock.ErrNotHeld, nil
	case h.lost == nil && h.trust.Over(now):
		todo = h.lose(fmt.Errorf("%w: %w", relock.ErrLost, h.expiry()))
	}
	return h.lost, todo
}

var errExpired = loss.Because(loss.Unreachable, "its lease could not be renewed in time")

// expiry says why the hold's own time is over.
func (h *Hold) expiry() error {
	switch t := h.terms; {
	case t.fixed:
		return loss.OfFixedLease(t.ttl)
	case t.maxHold > 0 && h.trust.Until.Reached(h.acquired.Add(t.maxHold)):
		return loss.OfMaxHold(t.maxHold)
	}
	return errExpired
}

// lose takes note of a loss. It needs the client's mu.
func (h *Hold) lose(why error) []func() {
	if h.lost != nil || h.released {
		return nil
	}
	h.lost = why
	h.s.c.notify()
	if h.lostc != nil {
		close(h.lostc)
	}
	return h.cancel(why)
}

// cancel ends the hold's contexts. It needs the client's mu.
func (h *Hold) cancel(why error) (todo []func()) {
	for ctx := range h.contexts {
		todo = append(todo, func() { ctx.stop(); ctx.cancel(why) })
	}
	h.contexts = nil
	return todo
}

// state is judge for callers without the mutex.
func (h *Hold) state() error {
	c := h.lock.c
	c.mu.Lock()
	err, todo := h.judge(c.clock.Now())
	c.mu.Unlock()
	run(todo)
	return err
}

// Err returns nil while the hold is trusted, ErrLost once it is lost, and ErrNotHeld after
// its release. It is judged by the clock at the call, and does no I/O.
func (h *Hold) Err() error {
	if h.unmade() {
		return fmt.Errorf("redisson: %w", errBadHold)
	}
	if err := h.state(); err != nil {
		return h.lock.wrap(err)
	}
	return nil
}

// Lost returns a channel that is closed when the hold is lost.
func (h *Hold) Lost() <-chan struct{} {
	if h.unmade() {
		return closed
	}
	c := h.lock.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.lostc == nil {
		h.lostc = make(chan struct{})
		if h.lost != nil {
			close(h.lostc)
		}
	}
	return h.lostc
}

// TrustedUntil returns the instant until which no other client, in Go or Java, can get the lock, as
// things stand. It is the zero time once the hold is lost or released.
func (h *Hold) TrustedUntil() time.Time {
	if h.unmade() || h.state() != nil {
		return time.Time{}
	}
	h.lock.c.mu.Lock()
	defer h.lock.c.mu.Unlock()
	return h.lock.c.clock.Time(h.trust.Until)
}

// Token returns the fencing token of a Fenced lock. It is larger than that of every earlier grant,
// in Go or Java. Nested holds share the token of the outer hold. For other locks it is 0: their
// layout has none.
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
	return h.lock.name
}

// Owner returns the owner's name in Redis: the client's ID and a number.
func (h *Hold) Owner() string {
	if h.unmade() {
		return ""
	}
	return h.s.owner.field
}

// Release ends the hold. It returns nil if the lock was held until now, or ErrLost if it was lost
// earlier. It returns ErrNotHeld if the hold was released before, and ErrUnconfirmed if Redis did
// not answer within the ReleaseTimeout.
func (h *Hold) Release() error {
	if h.unmade() {
		return fmt.Errorf("redisson: %w", errBadHold)
	}
	if err := h.end(); err != nil {
		return h.lock.wrap(err)
	}
	return nil
}

// end ends the hold here, then in Redis.
func (h *Hold) end() error {
	c, s := h.lock.c, h.s
	c.mu.Lock()
	was, todo := h.judge(c.clock.Now())
	if h.released {
		c.mu.Unlock()
		return was
	}
	told := h.told
	h.released, h.told = true, true
	todo = append(todo, h.cancel(relock.ErrNotHeld)...)
	h.lock.drop(h)
	c.tasks++ // a Shutdown waits for it
	c.mu.Unlock()
	defer c.finished()
	run(todo)
	if was != nil { // whatever is left in Redis is ended beside the caller
		if !told {
			s.lessBeside(h)
		}
		return was
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.releaseTimeout)
	defer cancel()
	held, err := s.less(ctx, h)
	switch {
	case err != nil && c.ctx.Err() != nil:
		return relock.ErrClosed
	case err != nil:
		return fmt.Errorf("%w: %w", relock.ErrUnconfirmed, err)
	case !held:
		return fmt.Errorf("%w: somebody has removed it from Redis", relock.ErrLost)
	}
	return nil
}

// missed takes note that Redis has not got the hold. One whose end has found that is on
// its handle again: it is yet to be unlocked, as every hold that was lost.
func (h *Hold) missed(why error, ended bool) {
	c := h.lock.c
	c.mu.Lock()
	if ended {
		h.released = false
		h.lock.holds = append(h.lock.holds, h)
	}
	var todo []func()
	if !ended || h.lost == nil { // else its own lease is over: those of the others may be longer
		todo = append(h.s.lose(why), h.lose(why)...)
	}
	c.mu.Unlock()
	run(todo)
}

// forget takes a released hold out of its session, and says how many are left, and the
// most that there were.
func (s *session) forget(h *Hold) (left, top int) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	s.holds = slices.DeleteFunc(s.holds, func(other *Hold) bool { return other == h })
	if len(s.holds) == 0 {
		s.end()
	} else {
		s.arm(now)
	}
	return len(s.holds), s.top
}
