// Package replay sends releases again that a failover may have undone: the new primary
// lacks what the old one had not replicated, and nobody else would end those holds
// before their leases do. It knows releases and servers, and no locks.
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

// remembered bounds how many releases are kept to be sent again.
const remembered = 10_000

// AnyLease is longer than any lease: one that is not known any more may have been long.
const AnyLease = time.Duration(math.MaxInt64)

// Owing is the doubt of a release of what nobody here knows any more: no copy of its acquire
// can act, and a signal that it was given has been used by nobody.
const Owing = -1

// A Release has been sent, and what it ended may come back.
type Release struct {
	Keys     key.Keys
	Nonce    wire.Nonce
	Owner    string
	Undone   bool          // the name is not to rest after it
	Doubt    int64         // server ms until which a copy of its acquire may act; 0: none can; negative: it owes a signal
	Until    clock.Instant // when its lease would have ended
	Answered clock.Instant // what was asked before then may have been told that it holds
	Server   string        // that it was last sent to, by the redis client's word; "": not known
	Epoch    int64         // of the journal when it was last sent
}

// Call is the release, as it is sent again. It names no permits of a semaphore, by
// which the session would be found sooner.
func (r *Release) Call(e *wire.Encoder) transport.Call {
	return e.Release(r.Keys, wire.Session{Nonce: r.Nonce.String(), Owner: r.Owner}, r.Doubt, AnyLease, r.Undone)
}

// Config is what a journal works by.
type Config struct {
	// Mu is its owner's mutex, which guards the journal too: who forgets that a release is
	// under way remembers it in one step. It is held while Wake and Busy are called.
	Mu    sync.Locker
	Now   func() clock.Instant
	Wake  func(at clock.Instant)                 // has Due called then, and at no other time
	Spawn func(round func(context.Context)) bool // false: it is too late
	// Busy says that a release is under way, which whoever sent it repeats.
	Busy    func(n wire.Nonce) bool
	Servers Servers
	Wire    *wire.Encoder
	Inbox   Inbox
	Settle  func(keys key.Keys) // goes on where a release stopped at a long queue
	Log     *slog.Logger
}

// Servers are who has the locks.
type Servers interface {
	OneServer() bool
	Server(key string) string
	DoAll(ctx context.Context, within time.Duration, calls []transport.Call) []transport.Result
}

// An Inbox says of its link whether it is up, and gives it up.
type Inbox interface {
	Up() bool
	Suspect()
}

// A Journal remembers the releases of late, and sends them again where the server that
// answered may have become another one.
type Journal struct {
	Config
	epoch atomic.Int64 // grows when the server may have become another one

	// Guarded by Mu:

	released  []Release // the latest, oldest first; a part of store
	store     []Release
	trimmed   int  // how many were before those
	elsewhere bool // the inbox is not on the server that runs scripts, by its last word
	on        bool // a round is scheduled or under way
	running   bool // a round is under way
	fails     int  // rounds that met an error, since the last that did not
}

// New returns a journal that remembers nothing.
func New(c Config) *Journal { return &Journal{Config: c} }

// Epoch changes when the server may have become another one: a release has that from
// before it is sent.
func (j *Journal) Epoch() int64 { return j.epoch.Load() }

// Remembers says that the journal looks after releases, which takes a timer. It needs Mu.
func (j *Journal) Remembers() bool { return j.on || j.released != nil }

// Add remembers a release for as long as the lease that it has ended. It needs Mu.
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

// grow makes place, in that of what was trimmed where that is enough: each release needs
// some, with Mu held.
func (j *Journal) grow() {
	kept := len(j.released)
	if cap(j.store)-kept < kept {
		j.store = make([]Release, 2*kept+16)
	}
	copy(j.store, j.released)
	clear(j.store[kept:])
	j.released = j.store[:kept]
}

// trim forgets what is over, and the oldest of too many. It needs Mu.
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

// Suspect makes all that is remembered due again: the server may have become another one.
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
