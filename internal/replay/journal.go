// Package replay sends releases again that a failover may have undone. The new primary lacks what the old one
// had not replicated. Nobody else would end those holds before their leases do. The package knows releases
// and servers, and no locks.
package replay

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// remembered bounds how many releases the journal keeps.
const remembered = 10_000

// AnyLease is longer than any lease. It stands for a lease that is no longer known.
const AnyLease = time.Duration(math.MaxInt64)

// Owing is the Doubt of a release whose grant no call knows any more. No copy of its acquire can be executed,
// and nobody has used the signal that it was given.
const Owing = -1

// A Release was sent. A failover may bring back what it ended.
type Release struct {
	Keys     key.Keys
	Nonce    wire.Nonce
	Owner    string
	Undone   bool          // the name must not rest after it
	Doubt    int64         // server ms until which a copy of its acquire may be executed; 0: none; negative: it owes a signal
	Until    clock.Instant // when its lease would have ended
	Answered clock.Instant // an acquire sent before this may have been answered that it holds
	Server   string        // server it was last sent to, as the redis client says; "": unknown
	Epoch    int64         // epoch of the journal when it was last sent
}

// Call returns the command that repeats the release. It does not name the permits of a semaphore, which only
// help to find the session sooner.
func (r *Release) Call(e *wire.Encoder) transport.Call {
	return e.Release(r.Keys, wire.Session{Nonce: r.Nonce.String(), Owner: r.Owner}, r.Doubt, AnyLease, r.Undone)
}

// Config is what a journal needs.
type Config struct {
	// Mu is the owner's mutex. It guards the journal too, so that the owner can move a release from its list
	// into the journal in one step. Mu is held while Wake and Busy are called.
	Mu    sync.Locker
	Now   func() clock.Instant
	Wake  func(at clock.Instant)                 // schedules Due for that instant, and for no other
	Spawn func(round func(context.Context)) bool // false: the client is closed
	// Busy reports whether a release is in progress. Its sender repeats it by itself.
	Busy    func(n wire.Nonce) bool
	Servers Servers
	Wire    *wire.Encoder
	Inbox   Inbox
	Settle  func(keys key.Keys) // continues a release that stopped at a long queue
	Log     *slog.Logger
}

// Servers are the servers that have the locks.
type Servers interface {
	OneServer() bool
	Server(key string) string
	DoAll(ctx context.Context, within time.Duration, calls []transport.Call) []transport.Result
}

// An Inbox is a subscription that can report its link's state and give the link up.
type Inbox interface {
	Up() bool
	Suspect()
}

// A Journal remembers the latest releases. It sends them again if another server may have replaced the one
// that answered.
type Journal struct {
	Config
	epoch atomic.Int64 // grows when another server may have taken over

	// Guarded by Mu:

	released  []Release // the latest, oldest first; a slice of store
	store     []Release
	trimmed   int  // how many were trimmed before released[0]
	elsewhere bool // the inbox was not on the server that runs scripts, as last reported
	on        bool // a round is scheduled or under way
	running   bool // a round is under way
	fails     int  // consecutive rounds with an error
}

// New returns an empty journal.
func New(c Config) *Journal { return &Journal{Config: c} }

// Epoch returns a number that grows when another server may have taken over. The Epoch of a release must be
// read before the release is sent.
func (j *Journal) Epoch() int64 { return j.epoch.Load() }

// Remembers reports whether the journal watches over releases, which needs a timer. It needs Mu.
func (j *Journal) Remembers() bool { return j.on || j.released != nil }

// Add remembers a release until the lease that it ended would have ended. It needs Mu.
func (j *Journal) Add(r Release, now clock.Instant) {
	if len(j.released) == cap(j.released) {
		j.grow()
	}
	j.released = append(j.released, r)
	j.trim(now)
	if !j.on {
		j.on = true
		j.Wake(now.Add(watchEvery))
	}
}

// grow makes space. It reuses the space of trimmed releases if that is enough, because every release needs
// some while Mu is held.
func (j *Journal) grow() {
	kept := len(j.released)
	if cap(j.store)-kept < kept {
		j.store = make([]Release, 2*kept+16)
	}
	copy(j.store, j.released)
	clear(j.store[kept:])
	j.released = j.store[:kept]
}

// trim drops releases that no longer matter, and the oldest ones if there are too many. It needs Mu.
func (j *Journal) trim(now clock.Instant) {
	for len(j.released) > 0 && (len(j.released) > remembered || now.Reached(j.released[0].Until)) {
		j.released = j.released[1:]
		j.trimmed++
	}
}

// Find returns the latest release of that nonce, or nil. It needs Mu.
func (j *Journal) Find(id wire.Nonce) *Release {
	for i := len(j.released) - 1; i >= 0; i-- { // the latest is the likeliest
		if j.released[i].Nonce == id {
			return &j.released[i]
		}
	}
	return nil
}

// Suspect makes all remembered releases due again: another server may have taken over.
func (j *Journal) Suspect(now clock.Instant) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.epoch.Add(1)
	j.trim(now)
	if len(j.released) > 0 {
		j.on = true
		j.Wake(now)
	}
}
