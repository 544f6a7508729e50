package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/holdcontext"
	"github.com/relock-go/relock/internal/loss"
)

// A Hold is one successful acquisition of a lock, as Acquire and TryAcquire return it. It ends with Release, or is lost
// before that. A lost hold must be released too. Err checks the clock, and so knows at once that the lease has ended. A
// loss in Redis, for example by ForceUnlock, is noticed at the next renewal or, without one, at the lease's end. The
// methods may be called from any goroutine.
type Hold struct {
	s        *session
	lock     *Lock
	terms    *terms
	acquired clock.Instant
	token    int64
	unlock   bool // Unlock ends it, not Release

	// Guarded by the client's mu:

	trust    clock.Instant // until when nobody else can hold
	released bool
	told     bool  // Redis has been told of its end, or is being told
	lost     error // why it was lost
	lostc    chan struct{}
	contexts map[*holdContext]struct{}
}

// Contexts of holds of all kinds have one type, so that each finds those from which it descends.
type (
	holdContext = holdcontext.Context
	holdKey     = holdcontext.Key
)

// Context returns a context that ends when the hold is lost, when it is released, or when parent ends. After a loss its
// cause is ErrLost, and after a release ErrNotHeld. Each call of its Err checks the clock, so it reports a loss even
// before Done is closed. It has the values of parent.
func (h *Hold) Context(parent context.Context) context.Context {
	if h.unmade() {
		ended, cancel := context.WithCancelCause(parent)
		cancel(errBadHold)
		return ended
	}
	ctx := holdcontext.New(parent, h, h.endCause)
	c := h.lock.c
	ctx.Stop = context.AfterFunc(parent, func() { h.forget(ctx) })
	c.mu.Lock()
	err, todo := h.judge(c.clock.Now())
	if err == nil {
		if h.contexts == nil {
			h.contexts = make(map[*holdContext]struct{})
		}
		h.contexts[ctx] = struct{}{}
	}
	c.mu.Unlock()
	run(todo)
	switch {
	case err != nil:
		ctx.Stop()
		ctx.Cancel(h.endCause())
	case parent.Err() != nil: // without the mutex, which Err takes if parent is the context of a hold
		h.forget(ctx)
	}
	return ctx
}

// endCause returns the cause for the hold's contexts if the hold has ended, else nil. That is its loss, even if it was
// released after that.
func (h *Hold) endCause() error {
	err := h.state()
	h.lock.c.mu.Lock()
	defer h.lock.c.mu.Unlock()
	if err != nil && h.lost != nil {
		return h.lost
	}
	return err
}

// forget takes a context whose parent has ended off the hold: a long hold would collect them.
func (h *Hold) forget(ctx *holdContext) {
	mu := &h.lock.c.mu
	mu.Lock()
	defer mu.Unlock()
	delete(h.contexts, ctx)
}

// unmade reports whether the hold is nil or a zero value.
func (h *Hold) unmade() bool { return h == nil || h.s == nil }

// judge checks the hold against the clock and returns its state: nil, ErrLost or ErrNotHeld. It needs the
// client's mu. The caller must run todo without it.
func (h *Hold) judge(now clock.Instant) (err error, todo []func()) { //nolint:revive,staticcheck // err comes first on purpose
	switch {
	case h.released:
		return relock.ErrNotHeld, nil
	case h.lost == nil && now.Reached(h.trust):
		todo = h.lose(fmt.Errorf("%w: %w", relock.ErrLost, h.expiry()))
	}
	return h.lost, todo
}

// expiry returns why the lease of the hold has ended.
func (h *Hold) expiry() error {
	switch t := h.terms; {
	case t.fixed:
		return loss.OfFixedLease(t.ttl)
	case t.maxHold > 0 && h.trust.Reached(h.acquired.Add(t.maxHold)):
		return loss.OfMaxHold(t.maxHold)
	}
	return errExpired
}

// lose marks the hold as lost, and returns functions that end its contexts. It needs the client's mu.
func (h *Hold) lose(why error) []func() {
	if h.lost != nil || h.released {
		return nil
	}
	h.lost = why
	h.s.c.tracker.Ended()
	if h.lostc != nil {
		close(h.lostc)
	}
	return h.cancel(why)
}

// cancel returns functions that end the hold's contexts. It needs the client's mu.
func (h *Hold) cancel(why error) (todo []func()) {
	for ctx := range h.contexts {
		todo = append(todo, func() { ctx.Stop(); ctx.Cancel(why) })
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

// Err returns nil while the hold is trusted, ErrLost once it is lost, and ErrNotHeld after its release. Each call
// checks the clock, and does no I/O. ErrLost matches ErrNotHeld too: test for ErrLost first.
func (h *Hold) Err() error {
	if h.unmade() {
		return fmt.Errorf("redisson: %w", errBadHold)
	}
	if err := h.state(); err != nil {
		return h.lock.wrap(err)
	}
	return nil
}

// Lost returns a channel that is closed when the hold is lost. It stays open if the hold is released before that. After
// a pause of the process it may be closed a moment late: Err is exact. Every call returns the same channel.
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

// TrustedUntil returns until when nobody, in Go or Java, can get a conflicting hold, unless Redis loses this
// one or somebody removes it. Compare it with time.Now. Renewals move it. It is zero after a loss or release.
func (h *Hold) TrustedUntil() time.Time {
	if h.unmade() || h.state() != nil {
		return time.Time{}
	}
	h.lock.c.mu.Lock()
	defer h.lock.c.mu.Unlock()
	return h.lock.c.clock.Time(h.trust)
}

// Token returns the fencing token of a Fenced lock, and 0 of other locks, whose layout has none. It is larger than that
// of every earlier grant, in Go or Java, while Redis keeps its data. The counter is a number in Redis, so numbers can
// come again after a failover or a loss of data: then they do not show which writer is late. Nested holds share the
// token of the outer hold. An owner may share the token of its own lost hold too. That is so if it locks again as soon
// as that hold is unlocked, and nobody has held in between.
func (h *Hold) Token() int64 {
	if h.unmade() {
		return 0
	}
	return h.token
}

// Name returns the lock's name, as it was given to NewLock.
func (h *Hold) Name() string {
	if h.unmade() {
		return ""
	}
	return h.lock.name
}

// Owner returns the owner's name in Redis: the client's ID, a colon and a number. It is not the name that WithOwner or
// Owner gave. Nested holds of one owner share it.
func (h *Hold) Owner() string {
	if h.unmade() {
		return ""
	}
	return h.s.owner.field
}

// Release ends the hold. It returns nil if the lock was held until now, or ErrLost if it was lost earlier: for an
// exception see Lock.Unlock. A second Release returns ErrNotHeld. ErrLost matches ErrNotHeld too: test for ErrLost
// first. ErrUnconfirmed means that Redis did not answer within the ReleaseTimeout. The hold has ended here then, and
// the client goes on telling Redis until the lease ends. ErrUnconfirmed also comes at once if Redis refuses, and with
// ErrClosed if Close interrupts the release. In these two cases the lease ends the hold in Redis. After a refusal, each
// renewal of the owner's other holds tells Redis again.
func (h *Hold) Release() error {
	if h.unmade() {
		return fmt.Errorf("redisson: %w", errBadHold)
	}
	if err := h.end(); err != nil {
		return h.lock.wrap(err)
	}
	return nil
}

// end ends the hold here and then in Redis.
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
	c.ends++ // a Shutdown waits for it
	c.mu.Unlock()
	defer c.ended()
	run(todo)
	if was != nil { // what is left in Redis is ended in the background
		if !told {
			s.tellFewerInBackground(h)
		}
		return was
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.releaseTimeout)
	defer cancel()
	held, err := s.tellFewer(ctx, h)
	switch {
	case err != nil && c.ctx.Err() != nil:
		return fmt.Errorf("%w: %w before redis answered; the lease ends it", relock.ErrUnconfirmed, relock.ErrClosed)
	case err != nil:
		return fmt.Errorf("%w: %v", relock.ErrUnconfirmed, err) // not wrapped: err may be the end of this ctx
	case !held:
		return fmt.Errorf("%w: redis no longer had it", relock.ErrLost)
	}
	return nil
}

// missed records that Redis does not have the hold. ended says that the hold's own end found that. Then the
// hold is put back on its handle, because a lost hold must still be unlocked.
func (h *Hold) missed(why error, ended bool) {
	c := h.lock.c
	c.mu.Lock()
	if ended {
		h.released = false
		h.lock.holds = append(h.lock.holds, h)
	}
	var todo []func()
	if !ended || h.lost == nil { // otherwise its own lease has ended, and the other holds may have longer ones
		todo = append(h.s.lose(why), h.lose(why)...)
	}
	c.mu.Unlock()
	run(todo)
}

// giveBack ends a hold that its call will not return. It does not wait. If an Unlock has ended that hold already, in
// place of another one, the other one is given back.
func (h *Hold) giveBack() {
	c := h.lock.c
	c.mu.Lock()
	there := slices.Contains(h.lock.holds, h)
	if there {
		h.lock.drop(h)
	}
	c.mu.Unlock()
	if !there {
		if h = h.lock.next(); h == nil {
			return
		}
	}
	c.mu.Lock()
	h.released, h.told = true, true
	todo := h.cancel(relock.ErrNotHeld)
	c.mu.Unlock()
	run(todo)
	h.s.tellFewerInBackground(h)
}

// endForReader ends a write hold whose owner now reads too. If the write hold was lost, the read hold was granted on a
// free lock, so it is given back.
func (h *Hold) endForReader(read *Hold) error {
	err := h.end()
	if err == nil || errors.Is(err, relock.ErrUnconfirmed) {
		return err
	}
	if errors.Is(err, relock.ErrLost) {
		h.missed(err, true)
	}
	_ = read.end() // what is left of it ends with its lease
	return err
}

// renewable reports whether the watchdog renews the hold.
func (h *Hold) renewable(now clock.Instant) bool {
	switch {
	case h.released || h.lost != nil || h.terms.fixed:
		return false
	case h.terms.maxHold > 0:
		return !now.Reached(h.acquired.Add(h.terms.maxHold))
	}
	return true
}

var errBadHold = fmt.Errorf("%w (%w): the Hold was not made by Acquire or TryAcquire; look at the error that the call has returned",
	relock.ErrInvalidOption, relock.ErrNotHeld)

// closed is the Lost channel of a hold that no call has made.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

var errExpired = loss.Because(loss.Unreachable, "its lease could not be renewed in time")
