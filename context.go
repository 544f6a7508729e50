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

// WithOwner names the owner of all locks that are taken under the returned context. Nested calls with that context
// re-enter the locks that the owner holds, through any handle, goroutine or process. If the owner has lost an exclusive
// hold in this client and has not unlocked it, they get ErrLost through any handle. An owner is one flow of control,
// such as a run of a workflow: goroutines that share an owner do not exclude each other.
//
// id has 1 to 512 bytes of UTF-8 and must not begin with "~", as the names of anonymous holds do. With any other id,
// every call under the context returns ErrInvalidOption. A handle whose Owner differs returns ErrOwnerMismatch. Once
// and SyncLocker ignore the owner.
func WithOwner(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, ownerKey{}, id)
}

// WithNewOwner is WithOwner with a new random name, a UUID. Calls under the returned context re-enter each other's
// locks, and exclude every other owner, the one that ctx named included. OwnerFrom tells the name.
func WithNewOwner(ctx context.Context) context.Context {
	return WithOwner(ctx, uuid.NewString())
}

// OwnerFrom returns the name that WithOwner or WithNewOwner gave, for example to carry it into another process. Without
// one it returns "" and false. It does not tell the Owner of a handle.
func OwnerFrom(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(ownerKey{}).(string)
	return id, ok
}

// Owner names the owner of all holds of the handle. Calls through the handle re-enter what that owner holds, by any
// handle in any process. Goroutines that share such a handle do not exclude each other: for one flow of control
// WithOwner is the better way. A context that names another owner gets ErrOwnerMismatch. id has 1 to 512 bytes of UTF-8
// and must not begin with "~". With any other id every call on the handle returns ErrInvalidOption.
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

// ownerFor returns the owner for whom a call under ctx locks l. "" means an anonymous call.
func ownerFor(ctx context.Context, l *Lock) (string, error) {
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

// waitsForItself returns ErrDeadlock if ctx descends from a live hold of the same lock by another owner: the call would
// wait for its own caller.
func waitsForItself(ctx context.Context, l *Lock, owner string) error {
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
			return fmt.Errorf("%w: the context descends from a live read hold of this lock by %s; unlock that hold first, or lock for writing from the start", ErrUpgrade, who)
		}
		return fmt.Errorf("%w: the context descends from a live hold of this lock by %s; to re-enter it, lock both times under one relock.WithOwner", ErrDeadlock, who)
	}
	return mine.leaves(l.terms.Permits)
}

// FromContext returns the hold of that name whose Do or Context made ctx, or an ancestor of ctx. If there are several,
// it returns the innermost. If there is none, it returns nil and false. It is for code that runs under a lock and needs
// its token, for example to write to a resource that compares tokens. The hold may have ended in the meantime: ask its
// Err.
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
func holdIn(ctx context.Context, l *Lock) *Hold {
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.parent.Value(holdKey{}).(*holdContext) {
		if h := c.hold; h.lock.c == l.c && h.lock.hash == l.hash && h.lock.kind == l.kind {
			return h
		}
	}
	return nil
}

type holdKey struct{}

// A holdContext asks the clock before it answers: after a pause of the process, the timers that would end it may not
// have run yet.
type holdContext struct {
	context.Context
	cancel context.CancelCauseFunc
	hold   *Hold
	parent context.Context
	stop   func() bool // ends the wait for parent's end
}

// Err also judges the holds whose contexts this one descends from. If one of them is lost, this context has ended when
// Err returns.
func (c *holdContext) Err() error {
	for above, ok := c, true; ok; above, ok = above.parent.Value(holdKey{}).(*holdContext) {
		above.judge()
	}
	return c.Context.Err()
}

// judge ends the inner context if its hold has ended. Another goroutine may have found the loss and not ended the
// context yet.
func (c *holdContext) judge() {
	if err := c.hold.judge(); err != nil && err != errAbsent { //nolint:errorlint // made here, never wrapped
		c.cancel(c.hold.cause(err))
	}
}

// Value is how context.Cause finds the cause, so it looks for a loss first.
func (c *holdContext) Value(key any) any {
	if key == (holdKey{}) {
		return c
	}
	c.judge()
	return c.Context.Value(key)
}
