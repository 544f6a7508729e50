package listener

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/wire"
)

// echoGrace is how long an echo may take before the inbox counts as deaf.
const echoGrace = time.Second

// Echo is what a request that may wait asks of the listener, which has been silent or not.
// A client that is not seen vouches each time: what a script notes of that ends.
func (ls *Listeners) Echo(l *Listener, silent bool) wire.Echo {
	switch sight := wire.Sight(ls.sight.Load()); {
	case sight == wire.Unseen && l.Up():
		return wire.Vouch
	case sight != wire.Seen || silent:
		return wire.Prove
	}
	return wire.Quiet
}

// Echoed is called when an echo is heard, and returns whether that is the first that says
// that the client is not seen: all who wait are to ask again, as from then on they vouch.
func (ls *Listeners) Echoed(sight wire.Sight) (unseen bool) {
	if sight == wire.Unknown { // what is asked of permissions
		return false
	}
	before := ls.sight.Swap(int32(sight))
	return sight == wire.Unseen && before != int32(sight)
}

// linkedAs is called when a channel has a new connection, of which it is not known who
// is counted there.
func (ls *Listeners) linkedAs(channel string, first bool) {
	ls.sight.Store(int32(wire.Unknown))
	ls.cfg.Linked(channel, first)
}

// Expect has it checked later that the echo of a request sent at the given time has come.
func (ls *Listeners) Expect(l *Listener, sent clock.Instant) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.since.IsZero() {
		// Only the oldest is waited for: heartbeats that follow each other
		// closely must not put the verdict off.
		l.since = sent
		ls.cfg.Set(&l.echo, ls.cfg.Now().Add(echoGrace))
	}
}

// Check gives up a connection that did not hear what was published to it: it
// is half open, or with a server that serves the lock no more, and waiting on it
// would be in vain.
func (ls *Listeners) Check(l *Listener) {
	ls.mu.Lock()
	since := l.since
	l.since = clock.Instant{}
	ls.mu.Unlock()
	if l.Heard().Before(since.Time()) {
		ls.cfg.Log.Warn("inbox does not hear, connecting again")
		l.Suspect()
	}
}
