package relock

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/wire"
)

const maxOwner = 512 // bytes

type ownerKey struct{}

// WithOwner names the owner of all locks that are taken under the returned context. Nested calls
// with that context re-enter the locks that the owner holds, through any handle, goroutine or
// process. If the owner has lost an exclusive hold in this client and has not unlocked it, they get
// ErrLost through any handle. An owner is one flow of control, such as a run of a workflow:
// goroutines that share an owner do not exclude each other.
//
// id has 1 to 512 bytes of UTF-8 and must not begin with "~", as the names of anonymous holds do.
// With any other id, every call under the context returns ErrInvalidOption. Once and SyncLocker
// ignore the owner.
func WithOwner(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, ownerKey{}, id)
}

// WithNewOwner is WithOwner with a new random name.
func WithNewOwner(ctx context.Context) context.Context {
	return WithOwner(ctx, uuid.NewString())
}

// OwnerFrom returns the name that WithOwner gave, for example to carry it into another process.
func OwnerFrom(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(ownerKey{}).(string)
	return id, ok
}

// Owner names the owner of all holds of the handle. They re-enter holds of the same owner anywhere.
// Goroutines that share such a handle do not exclude each other. For one flow of control WithOwner
// is the better way. id has 1 to 512 bytes of UTF-8 and must not begin with "~".
func Owner(id string) LockOption {
	return lockOption(func(t *terms) error {
		t.owner = id
		return checkOwner(id)
	})
}

func checkOwner(id string) error {
	if id == "" || len(id) > maxOwner || !utf8.ValidString(id) {
		return fmt.Errorf("%w: an owner has 1 to %d bytes of UTF-8, this one has %d bytes", ErrInvalidOption, maxOwner, len(id))
	}
	if id[0] == room.MadeMark {
		return fmt.Errorf("%w: owner %q: names that begin with %q are those of anonymous holds, which nobody re-enters; to re-enter a lock, take it both times under one relock.WithOwner",
			ErrInvalidOption, id, string(room.MadeMark))
	}
	return nil
}

// ownerFor returns who locks l under ctx; "" for a new owner each time.
func (l *Lock) ownerFor(ctx context.Context) (string, error) {
	if l.anonymous {
		return "", nil
	}
	id, named := OwnerFrom(ctx)
	if !named {
		return l.terms.owner, nil
	}
	if err := checkOwner(id); err != nil {
		return "", err
	}
	if l.terms.owner != "" && l.terms.owner != id {
		return "", fmt.Errorf("%w: the handle is of owner %q, the context of %q; use a handle without Owner, or one owner",
			ErrOwnerMismatch, l.terms.owner, id)
	}
	return id, nil
}

// Context returns a context that ends when the hold is lost, when it is released, or when parent
// ends. After a loss its cause is ErrLost. Its Err is judged by the clock at the call, as Hold.Err
// is. The owner that parent names stays the same.
//
// The hold keeps the context, some 400 bytes, until either has ended. If parent outlives the hold,
// make one context for all of a long piece of work and not one for each step. Or give each step a
// parent that is cancelled after it.
func (h *Hold) Context(parent context.Context) context.Context {
	if h.unmade() {
		return endedContext(parent, errUnmadeHold)
	}
	inner, cancel := context.WithCancelCause(parent)
	ctx := &holdContext{Context: inner, cancel: cancel, hold: h, parent: parent}
	// Not under the keeper's mu: parent may be a context of a hold of the same lock, and
	// judges that when it is asked.
	ctx.stop = context.AfterFunc(parent, func() { h.forget(ctx) })
	_ = h.judge()
	k := h.keeper()
	k.mu.Lock()
	err := h.over()
	if err == nil {
		x := h.extra()
		if x.contexts == nil {
			x.contexts = make(map[*holdContext]struct{})
		}
		x.contexts[ctx] = struct{}{}
	}
	k.mu.Unlock()
	switch {
	case err != nil:
		ctx.stop()
		ctx.cancel(err)
	case parent.Err() != nil:
		h.forget(ctx) // parent's end may have come before there was anything to forget
	}
	return ctx
}

// FromContext returns the hold of that name whose Do or Context made ctx, or an ancestor of ctx. If
// there are several, it returns the innermost. It is for code that runs under a lock and needs its
// token, for example to write to a resource that compares tokens. The hold may have ended in the
// meantime: ask its Err.
func FromContext(ctx context.Context, name string) (h *Hold, ok bool) {
	if ctx == nil {
		return nil, false
	}
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.parent.Value(holdKey{}).(*holdContext) {
		if c.hold.Name() == name {
			return c.hold, true
		}
	}
	return nil, false
}

// holdIn returns the innermost hold of the lock from which a context descends, or nil.
func (l *Lock) holdIn(ctx context.Context) *Hold {
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.parent.Value(holdKey{}).(*holdContext) {
		if h := c.hold; h.lock.c == l.c && h.lock.hash == l.hash && h.lock.kind == l.kind {
			return h
		}
	}
	return nil
}

// forget lets a context go whose parent has ended: a long hold may have many.
func (h *Hold) forget(ctx *holdContext) {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.extras != nil { // parent may have ended before anything was kept
		delete(h.contexts, ctx)
	}
}

// A holdContext asks the clock before it answers: after a pause its timer and
// its watchdog may yet have to run.
type holdContext struct {
	context.Context
	cancel context.CancelCauseFunc
	hold   *Hold
	parent context.Context
	stop   func() bool // ends the wait for parent's end
}

type holdKey struct{}

// Err judges the holds as well whose contexts this one descends from: what cancels
// one of theirs has cancelled this one when it returns.
func (c *holdContext) Err() error {
	for above, ok := c, true; ok; above, ok = above.parent.Value(holdKey{}).(*holdContext) {
		above.judge()
	}
	return c.Context.Err()
}

// judge ends the inner context with its hold. Another goroutine that has found
// the loss may yet have to do so.
func (c *holdContext) judge() {
	if err := c.hold.judge(); err != nil && err != errAbsent { //nolint:errorlint // made here, never wrapped
		c.cancel(c.hold.cause(err))
	}
}

// cause is why the contexts of a hold in that state end: of a lost one its loss, though it
// has been released since.
func (h *Hold) cause(state error) error {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.hold.Lost() {
		return lostFor(h.hold.Session.Why())
	}
	return state
}

// Value is also how context.Cause finds the cause: it must not miss a loss either.
func (c *holdContext) Value(key any) any {
	if key == (holdKey{}) {
		return c
	}
	c.judge()
	return c.Context.Value(key)
}

// waitsForItself reports an acquisition under a context that descends from a
// live hold of the same lock by somebody else: it could only end in a timeout.
func (l *Lock) waitsForItself(ctx context.Context, owner string) error {
	var mine inUse
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.parent.Value(holdKey{}).(*holdContext) {
		h := c.hold
		own := owner != "" && h.acquisition().owner() == owner
		switch {
		case h.lock.c != l.c || h.lock.hash != l.hash || h.judge() != nil:
			continue
		case h.lock.kind != l.kind: // that is ErrKind, which Redis says
			continue
		case own && h.lock.kind == wire.KindSemaphore:
			return nil
		case own:
			continue
		case l.kind == wire.KindSemaphore && h.lock.kind == wire.KindSemaphore:
			mine.add(h.hold.Session)
			continue
		}
		who := "an anonymous owner"
		if h.acquisition().Named() {
			who = fmt.Sprintf("owner %q", h.acquisition().owner())
		}
		if !l.read && h.reads() && h.lock.kind != wire.KindSemaphore {
			return fmt.Errorf("%w: the context descends from a live read hold of this lock by %s", ErrUpgrade, who)
		}
		return fmt.Errorf("%w: the context descends from a live hold of this lock by %s; to re-enter it, lock both times under one relock.WithOwner", ErrDeadlock, who)
	}
	return mine.leaves(l.terms.Permits)
}

// Context returns a context that ends when the hold is lost, when it is released, or when parent
// ends. After a loss its cause is ErrLost.
func (h *QuorumHold) Context(parent context.Context) context.Context {
	if h.unmade() {
		return endedContext(parent, errUnmadeHold)
	}
	inner, cancel := context.WithCancelCause(parent)
	stop := h.majority.AfterEnd(cancel)
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
	if err := c.hold.majority.Err(); err != nil {
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

// caller returns who asks. A call under a context of a live hold of the same lock by
// somebody else would wait for itself.
func (l *QuorumLock) caller(ctx context.Context) (owner string, err error) {
	if err = l.usable(); err != nil {
		return "", err
	}
	switch {
	case ctx == nil:
		return "", lockError(l.name, errNoContext)
	case ctx.Err() != nil:
		return "", lockError(l.name, unasked(ctx))
	}
	owner, err = l.first.ownerFor(ctx)
	for c, ok := ctx.Value(quorumKey{}).(*quorumContext); ok && err == nil; c, ok = c.parent.Value(quorumKey{}).(*quorumContext) {
		first := c.hold.lock.first
		if first.c == l.first.c && first.hash == l.first.hash && (owner == "" || c.hold.Owner() != owner) && c.hold.majority.Err() == nil {
			err = fmt.Errorf("%w: the context descends from a live hold of this lock by another owner; to re-enter it, lock both times under one relock.WithOwner", ErrDeadlock)
		}
	}
	return owner, lockError(l.name, err)
}
