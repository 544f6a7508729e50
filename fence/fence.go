// Package fence compares fencing tokens at the resource that a lock protects.
//
// A hold can be lost while its holder still works: the process was paused, or Redis lost a write. Then two processes
// write. If that does damage, the resource must refuse the late one. This package does so for databases and for Redis:
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	err = fence.PostgreSQL.Check(ctx, tx, "orders/4711", hold.Token()) // first in the transaction
//
// The resource remembers the largest token that it has seen. A smaller one is refused with an error that matches
// [ErrStale]. An equal one passes, because one hold may write several times and nested holds share a token.
//
// Readers of a read/write lock and users of a semaphore must not use their tokens here. Several of them hold at a time,
// and a later token would refuse an earlier holder.
package fence

import (
	"errors"
	"fmt"
)

// ErrStale means that the resource has seen a newer token: a later holder has been here, so nothing may be written.
// Trying again with the same token does not help.
var ErrStale = errors.New("stale fencing token")

// errNoToken is the error of a token that no grant has.
var errNoToken = errors.New("no fencing token: Token returns 0 if nothing is held")

// errPipeline is the error of a comparison that would only be queued.
var errPipeline = errors.New("a pipeline has no reply to judge before Exec: pass a client")

// stale is the error of a token that was refused by a newer one.
func stale(resource string, token, newer any) error {
	return fmt.Errorf("fence: %q: %w: token %v was refused, as token %v came later", resource, ErrStale, token, newer)
}

// failed is any other error of a comparison.
func failed(resource string, err error) error { return fmt.Errorf("fence: %q: %w", resource, err) }
