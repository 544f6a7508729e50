package redisson

import (
	"context"
	"slices"
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

// join has a call hear of a channel.
func (c *Client) join(channel string) *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.rooms[channel]
	if r == nil {
		box := c.channels.Load().Channel(channel)
		r = &room{channel: box, leave: box.Join()}
		c.rooms[channel] = r
	}
	w := &waiter{room: r, name: channel, news: make(chan struct{}, 1)}
	r.waiters = append(r.waiters, w)
	return w
}

// part ends that. What the call has been told and not looked at is for the next.
func (c *Client) part(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := w.room
	r.waiters = slices.DeleteFunc(r.waiters, func(other *waiter) bool { return other == w })
	if w.told || len(w.news) > 0 {
		r.wake(false)
	}
	if len(r.waiters) == 0 {
		delete(c.rooms, w.name)
		r.leave()
	}
}

// deliver takes a message. Whatever else is on the channel is nobody's business.
func (c *Client) deliver(channel, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.rooms[channel]; r != nil && (message == messageOne || message == messageAll) {
		r.wake(message == messageAll)
	}
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
