package relock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A QuorumHold is one successful acquisition of a QuorumLock. It is held while a
// majority of the primaries holds it, for as long as the best majority can be trusted,
// and lost when there is none. A primary that comes back is taken again meanwhile. Its
// methods may be called from any goroutine.
type QuorumHold struct {
	lock   *QuorumLock
	unlock bool // made by Lock or TryLock
	began  time.Time
	end    context.Context // with the values of the call's, ends with the hold, which is the cause
	stop   context.CancelCauseFunc
	votes  chan struct{} // a primary has answered, or a member has changed; one place
	gone   chan struct{} // cuts a pause short: a primary has been lost; one place
	lost   chan struct{}

	mu      sync.Mutex // guards the following fields; of the members, Token and Owner are called under it
	token   int64      // 0 while it is gathered
	owner   string     // whose the token is
	err     error      // why it has ended
	members []member   // by primary
}

// A member is what one primary is to a hold.
type member struct {
	hold     *Hold
	raised   bool  // its counter has the token: it counts
	asking   bool  // a request is under way
	answered bool  // since the attempt began
	err      error // of the latest request that failed
}

func (l *QuorumLock) newHold(ctx context.Context, m manner) *QuorumHold {
	h := &QuorumHold{lock: l, unlock: m.unlock, began: time.Now(), votes: make(chan struct{}, 1), gone: make(chan struct{}, 1), lost: make(chan struct{})}
	h.members = make([]member, len(l.members))
	h.end, h.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	return h
}

// Err returns nil while a majority is held, ErrLost once there was none, and ErrNotHeld
// after the release. It is judged by the clock, like Hold.Err.
func (h *QuorumHold) Err() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	if err := h.judge(); err != nil {
		return lockError(h.lock.name, err)
	}
	return nil
}

// judge returns why the hold has ended, or nil.
func (h *QuorumHold) judge() error {
	h.mu.Lock()
	err := h.err
	h.mu.Unlock()
	if err != nil || !h.trust().IsZero() {
		return err
	}
	return h.finish(h.why())
}

// why is why there is no majority.
func (h *QuorumHold) why() error {
	open := len(h.lock.members)
	for _, m := range h.snapshot() {
		if m.hold != nil && errors.Is(m.hold.Err(), ErrClosed) || errors.Is(m.err, ErrClosed) {
			open--
		}
	}
	if open < h.lock.need {
		return errors.Join(ErrLost, ErrClosed)
	}
	return ErrLost
}

// finish ends the hold for that reason, unless it has ended: it returns the reason then.
func (h *QuorumHold) finish(why error) (ended error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = why
		if errors.Is(why, ErrLost) {
			close(h.lost)
		}
	}
	h.stop(h.err)
	return h.err
}

// trust is until when a majority is certain: the least of the best majority's, and the
// zero time where there is none.
func (h *QuorumHold) trust() time.Time {
	var all []time.Time
	for _, m := range h.snapshot() {
		if m.hold != nil && m.raised {
			if until := m.hold.TrustedUntil(); !until.IsZero() {
				all = append(all, until)
			}
		}
	}
	if len(all) < h.lock.need {
		return time.Time{}
	}
	slices.SortFunc(all, func(a, b time.Time) int { return b.Compare(a) })
	return all[h.lock.need-1]
}

func (h *QuorumHold) snapshot() []member {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.members)
}

// TrustedUntil returns until when the hold is certain as things stand; the zero time
// once it is lost or released.
func (h *QuorumHold) TrustedUntil() time.Time {
	if h.unmade() || h.judge() != nil {
		return time.Time{}
	}
	return h.trust()
}

// Lost returns a channel that is closed when the hold is lost.
func (h *QuorumHold) Lost() <-chan struct{} {
	if h.unmade() {
		return closed
	}
	return h.lost
}

// Token returns the fencing token: larger than that of every earlier grant of the name.
func (h *QuorumHold) Token() int64 {
	if h.unmade() {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token
}

// Name returns the lock's name.
func (h *QuorumHold) Name() string {
	if h.unmade() {
		return ""
	}
	return h.lock.name
}

// Owner returns who holds: the name given, or one that the primary shows whose token it has.
func (h *QuorumHold) Owner() string {
	if h.unmade() {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owner
}

// Release ends the hold. It returns nil when it was held until now, ErrLost when it was
// not, ErrNotHeld when it has been released before, and ErrUnconfirmed when so few
// primaries have confirmed it within the ReleaseTimeout that nobody else can hold yet.
func (h *QuorumHold) Release() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	before := h.judge()
	l := h.lock
	l.mu.Lock()
	at := slices.Index(l.holds, h)
	if at >= 0 {
		l.holds = slices.Delete(slices.Clone(l.holds), at, at+1)
	}
	l.mu.Unlock()
	if at < 0 {
		return lockError(l.name, ErrNotHeld)
	}
	_ = h.finish(ErrNotHeld)
	h.mu.Lock()
	if before != nil {
		h.err = ErrNotHeld // from now on
	}
	h.mu.Unlock()
	unconfirmed := h.release(context.Background(), (*Hold).Release)
	switch {
	case before != nil:
		return lockError(l.name, before)
	case unconfirmed != nil:
		return lockError(l.name, unconfirmed)
	}
	return nil
}

// release gives back what the primaries have granted, and waits until somebody else
// could hold a majority; the rest goes on without the caller.
func (h *QuorumHold) release(ctx context.Context, end func(*Hold) error) (unconfirmed error) {
	free := len(h.lock.members)
	results := make(chan error, free)
	for _, m := range h.snapshot() {
		if m.hold != nil {
			free--
			m.hold.lock.c.beside(func() { results <- end(m.hold) })
		}
	}
	for left := len(h.lock.members) - free; left > 0 && free < h.lock.need; left-- {
		select {
		case err := <-results:
			if errors.Is(err, ErrUnconfirmed) {
				unconfirmed = err
			} else {
				free++
			}
		case <-ctx.Done():
			return nil
		}
	}
	if free >= h.lock.need {
		return nil
	}
	return unconfirmed
}

// giveBack ends what has been gathered in vain.
func (h *QuorumHold) giveBack(ctx context.Context) {
	_ = h.finish(ErrNotHeld)
	_ = h.release(ctx, (*Hold).forgo)
}

func (h *QuorumHold) do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	defer func() { err = errors.Join(err, h.Release()) }()
	return fn(h.Context(ctx))
}

// Context returns a context that ends when the hold is lost, with ErrLost as its cause,
// when it is released, or when parent ends, like Hold.Context.
func (h *QuorumHold) Context(parent context.Context) context.Context {
	if h.unmade() {
		return endedContext(parent, errUnmadeHold)
	}
	inner, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(h.end, func() { cancel(context.Cause(h.end)) })
	context.AfterFunc(inner, func() { stop() }) // a long hold may have many
	return &quorumContext{Context: inner, cancel: cancel, hold: h, parent: parent}
}

type quorumKey struct{}

// A quorumContext asks the clock before it answers, as a holdContext does.
type quorumContext struct {
	context.Context
	cancel context.CancelCauseFunc
	hold   *QuorumHold
	parent context.Context
}

func (c *quorumContext) Err() error {
	_ = c.parent.Err() // judges the holds that it descends from
	c.judge()
	return c.Context.Err()
}

func (c *quorumContext) judge() {
	if err := c.hold.judge(); err != nil {
		c.cancel(err)
	}
}

func (c *quorumContext) Value(key any) any {
	if key == (quorumKey{}) {
		return c
	}
	c.judge()
	return c.Context.Value(key)
}

// waitsForItself reports an acquisition under a context of a live hold of the same lock
// by somebody else.
func (l *QuorumLock) waitsForItself(ctx context.Context) error {
	owner, err := l.members[0].ownerFor(ctx)
	for c, ok := ctx.Value(quorumKey{}).(*quorumContext); ok && err == nil; c, ok = c.parent.Value(quorumKey{}).(*quorumContext) {
		first := c.hold.lock.members[0]
		if first.c == l.members[0].c && first.hash == l.members[0].hash && (owner == "" || c.hold.Owner() != owner) && c.hold.judge() == nil {
			err = fmt.Errorf("%w: the context descends from a live hold of this lock by another owner; to re-enter it, lock both times under one relock.WithOwner", ErrDeadlock)
		}
	}
	return err
}
