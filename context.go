package relock

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/relock-go/relock/internal/holdcontext"
	"github.com/relock-go/relock/internal/room"
)

const maxOwner = 512 // bytes

type ownerKey struct{}

// WithOwner names the owner of all locks that are taken under the returned context. Nested calls with that context
// re-enter what the owner holds, through any handle, goroutine or process (package redisson: in one client). If the
// owner has lost an exclusive hold, its calls for that lock in that client get ErrLost until that hold is unlocked. An
// owner is one line of work, such as a run of a workflow: goroutines that share one do not exclude each other.
//
// id has 1 to 512 bytes of UTF-8 and must not begin with "~", as the names of anonymous holds do. It must not contain
// "~." either, unless OwnerFrom returned it for a child owner. With any other id, calls that need the owner return
// ErrInvalidOption. A handle whose Owner differs returns ErrOwnerMismatch. Once and SyncLocker ignore the owner.
func WithOwner(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, ownerKey{}, id)
}

// WithNewOwner is WithOwner with a new random name, a UUID. Calls under the returned context re-enter each other's
// locks, and exclude every other owner, including the one that ctx names. OwnerFrom returns the name.
func WithNewOwner(ctx context.Context) context.Context {
	return WithOwner(ctx, uuid.NewString())
}

// WithChildOwner names a new owner whose parent is ctx's owner: a branch of the parent's flow, such as one goroutine of
// an errgroup. A branch may take a lock if everybody who holds it is that branch or one of its ancestors. So it enters
// the locks that its ancestors hold, and two branches exclude each other, at any depth and in any process.
//
// Readers and writers follow the same rule. A branch waits for readers of other branches if it wants to write, and for
// writers of other branches in any case. A branch that wants to write gets ErrUpgrade if its nearest ancestor with a
// hold only reads. Of a semaphore, a branch uses the permits of the nearest ancestor that holds, one branch at a time.
//
// Branches wait for each other in their order of arrival, ahead of owners outside the flow. A hold of a branch has the
// token of the hold that it entered, and is lost when that hold ends or is lost: wait for the branches before you
// unlock. An owner that holds re-enters at once, even while a branch is inside. A branch and its ancestor may not both
// hold by Lock or TryLock of one handle (ErrOwnerMismatch): the handle's Unlock could end the wrong hold. With Acquire
// and Do they may share a handle, except on a reading side: there each branch needs a handle of its own.
//
// If ctx has no owner, or the new name is longer than 512 bytes, calls under the returned context that need the owner
// return ErrInvalidOption. Each level adds 13 bytes. A QuorumLock and the locks of package redisson return
// ErrInvalidOption for every child owner.
func WithChildOwner(ctx context.Context) context.Context {
	parent, named := OwnerFrom(ctx)
	switch {
	case !named:
		return WithOwner(ctx, room.BranchMark) // an invalid name: the error of each call says that the owner is missing
	case len(parent) > maxOwner:
		return ctx // calls refuse the parent's name already
	}
	var child [branchLen * 6 / 8]byte
	_, _ = rand.Read(child[:]) // never fails, says its documentation
	return WithOwner(ctx, parent+room.BranchMark+base64.RawURLEncoding.EncodeToString(child[:]))
}

// branchLen is how many letters WithChildOwner adds after the parent's name and BranchMark.
const branchLen = 11

// OwnerFrom returns the name that WithOwner, WithNewOwner or WithChildOwner gave, for example to carry it into another
// process. The name of a child owner contains the names of its ancestors, so WithOwner restores that owner with its
// ancestry. Without a name, or with a nil ctx, it returns "" and false. It does not see the Owner of a handle.
func OwnerFrom(ctx context.Context) (id string, ok bool) {
	if ctx != nil {
		id, ok = ctx.Value(ownerKey{}).(string)
	}
	return id, ok
}

// Owner names the owner of all holds of the handle. Calls through the handle re-enter what that owner holds, by any
// handle in any process. Goroutines that share such a handle do not exclude each other: for one flow of control
// WithOwner is the better way. If the context of a call names another owner, the call returns ErrOwnerMismatch. id is
// as for WithOwner. With any other id every call on the handle returns ErrInvalidOption.
func Owner(id string) LockOption {
	return lockOption(func(t *terms) error {
		t.owner = id
		return checkOwner(id)
	})
}

// checkOwner returns why id cannot be the name of an owner, or nil.
func checkOwner(id string) error {
	root, below, branch := strings.Cut(id, room.BranchMark)
	switch {
	case branch && root == "":
		return fmt.Errorf("%w: WithChildOwner was called with a context that has no owner; begin the flow with relock.WithNewOwner", ErrInvalidOption)
	case branch && !areBranches(below):
		return fmt.Errorf("%w: owner %q: only names made by relock.WithChildOwner have %q", ErrInvalidOption, id, room.BranchMark)
	case branch && len(id) > maxOwner:
		return fmt.Errorf("%w: a child owner %d levels deep has a name of %d bytes, the limit is %d; begin with a shorter owner, or nest less deep",
			ErrInvalidOption, strings.Count(id, room.BranchMark), len(id), maxOwner)
	case id == "" || len(id) > maxOwner || !utf8.ValidString(id):
		return fmt.Errorf("%w: an owner has 1 to %d bytes of UTF-8, this one has %d bytes", ErrInvalidOption, maxOwner, len(id))
	}
	if id[0] == room.MadeMark {
		return fmt.Errorf("%w: owner %q: names that begin with %q are those of anonymous holds, which nobody re-enters; to re-enter a lock, take it both times under one relock.WithOwner",
			ErrInvalidOption, id, string(room.MadeMark))
	}
	return nil
}

// areBranches reports whether WithChildOwner could have made below, the part of a name after its first BranchMark.
func areBranches(below string) bool {
	for part := range strings.SplitSeq(below, room.BranchMark) {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || len(part) != branchLen || base64.RawURLEncoding.EncodeToString(raw) != part {
			return false
		}
	}
	return true
}

// FromContext returns the hold of that name, as given to NewLock, from which ctx descends. Do, Hold.Context, Once,
// Election.Run and a Multi make such contexts; a QuorumLock and package redisson do not. Of several holds it returns
// the innermost, of any client and kind. If there is none, it returns nil and false. It is for code under a lock that
// needs the token, as for package fence. The hold may have ended: ask its Err. Do not release it: the call that
// acquired the hold does.
func FromContext(ctx context.Context, name string) (h *Hold, ok bool) {
	if ctx == nil {
		return nil, false
	}
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.Parent.Value(holdKey{}).(*holdContext) {
		if held, is := c.Hold.(*Hold); is && held.Name() == name {
			return held, true
		}
	}
	return nil, false
}

// holdIn returns the innermost hold of l from which ctx descends, or nil. It may have ended. It is for a Cond.
func holdIn(ctx context.Context, l *Lock) *Hold {
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.Parent.Value(holdKey{}).(*holdContext) {
		if h, is := c.Hold.(*Hold); is && h.lock.c == l.c && h.lock.hash == l.hash && h.lock.kind == l.kind {
			return h
		}
	}
	return nil
}

// Contexts of holds of all kinds have one type, so that each finds those from which it descends.
type (
	holdContext = holdcontext.Context
	holdKey     = holdcontext.Key
)
