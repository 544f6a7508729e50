package redisson

import (
	"context"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/renewal"
)

// SetClock makes a client that is not used yet read k: in virtual time the machine's own
// clock, which also counts suspensions, would run by itself.
func SetClock(c *Client, k *clock.Clock) {
	c.clock = k
	c.watchdog = renewal.New(k, c.runDue)
}

// Newest returns the hold that Unlock would end.
func Newest(l *Lock) *Hold { return l.newest() }

// Take is the first step of an Unlock: it takes the hold off its handle.
func Take(l *Lock) *Hold { return l.next() }

// GiveBack ends a hold as a call does whose context has ended meanwhile.
func GiveBack(h *Hold) { h.giveBack() }

// Downgrade is the rest of a Downgrade that has looked at the hold already.
func Downgrade(ctx context.Context, rw *RWLock, h *Hold) error { return rw.downgrade(ctx, h) }
