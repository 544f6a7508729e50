package relock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/listener"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// A keeper drives the room of one lock: it tells the room what happens, one thing at a
// time, and does what follows.
type keeper struct {
	*origin
	hash     string // the lock's key
	listener *listener.Listener
	skew     atomic.Int64 // of the lock's server: its clock less ours in ms, as last seen
	refs     int32        // guarded by the registry's mu: calls and acquisitions that use the room

	mu   sync.Mutex // guards room, and all acquisitions and holds in it
	room room.Room
}

func newKeeper(l *Lock) *keeper {
	k := &keeper{origin: &l.origin, hash: l.hash, listener: l.c.listeners.Of(l.hash)}
	k.room.Plain = l.kind == wire.KindPlain
	k.room.Runs = l.kind == wire.KindFair
	k.room.Shared = l.kind == wire.KindRW || l.kind == wire.KindFairRW
	k.skew.Store(l.c.skew.Load())
	return k
}

// begin takes mu for something that happens now.
func (k *keeper) begin() room.Step {
	k.mu.Lock()
	return room.Step{Now: k.c.clock.Now(), Closing: k.c.tracker.Draining(), Pause: transport.BackoffUpTo}
}

// end gives mu back, and does what has followed.
func (k *keeper) end(at *room.Step) { runAll(k.endFirst(at)) }

// endFirst gives mu back, and leaves to the caller what calls its users: it may have
// more to note before a hook is called.
func (k *keeper) endFirst(at *room.Step) (tell []func()) {
	n := at.Len()
	if n == 0 {
		k.mu.Unlock()
		return nil
	}
	// In order with whatever happens next: a timer that is set late would undo a later one.
	var cancels []func() // of all holds, before a hook is called
	for i := range n {
		e := at.Effect(i)
		switch e.Do {
		case room.Timer:
			k.c.watchdog.setTimer(e)
		case room.Forget:
			k.c.registry.unregister(acquired(e.Of))
		case room.Lose:
			cancel, told := k.lose(e, at.Now)
			cancels, tell = append(cancels, cancel...), append(tell, told...)
		}
	}
	k.mu.Unlock()
	for i := range n {
		k.follow(at.Effect(i))
	}
	return append(cancels, tell...)
}

// lose takes what is lost off what depends on it. It needs mu; what it returns runs
// without it: first cancel, which calls nobody, then tell.
func (k *keeper) lose(e *room.Effect, now instant) (cancel, tell []func()) {
	if e.Hold == nil {
		k.c.losses.Add(1)
		return nil, nil
	}
	h, why := e.Hold.Of.(*Hold), lostFor(e.Hold.Why())
	h.owe(1)
	if !h.told && k.c.cfg.hooks.Acquired != nil {
		return h.lose(why), nil // acquiredHook tells of both, if the call comes to have the hold
	}
	return h.lose(why), []func(){func() { h.lostHook(why, now) }}
}

// follow does what can be done at any time, and waits for nobody.
func (k *keeper) follow(e *room.Effect) {
	switch e.Do {
	case room.Wake:
		close(e.Who.(chan struct{}))
	case room.Release:
		acquired(e.Of).releaseLater()
	case room.Tell:
		acquired(e.Of).tellApart()
	case room.Disown:
		k.c.disown(e.Nonce, k, e.At)
	}
}

// newEntry needs k.mu. With first it carries the claim of its flow.
func (k *keeper) newEntry(owner string, l *Lock, first bool) *acquisition {
	a := &acquisition{keeper: k, nonce: wire.NewNonce()}
	a.Name, a.Terms, a.Read, a.Of = owner, &l.terms.Terms, l.read, a
	if owner == "" {
		a.number = k.c.owners.Add(1)
	}
	if a.Named() || k.room.Shared { // the number of its holds can change
		a.makeTurn()
	}
	a.task.Of = a
	k.room.Enter(&a.Acquisition, first)
	return a
}

// keys are made when they are sent: a held lock needs one of them, now and then.
func (k *keeper) keys() key.Keys { return key.Of(k.c.cfg.prefix, k.hash) }

// serverNow estimates in ms the clock of the server that has the lock, for
// not-after times only: too early costs a round trip, too late keeps an ended
// nonce for longer. No trust rests on it. The servers of a Cluster have a clock
// each: what another one says is no more than the first guess.
func (k *keeper) serverNow() int64 { return time.Now().UnixMilli() + k.skew.Load() }

// sample notes what the clock says of the server that has the lock.
func (k *keeper) sample(serverMs int64) {
	if serverMs == 0 {
		return // the answer does not say
	}
	skew := serverMs - time.Now().UnixMilli()
	k.skew.Store(skew)
	k.c.skew.Store(skew)
}

// acquireCall needs k.mu.
func (k *keeper) acquireCall(q room.Request, ticket int64, echo wire.Echo) transport.Call {
	call := k.c.wire.Acquire(k.keys(), k.kind, q.NotAfter, echo, wireRequest(q, ticket))
	if q.OneKey {
		call.Keys = call.Keys[:1]
	}
	return call
}

// runAll calls each of them, though a hook that one calls panics or ends its goroutine.
func runAll(todo []func()) {
	if len(todo) == 0 {
		return
	}
	defer runAll(todo[1:])
	todo[0]()
}
