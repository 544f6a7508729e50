package relock

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"
)

const maxOwner = 512 // bytes

type ownerKey struct{}

// WithOwner names who locks under the returned context. Nested calls that get
// the context re-enter the locks that the owner holds, through any handle,
// goroutine or process. An owner is one flow of control, such as a run of a
// workflow: goroutines that share it do not exclude each other. id has 1 to 512
// bytes of UTF-8, of which the first is not "~": so begin the names of anonymous
// holds, which nobody re-enters. With any other, every call under the context
// fails with ErrInvalidOption.
func WithOwner(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, ownerKey{}, id)
}

// WithNewOwner is WithOwner with a random name that nobody else has.
func WithNewOwner(ctx context.Context) context.Context {
	return WithOwner(ctx, uuid.NewString())
}

// OwnerFrom returns the name that WithOwner gave, to carry it into another process.
func OwnerFrom(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(ownerKey{}).(string)
	return id, ok
}

func checkOwner(id string) error {
	if id == "" || len(id) > maxOwner || !utf8.ValidString(id) {
		return fmt.Errorf("%w: an owner has 1 to %d bytes of UTF-8, this one has %d bytes", ErrInvalidOption, maxOwner, len(id))
	}
	if id[0] == madeMark {
		return fmt.Errorf("%w: owner %q: names that begin with %q are those of anonymous holds, which nobody re-enters; to re-enter a lock, take it both times under one relock.WithOwner",
			ErrInvalidOption, id, string(madeMark))
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
