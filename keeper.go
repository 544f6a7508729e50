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

// A keeper drives the room of one lock in one client. It passes the room one event at a time and carries out effects.
type keeper struct {
	*origin
	hash     string // the lock's key
	listener *listener.Listener
	skew     atomic.Int64 // clock of the lock's server minus ours, in ms, as last measured
	refs     int32        // calls and acquisitions that use the room; guarded by the registry's mu

	mu   sync.Mutex // guards room, all acquisitions and holds in it, and the handles that have holds
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

// begin locks mu and returns a step for an event that happens now. end unlocks it.
func (k *keeper) begin() room.Step {
	k.mu.Lock()
	return room.Step{Now: k.c.clock.Now(), Closing: k.c.tracker.Draining(), Pause: transport.BackoffUpTo}
}

// look is begin for a step that asks which holds are live. Those that have ended by the clock are lost before it, and
// their hooks have run, which may take any time.
func (k *keeper) look() room.Step {
	for {
		at := k.begin()
		if k.room.Judge(&at); at.Len() == 0 {
			return at
		}
		k.end(&at)
	}
}

// end unlocks mu and carries out the effects of the step.
func (k *keeper) end(at *room.Step) { runAll(k.endWithoutHooks(at)) }

// endWithoutHooks unlocks mu and carries out all effects but hooks and logging. The caller runs those when it has
// finished. The contexts of lost holds end here, so a hook that blocks keeps no context open.
func (k *keeper) endWithoutHooks(at *room.Step) (hooks []func()) {
	n := at.Len()
	if n == 0 {
		k.mu.Unlock()
		return nil
	}
	// In order with whatever happens next: a timer that is set late would undo a later one.
	var cancels []func()
	for i := range n {
		e := at.Effect(i)
		switch e.Do {
		case room.Timer:
			k.c.watchdog.setTimer(e)
		case room.Forget:
			k.c.registry.unregister(acquired(e.Of))
		case room.Lose:
			cancel, after := k.lose(e, at.Now)
			cancels, hooks = append(cancels, cancel...), append(hooks, after...)
		case room.Paid:
			k.c.registry.leave(k)
		case room.Urge:
			e.Hold.Of.(*Hold).urge()
		}
	}
	k.mu.Unlock()
	runAll(cancels)
	for i := range n {
		k.follow(at.Effect(i))
	}
	return hooks
}

// lose applies a loss to the hold. It needs mu. The caller runs the results without mu: first cancel, which calls no
// hook, and then hooks. The keeper stays in use until the hold is unlocked (room.Paid): it guards the handle.
func (k *keeper) lose(e *room.Effect, now instant) (cancel, hooks []func()) {
	h, why := e.Hold.Of.(*Hold), lostFor(e.Hold.Why())
	k.c.registry.use(k)
	if !h.reported && k.c.cfg.hooks.Acquired != nil {
		return h.lose(why), nil // acquiredHook tells it
	}
	return h.lose(why), []func(){func() { h.lostHook(why, now) }}
}

// follow carries out an effect that needs no mutex and no order. It does not block.
func (k *keeper) follow(e *room.Effect) {
	switch e.Do {
	case room.Wake:
		close(e.Who.(chan struct{}))
	case room.Release:
		acquired(e.Of).releaseLater()
	case room.Tell:
		acquired(e.Of).tellLater()
	case room.Disown:
		k.c.disown(e.Nonce, k, e.At)
	}
}

// newAcquisition makes an acquisition that waits as an entry. It needs k.mu. An owner of "" is anonymous. If first is
// set, the entry carries the claim of its flow.
func (k *keeper) newAcquisition(owner string, l *Lock, first bool) *acquisition {
	a := &acquisition{keeper: k, nonce: wire.NewNonce()}
	a.Name, a.Terms, a.Read, a.Of = owner, &l.terms.Terms, l.read, a
	if owner == "" {
		a.number = k.c.owners.Add(1)
	}
	if a.Named() || k.room.Shared { // its number of holds can change
		a.makeTurn()
	}
	a.task.Of = a
	k.room.Enter(&a.Acquisition, first)
	return a
}

// keys builds the key names on demand: a held lock rarely needs one.
func (k *keeper) keys() key.Keys { return key.Of(k.c.cfg.prefix, k.hash) }

// serverNow estimates the clock of the lock's server in ms. It is only used for not-after times. A value too
// low costs a round trip; a value too high keeps an ended nonce for longer. No trust depends on it. Each
// server of a Cluster has its own clock, so the value of another server is only a first guess.
func (k *keeper) serverNow() int64 { return time.Now().UnixMilli() + k.skew.Load() }

// sample records the clock of the lock's server from a reply.
func (k *keeper) sample(serverMs int64) {
	if serverMs == 0 {
		return // the reply has no server time
	}
	skew := serverMs - time.Now().UnixMilli()
	k.skew.Store(skew)
	k.c.skew.Store(skew)
}

// runAll calls every function, even if one panics or ends its goroutine (a hook may do either).
func runAll(todo []func()) {
	if len(todo) == 0 {
		return
	}
	defer runAll(todo[1:])
	todo[0]()
}
