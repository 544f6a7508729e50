package contract_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// The answer to a Detach is lost, and the client is closed.
// Fails when the ticket, which nobody has, keeps the lock for as long as it was to last.
func TestADetachThatCloseInterruptsLeavesNoTicket(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		h := acquire(t, c.NewLock("l"), t.Context())
		lost := false
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "detach") && !lost {
				lost = true
				return redistest.SwallowReply
			}
			return redistest.Pass
		})
		call := rig.Beside(func() error { _, err := h.Detach(t.Context(), time.Hour); return err })
		synctest.Wait()
		rig.Must(t, c.Close())
		err := rig.Returned(t, call)
		rig.WantIs(t, err, relock.ErrUnconfirmed)
		rig.WantIs(t, err, relock.ErrClosed)
		x.Frees("l")
	})
}
