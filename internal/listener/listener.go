// Package listener is where a client hears of its locks: by an inbox that it has for all of
// them, or by sharded channels of the locks' own slots. It looks whether what it is told
// there is heard: by echoes, messages that a client has sent to itself. What is said in the
// others it does not know.
package listener

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/renewal"
)

// A Subscription may be up, or be coming.
type Subscription interface {
	Ready(ctx context.Context) error
	Up() bool
	Down() error // why it is not up
	Heard() time.Time
	Suspect()
}

// A Listener is where a client hears of a lock.
type Listener struct {
	Subscription
	Channel string
	Inbox   *inbox.Inbox // which the client has for all locks; nil: a channel of the lock's own

	shard *inbox.Channel
	echo  renewal.Task  // looks whether an echo has come
	since clock.Instant // guarded by Listeners.mu: since when one is awaited
}

func newListener(channel string, s Subscription) *Listener {
	l := &Listener{Subscription: s, Channel: channel}
	l.echo.Of = l
	return l
}

// Join makes the listener hear for a while: a sharded channel is subscribed for who
// waits. The inbox is subscribed for life.
func (l *Listener) Join() (leave func()) {
	if l.shard == nil {
		return func() {}
	}
	return l.shard.Join()
}

// Sharded says that the listener hears only while somebody has joined it.
func (l *Listener) Sharded() bool { return l.shard != nil }

// Needs is what the user must be permitted for the listener to hear.
func (l *Listener) Needs() string {
	if l.shard == nil {
		return "subscribe"
	}
	return "ssubscribe, sunsubscribe"
}

// Subscribing says of err, the end of a wait for the listener, what was waited for.
func (l *Listener) Subscribing(err error) error {
	return fmt.Errorf("subscribing to the inbox %s: %w", l.Channel, err)
}
