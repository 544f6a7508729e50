package relock

import (
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/renewal"
)

// SetClock makes c read k. It also has c take its user's permissions for granted, so
// that it sends nothing but what its test is about: what is tested in virtual time
// does without the question that a client's first call asks. It is called before c
// is used.
func (c *Client) SetClock(k *clock.Clock) {
	c.permitted.Store(true)
	c.acked.Store(true)
	c.clock = k
	c.watchdog = renewal.New(k, c.runDue)
}

// ID is the name of c's inbox, and half of the identity of its sessions.
func (c *Client) ID() string { return c.id }

// Sessions is how many nonces c keeps: asking, queued, held, or being released.
func (c *Client) Sessions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// Rooms is how many locks c knows anything of.
func (c *Client) Rooms() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.countRooms()
}

// countRooms needs c.mu.
func (c *Client) countRooms() (n int) {
	for _, rooms := range c.rooms {
		n += len(rooms)
	}
	return n
}

// OfKind makes l, not used yet, a handle of another kind.
func (l *Lock) OfKind(kind string) *Lock {
	own := *l.side
	own.kind = kind
	l.side = &own
	return l
}

// PretendHolds makes h's owner hold n times more than it does, as far as this
// client knows: nobody can lock 2^31-1 times in a test.
func (h *Hold) PretendHolds(n int) {
	h.session.room.mu.Lock()
	defer h.session.room.mu.Unlock()
	h.session.reserved = int32(n)
}
