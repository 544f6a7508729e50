package relock

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Unlocked says whether the caller holds none of the mutexes under which l's
// state is kept: whoever else has one gives it back while it is asked for.
func (l *Lock) Unlocked() bool {
	if !comesFree(&l.mu) {
		return false
	}
	l.mu.Unlock()
	if !comesFree(&l.c.mu) {
		return false
	}
	r := l.c.rooms[l.kind][l.hash]
	l.c.mu.Unlock()
	if r == nil {
		return true
	}
	if !comesFree(&r.mu) {
		return false
	}
	r.mu.Unlock()
	return true
}

// comesFree locks mu, unless that takes for ever.
func comesFree(mu *sync.Mutex) bool {
	for range 1_000_000 {
		if mu.TryLock() {
			return true
		}
		runtime.Gosched()
	}
	return false
}

// Remembers says whether c looks after releases, which takes a timer.
func (c *Client) Remembers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch.on || c.watch.released != nil
}

// PretendShort has h's session, of a named owner, held as one that asks for a replica and
// whose latest renewal none has.
func (h *Hold) PretendShort() {
	h.session.room.mu.Lock()
	defer h.session.room.mu.Unlock()
	h.session.lost, h.session.joining = ErrReplicas, replicas{n: 1, timeout: time.Second}
}

// RenewAround is a round of the watchdog that finds every session due, and in which
// between happens after it has looked at them and before it sends anything.
func (c *Client) RenewAround(between func()) {
	d := dues{c: c, now: c.clock.Now()}
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range all {
		run(d.add(s))
	}
	between()
	d.send()
}
