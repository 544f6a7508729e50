package relock

import (
	"maps"
	"slices"
	"sync"

	"github.com/relock-go/relock/internal/replay"
	"github.com/relock-go/relock/internal/shutdown"
	"github.com/relock-go/relock/internal/wire"
)

// A registry knows what a client has in use: the keeper of each lock, and each acquisition by its nonce. A message
// from Redis names a nonce, so this is where its waiter is found.
type registry struct {
	mu           sync.Mutex                    // guards the following fields and journal; taken after a keeper's mu
	keepers      map[string]map[string]*keeper // by kind, then by the lock's key: a key of both takes more memory
	acquisitions map[wire.Nonce]*acquisition   // those that wait, hold, or are being released
	heard        map[*keeper]func()            // what ends the sharded subscription that Sticky needs

	journal *replay.Journal   // what was released lately
	tracker *shutdown.Tracker // waits at the end of the client until no acquisition is left
}

// enter returns the keeper of a lock, and makes it if nobody uses the lock. The caller leaves it again.
func (r *registry) enter(l *Lock) *keeper {
	r.mu.Lock()
	defer r.mu.Unlock()
	keepers := r.keepers[l.kind]
	if keepers == nil {
		keepers = make(map[string]*keeper)
		r.keepers[l.kind] = keepers
	}
	k := keepers[l.hash]
	if k == nil {
		k = newKeeper(l)
		keepers[l.hash] = k
	}
	k.refs++
	if l.terms.Sticky > 0 && k.listener.Sharded() && r.heard[k] == nil { // that a kept grant is wanted comes by message
		r.heard[k] = k.listener.Join()
	}
	return k
}

// find is enter for a call that only looks at its handle. It makes no keeper: without a keeper the handle has no holds,
// and find returns nil.
func (r *registry) find(l *Lock) *keeper {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keepers[l.kind][l.hash]
	if k != nil {
		k.refs++
	}
	return k
}

// use counts one more use of a keeper that is in use: a lost hold keeps the keeper until its Unlock.
func (r *registry) use(k *keeper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.refs++
}

// leave forgets the keeper if nobody else uses it.
func (r *registry) leave(k *keeper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left(k)
}

// left is leave for a caller that has r.mu.
func (r *registry) left(k *keeper) {
	k.refs--
	if k.refs == 0 {
		delete(r.keepers[k.kind], k.hash)
		if deafen := r.heard[k]; deafen != nil {
			delete(r.heard, k)
			deafen()
		}
	}
}

// register makes an acquisition known before its first request is sent. A client that is shutting down registers
// none: Shutdown may have found already that nothing is left.
func (r *registry) register(a *acquisition) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.acquisitions[a.nonce] != nil:
		return nil
	case r.tracker.Draining():
		return ErrClosed
	}
	r.acquisitions[a.nonce] = a
	a.keeper.refs++
	return nil
}

// unregister forgets an acquisition that was lost or refused, or that Redis has never heard of.
func (r *registry) unregister(a *acquisition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed(a)
}

// removed is unregister for a caller that has r.mu.
func (r *registry) removed(a *acquisition) {
	if r.acquisitions[a.nonce] == a {
		delete(r.acquisitions, a.nonce)
		r.left(a.keeper)
		r.tracker.Ended()
	}
}

// released forgets an acquisition whose release was sent, or whose place in the queue is left to end by itself. The
// journal remembers that for a lease, in case a failover undoes it or a grant comes for it.
func (r *registry) released(a *acquisition, n replay.Release, answered bool) {
	now := a.keeper.c.clock.Now()
	if answered {
		n.Answered = now
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed(a)
	r.journal.Add(n, now)
}

// lookup returns the acquisition that a message names, or nil.
func (r *registry) lookup(name string) *acquisition {
	n, ok := wire.ParseNonce(name)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acquisitions[n]
}

// known returns all acquisitions that are registered now.
func (r *registry) known() []*acquisition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.AppendSeq(make([]*acquisition, 0, len(r.acquisitions)), maps.Values(r.acquisitions))
}
