package listener

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/wire"
)

// echoGrace is how long an echo may take before the connection is given up.
const echoGrace = time.Second

// Echo returns what echo a request should ask for. silent says that the listener has been silent for long. A
// client that scripts do not see vouches with each request, because what the scripts note of it expires.
func (ls *Listeners) Echo(l *Listener, silent bool) wire.Echo {
	switch sight := wire.Sight(ls.sight.Load()); {
	case sight == wire.Unseen && l.Up():
		return wire.Vouch
	case sight != wire.Seen || silent:
		return wire.Prove
	}
	return wire.Quiet
}

// Echoed records an echo. It returns true for the first echo that says that scripts do not see the client.
// Then all waiters must ask again: their next requests vouch for the client.
func (ls *Listeners) Echoed(sight wire.Sight) (unseen bool) {
	if sight == wire.Unknown { // an echo of the permission check
		return false
	}
	before := ls.sight.Swap(int32(sight))
	return sight == wire.Unseen && before != int32(sight)
}

// linkedAs is called when a channel has a new connection. Its server may be another one, so the sight is
// unknown again.
func (ls *Listeners) linkedAs(channel string, first bool) {
	ls.sight.Store(int32(wire.Unknown))
	ls.cfg.Linked(channel, first)
}

// Expect schedules a check that the echo of a request sent at that time has come.
func (ls *Listeners) Expect(l *Listener, sent clock.Instant) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.since.IsZero() {
		// Only the oldest request counts. Otherwise heartbeats in close succession would put the check off
		// for ever.
		l.since = sent
		ls.cfg.Set(&l.echo, ls.cfg.Now().Add(echoGrace))
	}
}

// Check gives up a connection that did not receive its echo. Such a connection is half open, or its server
// does not serve the lock any more, so no message would come.
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
