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
	// watchEvery is how often a journal with releases asks their servers whether they still are in charge.
	watchEvery = 2 * time.Second
	// askWithin bounds the wait for such an answer, and for the answers to repeated releases. A server that
	// hangs must not keep the releases from its successor.
	askWithin = time.Second
	// layoutGrace gives a Cluster client time to read a layout that an answer has announced.
	layoutGrace = 300 * time.Millisecond
	// batchSize is how many releases one pipeline has.
	batchSize = 128
)

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

// round sends again what is due, both before and after it asks the servers.
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
	place int // index among all releases ever remembered
}

// repeats returns releases that still matter, sorted by lock, and the epoch. With due it returns those that
// may be due, otherwise at least one for each server.
func (j *Journal) repeats(due bool) (all []repeat, epoch int64) {
	one := j.Servers.OneServer() // then a release is due only if the epoch has changed
	j.Mu.Lock()
	now := j.Now()
	for i, n := range j.released {
		settled := due && one && n.Epoch == j.Epoch()
		if !settled && !j.Busy(n.Nonce) && !now.Reached(n.Until) {
			all = append(all, repeat{n, j.trimmed + i})
			if one && !due {
				break // there is only one server
			}
		}
	}
	epoch = j.Epoch()
	j.Mu.Unlock() // sorting ten thousand takes 7 ms, and every acquisition and release needs Mu
	// Releases of one instant are remembered in any order. Sorted, a test that repeats a schedule sends them
	// in the same order.
	slices.SortStableFunc(all, func(a, b repeat) int { return strings.Compare(a.Keys.Hash, b.Keys.Hash) })
	return all, epoch
}

// sendAgain repeats the releases whose server may have been replaced. It reports whether none is left.
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

// repeated records to which server a release was sent again.
func (j *Journal) repeated(n repeat) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if i := n.place - j.trimmed; i >= 0 {
		j.released[i].Server, j.released[i].Epoch = n.Server, n.Epoch
	}
}

// askServers asks each server that has releases whether it still is in charge. In a Cluster the answer makes
// the redis client read a changed layout, and the journal sees that the lock has another server. Elsewhere
// one server has everything. If the server that answers does not have the inbox, it has taken over. ok says
// that all have answered.
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

// answeredWhere processes the answer of a server that has all locks.
func (j *Journal) answeredWhere(raw []any) {
	where, err := wire.DecodeWhere(raw)
	if err != nil || where == wire.WhereUnknown || !j.Inbox.Up() {
		return // without a link a new one is being made, and reports the same
	}
	j.Mu.Lock()
	moved := where == wire.WhereNot && !j.elsewhere
	j.elsewhere = where == wire.WhereNot
	if moved {
		j.epoch.Add(1)
	}
	j.Mu.Unlock()
	if moved {
		// Only once: if the inbox is elsewhere again, the redis client is built that way.
		j.Log.Warn("the inbox is not on the server that runs the scripts, connecting again")
		j.Inbox.Suspect()
	}
}
