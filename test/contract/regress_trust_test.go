package contract_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Renewals fail, and the machine sleeps for 3 s, so that trust ends on one of its
// clocks before it does on the other. The last retry was put off to the end of
// the trust only where both clocks agreed, and by up to a second beyond it.
// Fails without the fix: a retry that either clock puts beyond the trust is made at its end.
func TestLostClosesOnTimeByEitherClock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		var holds []*relock.Hold
		for i := range 8 { // retries are spread at random; one of them may be on time by chance
			l := c.NewLock(fmt.Sprint("a", i), relock.TTL(10*time.Second))
			holds = append(holds, acquire(t, l, t.Context()))
		}
		x.Server.Partition()
		virtual.Sleep(4 * time.Second)
		end := holds[0].TrustedUntil().Add(-3 * time.Second)
		x.Suspend(3 * time.Second)
		for _, h := range holds {
			<-h.Lost()
		}
		if late := time.Since(end); late > 100*time.Millisecond {
			t.Errorf("the last Lost closed %v after the end of the trust", late)
		}
	})
}
