// Package listener receives the messages for a client's locks: over one inbox for all of them, or over
// sharded channels in the locks' slots. It checks each connection with echoes, which are messages that a
// client sends to itself. It does not know what the other messages mean.
package listener

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/renewal"
)

// A Subscription is the part of [inbox.Inbox] and [inbox.Channel] that a listener uses.
type Subscription interface {
	Ready(ctx context.Context) error
	Up() bool
	Down() error // returns why it is not up
	Heard() time.Time
	Suspect()
}

// A Listener receives the messages for one lock.
type Listener struct {
	Subscription
	Channel string
	Inbox   *inbox.Inbox // the client's inbox for all locks; nil: the lock has its own channel

	shard *inbox.Channel // the lock's own channel; nil: it uses the inbox
	echo  renewal.Task   // checks whether an echo has come
	since clock.Instant  // guarded by Listeners.mu; when the oldest awaited echo was requested; zero: none is awaited
}

func newListener(channel string, s Subscription) *Listener {
	l := &Listener{Subscription: s, Channel: channel}
	l.echo.Of = l
	return l
}

// Join keeps the listener's channel subscribed until leave is called. A sharded channel is only subscribed while calls
// wait for the lock or holds listen for waiters. The inbox is always subscribed.
func (l *Listener) Join() (leave func()) {
	if l.shard == nil {
		return func() {}
	}
	return l.shard.Join()
}

// Sharded reports whether the listener receives messages only while it is joined.
func (l *Listener) Sharded() bool { return l.shard != nil }

// Needs returns the commands that the user must be permitted for the listener to work.
func (l *Listener) Needs() string {
	if l.shard == nil {
		return "subscribe"
	}
	return "ssubscribe, sunsubscribe"
}

// Subscribing adds the channel to err, the error of a wait for the subscription.
func (l *Listener) Subscribing(err error) error {
	return fmt.Errorf("subscribing to the inbox %s: %w", l.Channel, err)
}
