package replay

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

const (
	// watchEvery is how often a journal that remembers any release asks the servers
	// concerned whether they are still the ones that have them.
	watchEvery = 2 * time.Second
	// askWithin bounds the wait for such an answer, and for that of releases
	// sent again: a server that hangs must not keep them from its successor.
	askWithin = time.Second
	// layoutGrace is for a Cluster client to read the layout that an answer has
	// sent it for.
	layoutGrace = 300 * time.Millisecond
	// batchSize is how many releases go out in one pipeline.
	batchSize = 128
)

// Due begins a round. It does not wait.
func (j *Journal) Due() {
	j.Mu.Lock()
	begin := !j.running
	j.running = true
	j.Mu.Unlock()
	if begin { // else the one under way looks whether anything has changed
		j.Spawn(j.round)
	}
}

// round sends again what is due, before and after the servers have been asked.
func (j *Journal) round(ctx context.Context) {
	epoch := j.Epoch()
	ok := j.sendAgain(ctx)
	ok = j.askServers(ctx) && ok
	ok = j.sendAgain(ctx) && ok

	j.Mu.Lock()
	defer j.Mu.Unlock()
	now := j.Now()
	j.trim(now)
	j.running, j.on = false, len(j.released) > 0
	if !j.on {
		j.released, j.store, j.fails = nil, nil, 0
		return
	}
	next := now.Add(watchEvery)
	switch {
	case !ok:
		j.fails++
		next = now.Add(transport.Backoff(j.fails + 4)) // from 160 ms
	case j.Epoch() != epoch:
		next = now
	default:
		j.fails = 0
	}
	j.Wake(next)
}

// A repeat is a release that may have to be sent again.
type repeat struct {
	Release
	place int // among all that were ever remembered
}

// repeats returns the releases that still matter, by lock, and the epoch: those
// that may be due, or at least one of each server.
func (j *Journal) repeats(due bool) (all []repeat, epoch int64) {
	one := j.Servers.OneServer() // then the epoch alone says what is due
	j.Mu.Lock()
	now := j.Now()
	for i, n := range j.released {
		settled := due && one && n.Epoch == j.Epoch()
		if !settled && !j.Busy(n.Nonce) && !now.Reached(n.Until) {
			all = append(all, repeat{n, j.trimmed + i})
			if one && !due {
				break // its server is everybody's
			}
		}
	}
	epoch = j.Epoch()
	j.Mu.Unlock() // every acquisition and release wants it: ten thousand take 7 ms to sort
	// Those of one instant come in any order; a schedule that is repeated has one.
	slices.SortStableFunc(all, func(a, b repeat) int { return strings.Compare(a.Keys.Hash, b.Keys.Hash) })
	return all, epoch
}

// sendAgain repeats the releases whose server may have become another one
// since, and reports whether none is left to be repeated.
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
		wg.Go(func() { // a server that hangs holds up no other's
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
			j.Log.Warn("releasing again failed", slog.String("lock", n.Keys.Hash), slog.Any("err", err))
		}
		if more {
			j.Settle(n.Keys)
		}
		if result.Err != nil && !transport.Hopeless(result.Err) {
			ok = false
			continue
		}
		j.repeated(n)
	}
	return ok
}

// repeated notes to which server a release was sent again.
func (j *Journal) repeated(n repeat) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if i := n.place - j.trimmed; i >= 0 {
		j.released[i].Server, j.released[i].Epoch = n.Server, n.Epoch
	}
}

// askServers asks each server that has releases whether it still is the one. A
// Cluster client learns by that of a layout that has changed, and so do we: its
// lock is another server's then. Elsewhere one server has everything, and who
// answers without having the inbox has taken over. ok: all have answered.
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
		transport.Pause(ctx, nil, layoutGrace)
	}
	return ok
}

// answeredWhere takes the answer of a server that has all locks.
func (j *Journal) answeredWhere(raw []any) {
	where, err := wire.DecodeWhere(raw)
	if err != nil || where == wire.WhereUnknown || !j.Inbox.Up() {
		return // a new link is to come, if there is none, and says the same
	}
	j.Mu.Lock()
	moved := where == wire.WhereNot && !j.elsewhere
	j.elsewhere = where == wire.WhereNot
	if moved {
		j.epoch.Add(1)
	}
	j.Mu.Unlock()
	if moved {
		// Once: an inbox that is elsewhere again is so by the design of the redis client.
		j.Log.Warn("the inbox is not on the server that runs the scripts, connecting again")
		j.Inbox.Suspect()
	}
}
