package check

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// A fault is what the rig did to a worker, its link, or to servers.
type fault struct {
	kind     string
	t, until int64
	on       string
	lock     string
	worker   int // that it befell, or whose link; -1: it befell servers
	by       int64
}

func newFault(e *history.Event) *fault {
	f := &fault{kind: e.Fault, t: e.T, until: max(e.T, e.Until), on: e.On, lock: e.Lock, worker: -1, by: e.By}
	if w, ok := workerOf(e.On); ok {
		f.worker = w
	}
	return f
}

// workerOf is the worker that is named, or whose link is.
func workerOf(on string) (worker int, ok bool) {
	for _, part := range []string{"worker ", "link "} {
		if n, is := strings.CutPrefix(on, part); is {
			w, err := strconv.Atoi(n)
			return w, err == nil
		}
	}
	return 0, false
}

// befell says that the fault struck the servers of a lock.
func (f *fault) befell(lock string) bool {
	switch {
	case f.lock != "":
		return f.lock == lock
	case f.worker >= 0:
		return false
	}
	on := deployment(f.on)
	return on == "" || on == deployment(lock)
}

// losesData are the kinds after which a server may not know what it knew.
func (f *fault) losesData() bool {
	return f.kind == history.FlushAll || f.kind == history.RestartEmpty || f.kind == history.Failover
}

// allowsOverlap are the kinds that docs/guarantees.md names for two holders:
// lost data, failover, a clock that steps forward, ForceUnlock.
func (f *fault) allowsOverlap() bool {
	return f.losesData() || f.kind == history.ClockForward || f.kind == history.ForceUnlock
}

// disconnects are the kinds by which a waiter may miss its turn without being
// cut off for long: its inbox, or its entry, is gone for a moment.
func (f *fault) disconnects() bool {
	switch f.kind {
	case history.Cut, history.HalfOpen, history.Swallow, history.ClientKill, history.FlushAll, history.RestartEmpty,
		history.KillServer, history.Failover, history.Migrate, history.ClockForward, history.KillWorker, history.ForceUnlock, history.Maxmemory,
		history.NoSubscribe, history.DeadPool:
		return true
	}
	return false
}

// redial is for how long go-redis does not dial, at most, where as many dials in a row have
// failed as its pool has places: what can be dialled again is not reached yet.
const redial = time.Second

// answersFor is until when the fault may be the reason why somebody waits.
func (f *fault) answersFor(ttl int64) int64 {
	switch f.kind {
	case history.Cut, history.HalfOpen, history.KillServer, history.RestartEmpty, history.Failover:
		return f.until + ttl + int64(redial)
	}
	return f.until + ttl
}

// limit is until when two may hold for the fault. A clock that steps forward
// may be returning from a step back, in which leases lasted longer by that step.
func (f *fault) limit(ttl time.Duration) int64 {
	limit := f.until + int64(ttl)
	if f.kind == history.ClockForward {
		limit += f.by
	}
	return limit
}

// lasted is how long the fault went on.
func (f *fault) lasted() time.Duration { return time.Duration(f.until - f.t) }

// excuse returns the latest fault for which two may have held from one instant
// to another: it came before, and one ttl after its end is the limit.
func (s *story) excuse(from, to int64, ttl time.Duration) *fault {
	var best *fault
	for _, f := range s.faults {
		if f.allowsOverlap() && f.t <= from && to <= f.limit(ttl) && (best == nil || f.t > best.t) {
			best = f
		}
	}
	return best
}

// sortFaults brings faults into the order of their beginning.
func sortFaults(fs []*fault) {
	slices.SortFunc(fs, func(a, b *fault) int { return compare(a.t, b.t) })
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
