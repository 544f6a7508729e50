package relock

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// This file sends releases again that a failover may have undone: the new primary
// lacks what the old one had not replicated, and nobody else would end those
// holds before their leases do.

const (
	// remembered bounds how many releases are kept to be sent again.
	remembered = 10_000
	// watchEvery is how often a client that remembers any asks the servers
	// concerned whether they are still the ones that have them.
	watchEvery = 2 * time.Second
	// askWithin bounds the wait for such an answer, and for that of releases
	// sent again: a server that hangs must not keep them from its successor.
	askWithin = time.Second
	// layoutGrace is for a Cluster client to read the layout that an answer has
	// sent it for.
	layoutGrace = 300 * time.Millisecond
)

// A releasedNonce may come back.
type releasedNonce struct {
	keys     key.Keys
	nonce    wire.Nonce
	owner    string
	undone   bool    // the name is not to rest after it
	doubt    int64   // server ms until which a copy of its acquire may act; 0: none can
	until    instant // when its lease would have ended
	answered instant // what was asked before then may have been told that it holds
	server   string  // that it was last sent to, by the redis client's word; "": not known
	epoch    int64   // of the client when it was last sent
}

// session is what the release names. Of a semaphore it has no permits, by which it
// would be found sooner.
func (n *releasedNonce) session() wire.Session {
	return wire.Session{Nonce: n.nonce.String(), Owner: n.owner}
}

// A releaseWatch repeats releases. Client.mu guards it.
type releaseWatch struct {
	released  []releasedNonce // the latest, oldest first; a part of store
	store     []releasedNonce
	trimmed   int          // how many were before those
	epoch     atomic.Int64 // grows when the server may have become another one
	elsewhere bool         // the inbox is not on the server that runs scripts, by its last word
	on        bool         // a round is scheduled or under way
	running   bool         // a round is under way
	fails     int          // rounds that met an error, since the last that did not
}

// forAll is longer than any lease: one that is not known any more may have been long.
const forAll = time.Duration(math.MaxInt64)

// forget forgets an acquisition whose release has been sent, answered or not, and
// remembers that for a lease, in case a failover undoes it.
func (c *Client) forget(a *acquisition, n releasedNonce, answered bool) {
	now := c.clock.Now()
	if answered {
		n.answered = now
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unregisterLocked(a)
	w := &c.watch
	w.add(n)
	w.trim(now)
	if !w.on {
		w.on = true
		c.watchdog.Set(&c.watchTask, now.Add(watchEvery))
	}
}

func (w *releaseWatch) trim(now instant) {
	for len(w.released) > 0 && (len(w.released) > remembered || now.Reached(w.released[0].until)) {
		w.released = w.released[1:]
		w.trimmed++
	}
}

// suspectServer makes all that is remembered due again: the server may have become
// another one. It needs c.mu.
func (c *Client) suspectServer(now instant) {
	w := &c.watch
	w.epoch.Add(1)
	c.labels.Doubt(now)
	w.trim(now)
	if len(w.released) > 0 {
		w.on = true
		c.watchdog.Set(&c.watchTask, now)
	}
}

// watchDue begins a round, on the schedule's goroutine.
func (c *Client) watchDue() {
	c.mu.Lock()
	begin := !c.watch.running
	c.watch.running = true
	c.mu.Unlock()
	if begin { // else the one under way looks whether anything has changed
		c.spawn(c.watchReleases)
	}
}

// watchReleases is a round: what is due is sent again, before and after the
// servers have been asked.
func (c *Client) watchReleases(ctx context.Context) {
	c.mu.Lock()
	epoch := c.watch.epoch.Load()
	c.mu.Unlock()
	ok := c.releaseAgain(ctx)
	ok = c.askServers(ctx) && ok
	ok = c.releaseAgain(ctx) && ok

	c.mu.Lock()
	defer c.mu.Unlock()
	w, now := &c.watch, c.clock.Now()
	w.trim(now)
	w.running, w.on = false, len(w.released) > 0
	if !w.on {
		w.released, w.store, w.fails = nil, nil, 0
		return
	}
	next := now.Add(watchEvery)
	switch {
	case !ok:
		w.fails++
		next = now.Add(transport.Backoff(w.fails + 4)) // from 160 ms
	case w.epoch.Load() != epoch:
		next = now
	default:
		w.fails = 0
	}
	c.watchdog.Set(&c.watchTask, next)
}

// A repeat is a release that may have to be sent again.
type repeat struct {
	releasedNonce
	place int // among all that were ever remembered
}

// repeats returns the releases that still matter, by lock, and the epoch: those
// that may be due, or at least one of each server. Sessions that are being released
// have somebody who repeats that.
func (c *Client) repeats(due bool) (all []repeat, epoch int64) {
	one := c.transport.OneServer() // then the epoch alone says what is due
	c.mu.Lock()
	now := c.clock.Now()
	for i, n := range c.watch.released {
		settled := due && one && n.epoch == c.watch.epoch.Load()
		if !settled && c.sessions[n.nonce] == nil && !now.Reached(n.until) {
			all = append(all, repeat{n, c.watch.trimmed + i})
			if one && !due {
				break // its server is everybody's
			}
		}
	}
	epoch = c.watch.epoch.Load()
	c.mu.Unlock() // every acquisition and release wants it: ten thousand take 7 ms to sort
	// Those of one instant come in any order; a schedule that is repeated has one.
	slices.SortStableFunc(all, func(a, b repeat) int { return strings.Compare(a.keys.Hash, b.keys.Hash) })
	return all, epoch
}

// releaseAgain repeats the releases whose server may have become another one
// since, and reports whether none is left to be repeated.
func (c *Client) releaseAgain(ctx context.Context) (ok bool) {
	all, epoch := c.repeats(true)
	parts := make(map[string][]repeat)
	var servers []string
	for _, n := range all {
		server := c.transport.Server(n.keys.Hash)
		if n.epoch == epoch && n.server == server {
			continue
		}
		n.epoch, n.server = epoch, server
		if parts[server] == nil {
			servers = append(servers, server)
		}
		parts[server] = append(parts[server], n)
	}
	var wg sync.WaitGroup
	var failed atomic.Bool
	for _, server := range servers {
		wg.Go(func() { // a server that hangs holds up no other's
			for batch := range slices.Chunk(parts[server], batchSize) {
				if !c.releaseBatch(ctx, batch) {
					failed.Store(true)
					return
				}
			}
		})
	}
	wg.Wait()
	return !failed.Load()
}

func (c *Client) releaseBatch(ctx context.Context, batch []repeat) (ok bool) {
	calls := make([]transport.Call, len(batch))
	for i, n := range batch {
		calls[i] = c.wire.Release(n.keys, n.session(), n.doubt, forAll, n.undone)
	}
	ok = true
	for i, result := range c.transport.DoAll(ctx, askWithin, calls) {
		n, err := batch[i], result.Err
		more := false
		if err == nil {
			_, _, more, err = wire.DecodeRelease(result.Reply)
		}
		if err != nil {
			c.cfg.log.Warn("releasing again failed", slog.String("lock", n.keys.Hash), slog.Any("err", err))
		}
		if more {
			c.settle(n.keys)
		}
		if result.Err != nil && !transport.Hopeless(result.Err) {
			ok = false
			continue
		}
		c.repeated(n)
	}
	return ok
}

// repeated notes to which server a release was sent again.
func (c *Client) repeated(n repeat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := n.place - c.watch.trimmed; i >= 0 {
		c.watch.released[i].server, c.watch.released[i].epoch = n.server, n.epoch
	}
}

// askServers asks each server that has releases whether it still is the one. A
// Cluster client learns by that of a layout that has changed, and so do we: its
// lock is another server's then. Elsewhere one server has everything, and who
// answers without having the inbox has taken over. ok: all have answered.
func (c *Client) askServers(ctx context.Context) (ok bool) {
	all, _ := c.repeats(false)
	var calls []transport.Call
	asked, layout := map[string]bool{}, false
	for _, n := range all {
		if server := c.transport.Server(n.keys.Hash); !asked[server] {
			asked[server] = true
			layout = layout || server != ""
			calls = append(calls, c.wire.Where(n.keys))
		}
	}
	ok = true
	for _, r := range c.transport.DoAll(ctx, askWithin, calls) {
		if r.Err == nil {
			c.answeredWhere(r.Reply)
		}
		ok = ok && (r.Err == nil || transport.Hopeless(r.Err))
	}
	if layout {
		transport.Pause(ctx, nil, layoutGrace)
	}
	return ok
}

// answeredWhere takes the answer of a server that has all locks.
func (c *Client) answeredWhere(raw []any) {
	where, err := wire.DecodeWhere(raw)
	if err != nil || where == wire.WhereUnknown || !c.inbox.Up() {
		return // a new link is to come, if there is none, and says the same
	}
	c.mu.Lock()
	w := &c.watch
	moved := where == wire.WhereNot && !w.elsewhere
	w.elsewhere = where == wire.WhereNot
	if moved {
		w.epoch.Add(1)
	}
	c.mu.Unlock()
	if moved {
		// Once: an inbox that is elsewhere again is so by the design of the redis client.
		c.cfg.log.Warn("the inbox is not on the server that runs the scripts, connecting again")
		c.inbox.Suspect()
	}
}
