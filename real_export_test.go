package relock

import (
	"context"
	"fmt"
)

// AskAgainWhenLost is the next try of a call that was asking for l when a message
// granted its session, after the lease of that grant has ended.
func (l *Lock) AskAgainWhenLost(ctx context.Context) error {
	r := l.c.enter(l)
	defer l.c.leave(r)
	r.mu.Lock()
	s := r.newSession("", l)
	s.phase = over
	s.finished()
	r.mu.Unlock()
	w := &waiting{ctx: ctx, lock: l, room: r, began: l.c.clock.Now()}
	_, err := w.contend(s, placeNew)
	return err
}

// Remains says what a client still keeps of locks and calls, or "" for nothing.
func Remains(c *Client) string {
	c.mu.Lock()
	sessions, rooms, tasks := len(c.sessions), c.countRooms(), c.tasks
	c.mu.Unlock()
	if calls := c.transport.Outstanding(); sessions+rooms+tasks+calls > 0 {
		return fmt.Sprintf("%d sessions, %d rooms, %d tasks, %d calls", sessions, rooms, tasks, calls)
	}
	return ""
}
