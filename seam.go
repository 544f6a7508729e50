package relock

import (
	"math"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/seam"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// The suites in test/ reach in here, and nowhere else.
func init() {
	seam.SetClock = func(client any, k *clock.Clock) {
		c := client.(*Client)
		c.permitted.Store(true)
		c.acked.Store(true)
		c.clock = k
		c.watchdog = renewal.New(k, c.runDue)
	}
	seam.ID = func(client any) string { return client.(*Client).id }
	seam.Kept = func(client any) (sessions, rooms, tasks, calls int) { return client.(*Client).kept() }
	seam.Knows = func(client any, nonce string) bool { return client.(*Client).lookup(nonce) != nil }
	seam.Remembers = func(client any) bool { return client.(*Client).remembers() }
	seam.Listen = func(client any) { client.(*Client).inbox.Start() }
	seam.Hears = func(client any) bool { return client.(*Client).inbox.Up() }
	seam.OfKind = func(lock any, kind string) {
		l := lock.(*Lock)
		own := *l.side
		own.kind = kind
		l.side = &own
	}
	seam.PretendHolds = func(hold any, n int) {
		h := hold.(*Hold)
		k, s := h.keeper(), h.Session
		k.mu.Lock()
		defer k.mu.Unlock()
		if s.Ledger.Reserved = (ledger.Counts{Writes: uint32(n)}); s.Read {
			s.Ledger.Reserved = ledger.Counts{Reads: uint32(n)}
		}
	}
	seam.Nonce = func(hold any) string { return hold.(*Hold).acquisition().nonce.String() }
	seam.Spread = &transport.Spread
	seam.Scripts = wire.Scripts()
	seam.ReadAcquire = readAcquire
}

// kept counts what c keeps: sessions that ask, are queued, held or being released,
// locks, goroutines, and calls of Redis.
func (c *Client) kept() (sessions, rooms, tasks, calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.rooms {
		rooms += len(of)
	}
	return len(c.sessions), rooms, c.tasks, c.transport.Outstanding()
}

// remembers says whether c looks after releases, which takes a timer.
func (c *Client) remembers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch.on || c.watch.released != nil
}

func readAcquire(raw []any, requests int) ([]seam.Answer, error) {
	reply, err := wire.DecodeAcquire(raw, requests, math.MaxInt32)
	var all []seam.Answer
	for _, a := range reply.Answers {
		all = append(all, seam.Answer{Code: a.Code, Ghost: a.Ghost, Remaining: a.Remaining})
	}
	return all, err
}
