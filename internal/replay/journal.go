// Package replay sends releases again that a failover may have undone. The new primary lacks the writes that the old
// one had not replicated, so it may still have holds that were released. Without a second release they would last until
// their leases end. The package knows releases and servers, but no locks.
package replay

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// remembered bounds how many releases the journal keeps.
const remembered = 10_000

const (
	// watchEvery is how often a journal with releases asks their servers whether they still serve the locks.
	watchEvery = 2 * time.Second
	// askWithin bounds the wait for such an answer, and for the answers to repeated releases. A server that hangs must not
	// delay the releases to its successor.
	askWithin = time.Second
	// layoutGrace is how long a round waits while the Cluster client loads its slots again, as after a redirection.
	layoutGrace = 300 * time.Millisecond
	// batchSize is how many releases one pipeline has.
	batchSize = 128
)

// AnyLease is longer than any lease. It stands for a lease that is no longer known.
const AnyLease = time.Duration(math.MaxInt64)

// OwesSignal is the Doubt of a release of a grant that no call knows any more. It says that no late copy of the acquire
// can run, and that a signal given to the grant must go to another waiter.
const OwesSignal = -1

// A Release is a release that was sent. A failover may bring back the hold or the queue entry that it ended.
type Release struct {
	Keys     key.Keys
	Nonce    wire.Nonce
	Owner    string
	Undone   bool          // the name must not rest after it: no call has had the hold, or the hold does not count
	Doubt    int64         // server ms until which a late copy of its acquire may run; 0: none; negative: it owes a signal
	Until    clock.Instant // when its lease would have ended
	Answered clock.Instant // an answer to an acquire sent before this may name the grant, and says nothing new
	Server   string        // name of the server it was last sent to; "": unknown, or there is only one
	Epoch    int64         // epoch of the journal when it was last sent
}

// A Journal remembers the latest releases. It sends them again if their server may have been replaced.
type Journal struct {
	Config
	// Epoch grows when another server may have taken over. Only the journal changes it. A release's Epoch must be read
	// before the release is sent.
	Epoch atomic.Int64

	// Guarded by Mu:

	released  []Release // the latest releases, oldest first; a slice of store
	store     []Release
	trimmed   int  // how many releases were dropped before released[0]
	elsewhere bool // the inbox was not on the server that runs scripts, as last reported
	running   bool // a round is under way
	fails     int  // consecutive rounds with an error
}

// Add remembers a release until the lease that it ended would have ended. It needs Mu.
func (j *Journal) Add(r Release, now clock.Instant) {
	if len(j.released) == 0 { // otherwise a round is scheduled or under way
		j.Wake(now.Add(watchEvery))
	}
	if len(j.released) == cap(j.released) {
		j.grow()
	}
	j.released = append(j.released, r)
	j.trim(now)
}

// grow makes space for another release. It reuses the space of dropped ones if it can, because Mu is held.
func (j *Journal) grow() {
	kept := len(j.released)
	if cap(j.store)-kept < kept {
		j.store = make([]Release, 2*kept+16)
	}
	copy(j.store, j.released)
	clear(j.store[kept:])
	j.released = j.store[:kept]
}

// trim drops the oldest releases, as long as their leases would have ended or there are too many. It needs Mu.
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

// Suspect makes all remembered releases due again, because another server may have taken over.
func (j *Journal) Suspect(now clock.Instant) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.Epoch.Add(1)
	j.trim(now)
	if len(j.released) > 0 {
		j.Wake(now)
	}
}

// Due starts a round unless one is running. It does not wait.
func (j *Journal) Due() {
	j.Mu.Lock()
	begin := !j.running
	j.running = true
	j.Mu.Unlock()
	if begin { // otherwise the running round notices what has changed
		j.Spawn(j.round)
	}
}

// round sends due releases again, asks the servers, and sends what is due because of their answers.
func (j *Journal) round(ctx context.Context) {
	epoch := j.Epoch.Load()
	ok := j.sendAgain(ctx)
	ok = j.askServers(ctx) && ok
	ok = j.sendAgain(ctx) && ok

	j.Mu.Lock()
	defer j.Mu.Unlock()
	now := j.Now()
	j.trim(now)
	j.running = false
	if len(j.released) == 0 {
		j.released, j.store, j.fails = nil, nil, 0
		return
	}
	next := now.Add(watchEvery)
	switch {
	case !ok:
		j.fails++
		next = now.Add(transport.Backoff(j.fails + 4)) // from 160 ms
	case j.Epoch.Load() != epoch:
		next = now
	default:
		j.fails = 0
	}
	j.Wake(next)
}

// repeats returns releases that the journal may have to send again, sorted by lock, and the epoch. With due it leaves
// out those that are certainly not due. Otherwise it returns at least one for each server.
func (j *Journal) repeats(due bool) (all []repeat, epoch int64) {
	one := j.Servers.OneServer() // then a release is due only if the epoch has changed
	j.Mu.Lock()
	now := j.Now()
	for i, n := range j.released {
		settled := due && one && n.Epoch == j.Epoch.Load()
		if !settled && !j.Busy(n.Nonce) && !now.Reached(n.Until) {
			all = append(all, repeat{n, j.trimmed + i})
			if one && !due {
				break // there is only one server
			}
		}
	}
	epoch = j.Epoch.Load()
	j.Mu.Unlock() // sorting ten thousand takes 7 ms, and every acquisition and release needs Mu
	// Releases of one instant are remembered in random order. They are sorted so that a test that repeats a schedule sends
	// them in the same order.
	slices.SortStableFunc(all, func(a, b repeat) int { return strings.Compare(a.Keys.Hash, b.Keys.Hash) })
	return all, epoch
}

// sendAgain repeats the releases whose server may have been replaced. ok says that all of them were answered.
func (j *Journal) sendAgain(ctx context.Context) (ok bool) {
	all, epoch := j.repeats(true)
	parts := make(map[string][]repeat)
	var servers []string
	for _, n := range all {
		server := j.Servers.Server(n.Keys.Hash)
		if n.Epoch == epoch && n.Server == server {
			continue
		}
		n.Epoch, n.Server = epoch, server
		if parts[server] == nil {
			servers = append(servers, server)
		}
		parts[server] = append(parts[server], n)
	}
	var wg sync.WaitGroup
	var failed atomic.Bool
	for _, server := range servers {
		wg.Go(func() { // on its own goroutine: a server that hangs must not delay the others
			for batch := range slices.Chunk(parts[server], batchSize) {
				if !j.sendBatch(ctx, batch) {
					failed.Store(true)
					return
				}
			}
		})
	}
	wg.Wait()
	return !failed.Load()
}

// sendBatch sends releases again in one pipeline. ok is false if any of them went unanswered.
func (j *Journal) sendBatch(ctx context.Context, batch []repeat) (ok bool) {
	calls := make([]transport.Call, len(batch))
	for i, n := range batch {
		calls[i] = n.Call(j.Wire)
	}
	ok = true
	for i, result := range j.Servers.DoAll(ctx, askWithin, calls) {
		n, err := batch[i], result.Err
		more := false
		if err == nil {
			_, _, more, err = wire.DecodeRelease(result.Reply)
		}
		if err != nil {
			j.Log.Warn("releasing again failed", slog.String("lock", key.Name(j.Prefix, n.Keys.Hash)), slog.Any("err", err))
		}
		if more {
			j.Settle(n.Keys)
		}
		if result.Err != nil && !transport.Hopeless(result.Err) {
			ok = false
			continue
		}
		j.Mu.Lock()
		if at := n.place - j.trimmed; at >= 0 { // the journal still has it
			j.released[at].Server, j.released[at].Epoch = n.Server, n.Epoch
		}
		j.Mu.Unlock()
	}
	return ok
}

// askServers asks the servers of the remembered releases whether they still serve the locks. In a Cluster a redirection
// makes the redis client load the new layout, and sendAgain then sees that the lock has another server. Outside of a
// Cluster one server has all locks. If the server that answers does not have the client's inbox, it has taken over. ok
// says that all servers have answered.
func (j *Journal) askServers(ctx context.Context) (ok bool) {
	all, _ := j.repeats(false)
	var calls []transport.Call
	asked, layout := map[string]bool{}, false
	for _, n := range all {
		if server := j.Servers.Server(n.Keys.Hash); !asked[server] {
			asked[server] = true
			layout = layout || server != ""
			calls = append(calls, j.Wire.Where(n.Keys))
		}
	}
	ok = true
	for _, r := range j.Servers.DoAll(ctx, askWithin, calls) {
		if r.Err == nil {
			j.answeredWhere(r.Reply)
		}
		ok = ok && (r.Err == nil || transport.Hopeless(r.Err))
	}
	if layout {
		ending.Pause(ctx, nil, layoutGrace)
	}
	return ok
}

// answeredWhere processes an answer to the question of askServers. A node of a Cluster never answers WhereElsewhere.
func (j *Journal) answeredWhere(raw []any) {
	where, err := wire.DecodeWhere(raw)
	if err != nil || where == wire.WhereUnknown || !j.Inbox.Up() {
		return // without a link a new one is being made, after which Journal.Suspect is called
	}
	j.Mu.Lock()
	moved := where == wire.WhereElsewhere && !j.elsewhere
	j.elsewhere = where == wire.WhereElsewhere
	if moved {
		j.Epoch.Add(1)
	}
	j.Mu.Unlock()
	if moved {
		// Not again if the next link is elsewhere too: then the redis client is set up to subscribe on another server.
		j.Log.Warn("the inbox is not on the server that runs the scripts, connecting again")
		j.Inbox.Suspect()
	}
}

// A repeat is a release that may have to be sent again.
type repeat struct {
	Release
	place int // index among all releases ever remembered
}

// Call returns the command that repeats the release. It does not name a semaphore's permits, which would only help to
// find the session sooner.
func (r *Release) Call(e *wire.Encoder) transport.Call {
	return e.Release(r.Keys, wire.Session{Nonce: r.Nonce.String(), Owner: r.Owner}, r.Doubt, AnyLease, r.Undone)
}

// Config is what a journal needs.
type Config struct {
	// Mu is the owner's mutex. It guards the journal too, so that the owner can move a release from its own records into
	// the journal in one step. Mu is held while Wake and Busy are called.
	Mu     sync.Locker
	Prefix string // of all keys
	Now    func() clock.Instant
	Wake   func(at clock.Instant)                 // schedules Due for that instant, and no longer for the one set before
	Spawn  func(round func(context.Context)) bool // false: the client is closed
	// Busy reports whether a release of that nonce is still in progress. Then its sender repeats it, and not the journal.
	Busy    func(n wire.Nonce) bool
	Servers Servers
	Wire    *wire.Encoder
	Inbox   Inbox
	Settle  func(keys key.Keys) // goes on where a release stopped because the queue was too long
	Log     *slog.Logger
}

// Servers sends calls to the servers that have the locks.
type Servers interface {
	OneServer() bool          // one server has all locks
	Server(key string) string // the name of the one that has the key; "": not known, or there is only one
	DoAll(ctx context.Context, within time.Duration, calls []transport.Call) []transport.Result
}

// An Inbox is a subscription that can report its link's state and give the link up.
type Inbox interface {
	Up() bool
	Suspect()
}
