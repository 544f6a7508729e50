// Package seam is what tests outside of the root package, relockweb and the command need from the root
// package, and users must not have. The root package fills these variables when it is initialised. It imports
// this package, so clients, locks and holds have the type any here. All test suites use internal/rig, which
// gives them their types back.
package seam

import (
	"context"

	"github.com/relock-go/relock/internal/clock"
)

// Of a client.
var (
	// SetClock makes an unused client read k, and send no check of its user's permissions: only what a test is about.
	SetClock func(client any, k *clock.Clock)
	// ID is the name of the client's inbox, and half of the identity of its sessions.
	ID func(client any) string
	// Kept counts what the client keeps: nonces, locks, its goroutines, and calls to Redis that have not ended.
	Kept func(client any) (sessions, rooms, tasks, calls int)
	// Knows reports whether the client has a session of that nonce.
	Knows func(client any, nonce string) bool
	// Listen makes the client subscribe without a lock. Hears reports whether it has.
	Listen func(client any)
	Hears  func(client any) bool
)

// Of a lock and a hold.
var (
	// PretendHolds makes a hold's owner hold n times more, as far as its client knows.
	PretendHolds func(hold any, n int)
	// Nonce returns the nonce of a hold's acquisition.
	Nonce func(hold any) string
)

// ForceUnlock is the lock's, but returns what it has ended: an Info that the command has read before may be old.
var ForceUnlock func(ctx context.Context, lock any) (info any, err error)

// ForceRest ends the rest of a name that ends at that time of the server in ms, and not that of a later grant.
var ForceRest func(ctx context.Context, lock any, until int64) (ended bool, err error)

// Info is the lock's, together with the server's time of the reading in ms. relockweb tells rests apart by their end.
var Info func(ctx context.Context, lock any) (info any, now int64, err error)

// What no user can see or bring about.
var (
	// PretendShort makes a named owner's session look as if it asked for a replica and none had its last renewal.
	PretendShort func(hold any)
	// RenewAround is a watchdog round that finds every session due. It calls between after it has checked the
	// sessions and before it sends anything. With stated, statements of commands of their own are made before that.
	RenewAround func(client any, stated bool, between func())
	// AskAgainWhenLost runs the next try of a call whose session was granted by message and whose lease is over.
	AskAgainWhenLost func(ctx context.Context, lock any) error
	// AcquireAround is Acquire of a named owner. It calls between when the hold is made and not on its handle yet.
	AcquireAround func(ctx context.Context, lock any, owner string, between func()) (hold any, err error)
)
