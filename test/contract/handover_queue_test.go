package contract_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// Something on the way copies a request that was answered, and its hold was handed to a ticket since.
// Fails when the usual way to queue does not know that the owner's hold was handed over: the copy stood in the queue,
// for nobody.
func TestACopyOfAnAnsweredAcquireDoesNotQueueBehindItsTicket(t *testing.T) {
	for kind, lock := range map[string]func(c *relock.Client) *relock.Lock{
		"plain":   func(c *relock.Client) *relock.Lock { return c.NewLock("l") },
		"fair":    func(c *relock.Client) *relock.Lock { return c.NewLock("l", relock.Fair()) },
		"writing": func(c *relock.Client) *relock.Lock { return c.NewRWLock("l").WLocker() },
	} {
		t.Run(kind, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				a, b, late := x.Actor(), x.Actor(), make(chan struct{})
				x.WaitOnce(a) // it asks for no echo from now on
				a.Fate("acquire", 1, redistest.Duplicate(late))
				ticket := detach(t, x.Take(lock(a.Client)), time.Minute)
				close(late)
				rig.Must(t, a.Link.Settle(t.Context()))
				x.Waits(x.Lock("l"))
				rig.End(t, resume(t, b.Client, ticket))
				rig.WantBare(t, x.Redis, "l")
			})
		})
	}
}
