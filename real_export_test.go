package relock

import "fmt"

// Remains says what a client still keeps of locks and calls, or "" for nothing.
func Remains(c *Client) string {
	c.mu.Lock()
	sessions, rooms, tasks := len(c.sessions), len(c.rooms), c.tasks
	c.mu.Unlock()
	if calls := c.transport.Outstanding(); sessions+rooms+tasks+calls > 0 {
		return fmt.Sprintf("%d sessions, %d rooms, %d tasks, %d calls", sessions, rooms, tasks, calls)
	}
	return ""
}
