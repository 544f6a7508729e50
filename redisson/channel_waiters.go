package redisson

import (
	"context"
	"time"

	"github.com/relock-go/relock/internal/inbox"
)

// The messages of Redisson's clients when a lock becomes free.
const (
	messageOne = "0" // one waiter of each client must try
	messageAll = "1" // all waiters must try
)

// channelWaiters are the calls of this client that wait for messages of one channel.
type channelWaiters struct {
	channel *inbox.Channel
	leave   func()    // ends the subscription
	waiters []*waiter // in order of arrival
}

// A waiter is one waiting call.
type waiter struct {
	all  *channelWaiters // of its channel
	name string
	news chan struct{} // capacity one: the call must try
	told bool          // the call was told to try, and its try is not answered yet; only the call uses it
}

// wake tells the first waiter that has no news yet, or all waiters, to try. It needs the client's mu.
func (c *channelWaiters) wake(all bool) {
	for _, w := range c.waiters {
		select {
		case w.news <- struct{}{}:
			if !all {
				return
			}
		default:
		}
	}
}

// awaitSubscribed waits until the channel is subscribed, but no longer than limit, because the lock can be asked for
// without it.
func (w *waiter) awaitSubscribed(ctx context.Context, limit time.Duration) {
	if w.all.channel.Up() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if w.all.channel.Ready(ctx) != nil {
		<-ctx.Done() // a refusal comes at once: without this wait the call would ask for the lock all the time
	}
}
