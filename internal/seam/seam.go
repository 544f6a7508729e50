// Package seam is what tests outside of the root package, relockweb and the command need of
// it, and users must not have: the root package fills these variables when it is
// initialized. It imports this package, so clients, locks and holds are any here;
// internal/rig, by which all suites go, gives them their types back.
package seam

import (
	"context"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/script"
)

// Of a client.
var (
	// SetClock makes a client that is not used yet read k, and take its user's
	// permissions for granted: it sends nothing but what a test is about.
	SetClock func(client any, k *clock.Clock)
	// ID is the name of the client's inbox, and half of the identity of its sessions.
	ID func(client any) string
	// Kept counts what the client keeps: nonces, locks, goroutines of its own, and
	// calls of Redis that have not ended.
	Kept func(client any) (sessions, rooms, tasks, calls int)
	// Knows says whether the client has a session of that nonce.
	Knows func(client any, nonce string) bool
	// Remembers says whether the client looks after releases, which takes a timer.
	Remembers func(client any) bool
	// Listen makes the client subscribe without a lock, and Hears says whether it has.
	Listen func(client any)
	Hears  func(client any) bool
)

// Of a lock and a hold.
var (
	// OfKind makes a lock that is not used yet a handle of another kind.
	OfKind func(lock any, kind string)
	// PretendHolds makes a hold's owner hold n times more, as far as its client knows.
	PretendHolds func(hold any, n int)
	// Nonce is the name of the acquisition that a hold is of.
	Nonce func(hold any) string
)

// ForceUnlock is the lock's, and says what has been ended, in an Info. The command has no
// other way to know: what it has read before may have passed on since.
var ForceUnlock func(ctx context.Context, lock any) (info any, err error)

// ForceRest ends the rest of a lock's name (AtLeast, Once) that ends at that time of the
// server in ms, and no other. relockweb must not end the rest of a later grant.
var ForceRest func(ctx context.Context, lock any, until int64) (ended bool, err error)

// Info is the lock's, and when that was by the server's clock, in ms. relockweb has no other
// way to tell a rest from a later one: by its end.
var Info func(ctx context.Context, lock any) (info any, now int64, err error)

// What no user can see or bring about.
var (
	// Unlocked says whether the caller holds none of the mutexes under which a lock's
	// state is kept: whoever else has one gives it back while it is asked for.
	Unlocked func(lock any) bool
	// PretendShort has the session of a hold, of a named owner, held as one that asks for
	// a replica and whose latest renewal none has.
	PretendShort func(hold any)
	// RenewAround is a round of the watchdog that finds every session due, and in which
	// between happens after it has looked at them and before it sends anything.
	RenewAround func(client any, stated bool, between func())
	// AskAgainWhenLost is the next try of a call that was asking for the lock when a
	// message granted its session, after the lease of that grant has ended.
	AskAgainWhenLost func(ctx context.Context, lock any) error
	// AcquireAround is Acquire of a named owner, and between happens when the hold has been made
	// and its handle has yet to have it. ReleaseAround is Release, and between happens when the
	// handle has the hold no more and it has yet to end.
	AcquireAround func(ctx context.Context, lock any, owner string, between func()) (hold any, err error)
	ReleaseAround func(hold any, between func()) error
	// Asked is what a handle asks of Redis, or why every call on it fails.
	Asked func(lock any) (owner string, ttl, maxHold time.Duration, err error)
	// Timeouts are a client's own.
	Timeouts func(client any) (release, keep time.Duration)
)

// Of all clients of the process. None may be in use while these are changed.
var (
	// Spread draws how long a pause is.
	Spread *func(d time.Duration) time.Duration
	// Scripts are all that a client sends, by name.
	Scripts map[string]*script.Script
	// ReadAcquire decodes a reply of acquire to the given number of requests.
	ReadAcquire func(raw []any, requests int) ([]Answer, error)
)

// An Answer is one of those in a reply of acquire.
type Answer struct {
	Code      int64
	Ghost     string
	Remaining time.Duration
}
