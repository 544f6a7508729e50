package relock

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/listener"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/replay"
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
	refs     int32        // guarded by c.mu: calls and acquisitions that use the room

	mu   sync.Mutex // guards room, and all acquisitions and holds in it
	room room.Room
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
			k.c.setTimer(e)
		case room.Forget:
			k.c.unregister(acquired(e.Of))
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

// setTimer sets when the watchdog is to look at an acquisition.
func (c *Client) setTimer(e *room.Effect) {
	task := &acquired(e.Of).task
	switch {
	case e.At.IsZero():
		c.watchdog.Drop(task)
	case e.Grain > 0:
		c.watchdog.SetAbout(task, e.At, e.Grain)
	default:
		c.watchdog.Set(task, e.At)
	}
}

// runAll calls each of them, though a hook that one calls panics or ends its goroutine.
func runAll(todo []func()) {
	if len(todo) == 0 {
		return
	}
	defer runAll(todo[1:])
	todo[0]()
}

// tellApart calls hooks and the logger for the watchdog and the inbox: one that blocks,
// or ends its goroutine, stops neither.
func (c *Client) tellApart(todo ...func()) {
	if len(todo) > 0 {
		c.beside(func() { runAll(todo) })
	}
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

// enter returns the room of a lock, to be left again.
func (c *Client) enter(l *Lock) *keeper {
	c.mu.Lock()
	defer c.mu.Unlock()
	rooms := c.rooms[l.kind]
	if rooms == nil {
		rooms = make(map[string]*keeper)
		c.rooms[l.kind] = rooms
	}
	k := rooms[l.hash]
	if k == nil {
		k = &keeper{origin: &l.origin, hash: l.hash, listener: c.listeners.Of(l.hash)}
		k.room.Plain, k.room.Runs, k.room.Shared = l.kind == wire.KindPlain, l.kind == wire.KindFair, l.kind == wire.KindRW || l.kind == wire.KindFairRW
		k.skew.Store(c.skew.Load())
		rooms[l.hash] = k
	}
	k.refs++
	return k
}

func (c *Client) leave(k *keeper) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked(k)
}

func (c *Client) leaveLocked(k *keeper) {
	k.refs--
	if k.refs == 0 {
		delete(c.rooms[k.kind], k.hash)
	}
}

// register makes an acquisition known by its nonce, before its first request leaves. A
// client that drains begins none: Shutdown may have found already that nothing is left.
func (c *Client) register(a *acquisition) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.sessions[a.nonce] != nil:
		return nil
	case c.tracker.Draining():
		return ErrClosed
	}
	c.sessions[a.nonce] = a
	a.keeper.refs++
	return nil
}

// unregister forgets an acquisition: released, lost, or never known to Redis.
func (c *Client) unregister(a *acquisition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unregisterLocked(a)
}

func (c *Client) unregisterLocked(a *acquisition) {
	if c.sessions[a.nonce] == a {
		delete(c.sessions, a.nonce)
		c.leaveLocked(a.keeper)
		c.tracker.Ended()
	}
}

// lookup returns the acquisition that a message or a reply names, or nil.
func (c *Client) lookup(name string) *acquisition {
	n, ok := wire.ParseNonce(name)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[n]
}

// An acquisition is one of a keeper's room, and how Redis knows it.
type acquisition struct {
	room.Acquisition
	keeper *keeper
	nonce  wire.Nonce
	number int64 // of the owner made for it; 0: it has a name
	task   renewal.Task
	// turn is nil where no count has been stated, and none can be but by the call that waits.
	turn *turn
}

// A turn is one caller's at a time: who states a new count waits for the statement before.
type turn struct {
	place chan struct{} // there is one
	// end is what comes of the release that ends the session; nil: none has begun. It stands
	// here as most held locks have no turn. It is guarded by the keeper's mu.
	end *outcome
}

// acquired is what a room's acquisition is here.
func acquired(a *room.Acquisition) *acquisition { return a.Of.(*acquisition) }

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

// nameLen is how much of 128 random bits tells the anonymous holds of two clients apart,
// for people: their nonces do for Redis. So a record fits into the 64 bytes up to
// which Redis keeps a hash as one string, in half the memory (hash-max-listpack-value).
const nameLen = 8

// owner returns the name given, or the one made for the acquisition, or for the one that
// its hold was handed over by. That is made on demand: most holds are anonymous, and their
// names are never read.
func (a *acquisition) owner() string {
	if a.Name != "" {
		return a.Name
	}
	text := make([]byte, 0, 64)
	text = append(append(append(text, room.MadeMark), a.keeper.c.name...), ':')
	return string(strconv.AppendInt(text, a.number, 36))
}

// session is what statements name that tell Redis of the acquisition.
func (a *acquisition) session(several bool) wire.Session {
	s := wire.Session{Hash: a.keeper.hash, Nonce: a.nonce.String(), Owner: a.owner(), Permits: a.Terms.Permits}
	if several {
		s.Queue = a.keeper.keys().Queue
	}
	return s
}

// note is what is remembered of a release that is about to be sent: what changes after
// that is noticed. It needs the keeper's mu.
func (a *acquisition) note() replay.Release {
	c, keys := a.keeper.c, a.keeper.keys()
	return replay.Release{
		Keys: keys, Nonce: a.nonce, Owner: a.owner(), Undone: a.Undone(), Doubt: a.until(),
		Until: c.clock.Now().Add(a.Lasts()), Server: c.transport.Server(keys.Hash), Epoch: c.journal.Epoch(),
	}
}

// until is when no copy of a request counts any more; negative: it owes a signal.
func (a *acquisition) until() int64 {
	if a.Owes() {
		return -max(a.Doubt(), 1)
	}
	return a.Doubt()
}
