package redisson

import (
	"context"
	"time"

	"github.com/relock-go/relock/internal/inbox"
)

// What Redisson's clients tell each other when a lock comes free.
const (
	messageOne = "0" // one waiter of each client is to try
	messageAll = "1" // all are
)

// A room is those who wait in this client for messages of one channel.
type room struct {
	channel *inbox.Channel
	leave   func()
	waiters []*waiter // in order of arrival
}

// A waiter is one call that waits.
type waiter struct {
	room *room
	name string
	news chan struct{} // room for one: it is to try
	told bool          // it has been told, and has not been answered since; its call's own
}

// wake tells the first that has not been told yet, or all. It needs the client's mu.
func (r *room) wake(all bool) {
	for _, w := range r.waiters {
		select {
		case w.news <- struct{}{}:
			if !all {
				return
			}
		default:
		}
	}
}

// reachable waits until messages are heard, but no longer than limit: a lock that is
// not heard of can still be asked for.
func (w *waiter) reachable(ctx context.Context, limit time.Duration) {
	if w.room.channel.Up() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if w.room.channel.Ready(ctx) != nil {
		<-ctx.Done() // refused, and would be again: ask, but not all the time
	}
}
