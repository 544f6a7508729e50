// Package seam opens private parts of the root package to tests outside of it, to relockweb and to the command, but not
// to users. The root package fills these variables when it is initialised. It imports this package, so clients, locks
// and holds have the type any here. All test suites use internal/rig, whose functions have the real types.
package seam

import (
	"context"

	"github.com/relock-go/relock/internal/clock"
)

// Of a client.
var (
	// SetClock makes an unused client read the clock k, and skip the check of its user's permissions. So the client sends
	// only what a test is about.
	SetClock func(client any, k *clock.Clock)
	// ID returns the client's ID, which is part of its inbox's name and of the identity of its requests.
	ID func(client any) string
	// Kept counts what the client keeps: acquisitions, locks, its goroutines, and those of its transport.
	Kept func(client any) (sessions, rooms, tasks, calls int)
	// Knows reports whether the client has an acquisition with that nonce.
	Knows func(client any, nonce string) bool
	// Listen makes the client subscribe its inbox without a lock. Hears reports whether it is subscribed.
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

// ForceUnlock is Lock.ForceUnlock, but returns what it has ended. An Info that was read before may be out of date.
var ForceUnlock func(ctx context.Context, lock any) (info any, err error)

// ForceRest ends the rest of a name that ends at until (server ms), and not that of a later grant.
var ForceRest func(ctx context.Context, lock any, until int64) (ended bool, err error)

// Info is Lock.Info with the server time (ms) of the reading, from which relockweb computes when a rest ends.
var Info func(ctx context.Context, lock any) (info any, now int64, err error)

// What no user can see or bring about.
var (
	// PretendShort makes a named owner's session look as if it asked for a replica and none acknowledged its last renewal.
	PretendShort func(hold any)
	// RenewAround is a watchdog round that finds every session due. It calls between after it has checked the sessions and
	// before it states their renewals. With stated, it calls between after that, before it sends: for one session only.
	RenewAround func(client any, stated bool, between func())
	// AskAgainWhenLost runs the next try of a call that was granted the lock by message and has lost it since.
	AskAgainWhenLost func(ctx context.Context, lock any) error
	// AcquireAround is Acquire of a named owner. It calls between after the hold is made and before it is on its handle.
	AcquireAround func(ctx context.Context, lock any, owner string, between func()) (hold any, err error)
)
