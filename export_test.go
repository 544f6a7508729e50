package relock

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/room"
)

// What the tests of this package see, and nobody else: the suites in test/ have
// internal/seam.

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

// PretendShort has h's session, of a named owner, held as one that asks for a replica and
// whose latest renewal none has.
func (h *Hold) PretendShort() {
	k := h.keeper()
	at := k.begin()
	defer k.end(&at)
	h.Session.Unrenewed(ErrReplicas, &at)
	h.Session.Ledger.Wish(&ledger.Wish{Replicas: 1, Timeout: time.Second})
}

// RenewAround is a round of the watchdog that finds every session due, and in which
// between happens after it has looked at them and before it sends anything.
func (c *Client) RenewAround(between func()) {
	d := dues{c: c, now: c.clock.Now()}
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range all {
		runAll(d.add(s))
	}
	between()
	d.send()
}

// AskAgainWhenLost is the next try of a call that was asking for l when a message
// granted its session, after the lease of that grant has ended.
func (l *Lock) AskAgainWhenLost(ctx context.Context) error {
	k := l.c.enter(l)
	defer l.c.leave(k)
	at := k.begin()
	a := k.newEntry("", l, false)
	a.GiveUp(&at)
	k.end(&at)
	w := &waiting{ctx: ctx, lock: l, keeper: k, began: l.c.clock.Now()}
	_, err := w.contend(a, room.PlaceNew)
	return err
}

// Handle is the list of a handle's holds, for tests.
type Handle struct{ pile pile }

func (p *Handle) Add(h *Hold)         { p.pile.add(h) }
func (p *Handle) Remove(h *Hold) bool { return p.pile.remove(h) }
func (p *Handle) NewestOldest() [2]*Hold {
	return [2]*Hold{p.pile.newest, p.pile.last()}
}

func (p *Handle) All() (all []*Hold) {
	for h := range p.pile.all() {
		all = append(all, h)
	}
	return all
}

// Asked is what l asks of Redis, or why every call on it fails.
func (l *Lock) Asked() (owner string, ttl, maxHold time.Duration, err error) {
	return l.terms.owner, l.terms.TTL, l.terms.MaxHold, l.err
}

// Timeouts are the client's own.
func (c *Client) Timeouts() (release, keep time.Duration) {
	return c.cfg.releaseTimeout, c.cfg.tokenKeep
}
