package relock

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/listener"
	"github.com/relock-go/relock/internal/replay"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/shutdown"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// A keeper drives the room of one lock in one client. It passes the room one event at a time and carries out effects.
type keeper struct {
	*origin
	hash     string // the lock's key
	listener *listener.Listener
	skew     atomic.Int64 // clock of the lock's server minus ours, in ms, as last measured
	refs     int32        // calls, acquisitions and lost holds that need the keeper; guarded by the registry's mu

	mu   sync.Mutex // guards room, all acquisitions and holds in it, and the handles that have holds
	room room.Room
}

// begin locks mu and returns a step for an event that happens now. end unlocks mu.
func (k *keeper) begin() room.Step {
	k.mu.Lock()
	return room.Step{Now: k.c.clock.Now(), Draining: k.c.tracker.Draining(), Pause: transport.BackoffUpTo}
}

// look is begin for a step that asks which holds are live: it first loses those whose time is over by the clock.
func (k *keeper) look() room.Step {
	at := k.begin()
	k.room.Judge(&at)
	return at
}

// end carries out the effects of the step and unlocks mu. Client.tellApart tells hooks and the log of losses.
func (k *keeper) end(at *room.Step) {
	if losses := k.endUntold(at); len(losses) > 0 {
		k.c.tellApart(losses...)
	}
}

// endUntold is end, but returns the functions that tell the hook and the log of each loss: the caller runs them. It
// ends the contexts of lost holds itself, so a hook that blocks keeps no context open.
func (k *keeper) endUntold(at *room.Step) (losses []func()) {
	// Under mu: otherwise a later event could set a timer first, and this step would undo that.
	var cancels []func()
	for i := 0; at.Effect(i) != nil; i++ {
		switch e := at.Effect(i); e.Do {
		case room.Timer:
			if task := &acquired(e.Of).task; e.At.IsZero() {
				k.c.watchdog.Drop(task)
			} else {
				k.c.watchdog.SetAbout(task, e.At, e.Grain)
			}
		case room.Forget:
			k.c.registry.forget(acquired(e.Of), nil, false)
		case room.Lose:
			h, why, now := e.Hold.Of.(*Hold), lostFor(e.Hold.Why()), at.Now // now is for the closure: at must stay on the stack
			// Until room.LossEnded: the Unlock of the lost hold needs this keeper, whose mu guards the handle.
			k.c.registry.use(k)
			cancels = append(cancels, h.lose(why))
			if h.reported || k.c.cfg.hooks.Acquired == nil { // otherwise acquiredHook will tell of the loss
				losses = append(losses, func() { h.lostHook(why, now) })
			}
		case room.LossEnded:
			k.c.registry.leave(k)
		case room.TellWanted:
			e.Hold.Of.(*Hold).tellWanted()
		}
	}
	k.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	for i := 0; at.Effect(i) != nil; i++ { // these effects need no mutex, and do not block
		switch e := at.Effect(i); e.Do {
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
	return losses
}

// newAcquisition makes an acquisition that waits as an entry. It needs k.mu. An owner of "" is anonymous. hasClaim says
// that it has the claim of its flow.
func (k *keeper) newAcquisition(owner string, l *Lock, hasClaim bool) *acquisition {
	a := &acquisition{keeper: k, nonce: wire.NewNonce()}
	a.Name, a.Terms, a.Read, a.Of = owner, &l.terms.Terms, l.read, a
	if owner == "" {
		a.number = k.c.ownerCount.Add(1)
	}
	if a.Named() || k.room.Shared { // several holds: an Unlock may have to hear of the release by another (turn.end)
		a.makeTurn()
	}
	a.task.Of = a
	k.room.Enter(&a.Acquisition, hasClaim)
	return a
}

// do runs a script. acks is how many replicas have acknowledged it, or 0 if none need to.
func (k *keeper) do(ctx context.Context, timeout time.Duration, need room.Replicas, call transport.Call) (raw []any, acks int, err error) {
	if need.N == 0 {
		raw, err = k.c.transport.Do(ctx, timeout, call)
		return raw, 0, err
	}
	r := k.c.transport.DoAcked(ctx, timeout, need.N, need.Timeout, call)[0]
	return r.Reply, r.Acks, r.Err
}

// keys builds the key names on demand: a held lock rarely needs them.
func (k *keeper) keys() key.Keys { return key.Of(k.c.cfg.prefix, k.hash) }

func (k *keeper) name() string { return key.Name(k.c.cfg.prefix, k.hash) }

// serverNow estimates the clock of the lock's server in ms, only for not-after times: no trust depends on it. A value
// too low costs a round trip; a value too high keeps an ended nonce for longer. A new keeper begins with the value of
// the server that answered last, which in a Cluster may be another one.
func (k *keeper) serverNow() int64 { return time.Now().UnixMilli() + k.skew.Load() }

// noteServerClock notes how far the server's clock is ahead of ours, for serverNow. Most replies tell that clock.
func (k *keeper) noteServerClock(serverMs int64) {
	if serverMs == 0 {
		return // the reply has no server time
	}
	skew := serverMs - time.Now().UnixMilli()
	k.skew.Store(skew)
	k.c.latestSkew.Store(skew)
}

// runAll calls every function, even if one panics or ends its goroutine (a hook may do either).
func runAll(todo []func()) {
	if len(todo) == 0 {
		return
	}
	defer runAll(todo[1:])
	todo[0]()
}

// A registry knows what a client has in use: the keeper of each lock, and each acquisition by its nonce. A message from
// Redis names a nonce, by which the registry finds the acquisition that the message is for.
type registry struct {
	mu             sync.Mutex                    // guards the following fields and journal; taken after a keeper's mu
	keepers        map[string]map[string]*keeper // by kind, then by the lock's key: a key of both takes more memory
	acquisitions   map[wire.Nonce]*acquisition   // those that wait, hold, or are being released
	stopListening  map[*keeper]func()            // ends the subscription to the lock's sharded channel, which Sticky needs
	ticketReleases int                           // tickets of failed Detach calls that are being released

	journal *replay.Journal   // the recent releases
	tracker *shutdown.Tracker // at the end of the client it waits until no acquisition and no ticket release is left
}

// enter returns the keeper of a lock, made if nobody uses the lock, and listens if Sticky needs that. Call leave later.
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
		k = &keeper{origin: &l.origin, hash: l.hash, listener: l.c.listeners.Of(l.hash)}
		k.room.Plain = l.kind == wire.KindPlain
		k.room.Runs = l.kind == wire.KindFair
		k.room.Shared = l.kind == wire.KindRW || l.kind == wire.KindFairRW
		k.skew.Store(l.c.latestSkew.Load())
		keepers[l.hash] = k
	}
	k.refs++
	if l.terms.Sticky > 0 && k.listener.Sharded() && r.stopListening[k] == nil { // to hear that others want the kept grant
		r.stopListening[k] = k.listener.Join()
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

// use counts one more use of a keeper that is in use: a lost hold on a handle needs the keeper until its Unlock.
func (r *registry) use(k *keeper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.refs++
}

// leave forgets the keeper if nobody else uses it.
func (r *registry) leave(k *keeper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaveLocked(k)
}

// leaveLocked does what leave does. The caller holds r.mu.
func (r *registry) leaveLocked(k *keeper) {
	k.refs--
	if k.refs == 0 {
		delete(r.keepers[k.kind], k.hash)
		if stop := r.stopListening[k]; stop != nil {
			delete(r.stopListening, k)
			stop()
		}
	}
}

// register makes an acquisition known before its first request is sent. A client that is shutting down registers no new
// acquisition: Shutdown may have found already that nothing is left. Further requests of a registered one may be sent.
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

// forget takes an acquisition off the client. n is nil if Redis has never heard of it, or if Close has lost it. Otherwise
// n is the note of its release. The journal keeps n for a lease, in case a failover undoes the release or a grant comes
// for the nonce.
func (r *registry) forget(a *acquisition, n *replay.Release, answered bool) {
	now := a.keeper.c.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.acquisitions[a.nonce] == a {
		delete(r.acquisitions, a.nonce)
		r.leaveLocked(a.keeper)
		r.tracker.Ended()
	}
	if n == nil {
		return
	}
	done := *n
	if answered {
		done.Answered = now
	}
	r.journal.Add(done, now)
}

// countTicketRelease changes the number of tickets that are being released, by 1 or -1.
func (r *registry) countTicketRelease(more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticketReleases += more
	r.tracker.Ended()
}

// lookup returns the acquisition that a message names, or nil.
func (r *registry) lookup(nonce string) *acquisition {
	n, ok := wire.ParseNonce(nonce)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acquisitions[n]
}

// known returns the acquisitions that are registered now, in no order. They may be over when the caller looks.
func (r *registry) known() []*acquisition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.AppendSeq(make([]*acquisition, 0, len(r.acquisitions)), maps.Values(r.acquisitions))
}
