package contract_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// The holders of all permits have died, and the queue's key has expired; the hash lives on, since
// a call that was refused had a longer lease in mind.
// Fails when those who come back under the names of the dead are let in for nothing: the permits of
// their old grants were not counted any more.
func TestPermitsOfTheDeadAreGivenBackOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		names := []string{"worker-1", "worker-2", "worker-3", "worker-4"}
		dead, link := x.Linked(relock.TokenKeep(time.Minute))
		for _, name := range names[:2] {
			_, err := dead.NewSemaphore("gpu", 2, relock.TTL(2*time.Second)).Acquire(x.By(name))
			rig.Must(t, err)
		}
		c := x.Client(relock.TokenKeep(time.Minute))
		_, err := c.NewSemaphore("gpu", 2, relock.TTL(5*time.Minute)).TryAcquire(x.By("batch"), 0)
		rig.WantIs(t, err, relock.ErrNotAcquired)
		link.Cut()
		time.Sleep(64 * time.Second)
		held := 0
		for _, name := range names {
			if _, err := c.NewSemaphore("gpu", 2, relock.TTL(2*time.Second)).TryAcquire(x.By(name), 0); err == nil {
				held++
			}
		}
		if held != 2 {
			t.Errorf("%d hold 2 permits", held)
		}
	})
}
