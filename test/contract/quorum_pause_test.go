package contract_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// alone is the lock of that name on one primary, of a client of its own.
func (p *primaries) alone(primary int, name string) *relock.Lock {
	return p.x.ClientOver(p.all[primary].Client(p.x.T)).NewLock(name, relock.Fair(), relock.TTL(time.Hour))
}

// The holder's machine sleeps until one of its two primaries is lost, and another is granted as it wakes up.
// Fails when that makes up for the loss: another owner could have held meanwhile.
func TestQuorumOfASuspendedHolderIsLostThoughAPrimaryIsGrantedThen(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		other := acquire(t, p.alone(2, "a"), t.Context())
		q, links := p.process()
		h, err := q.NewLock("a", relock.TTL(10*time.Second)).Acquire(t.Context())
		rig.Must(t, err)
		links[0].Hole()
		x.Until(9500 * time.Millisecond)
		rig.Must(t, h.Err())
		x.Suspend(3 * time.Second)
		rig.Must(t, other.Release())
		synctest.Wait()
		rig.WantIs(t, h.Err(), relock.ErrLost)
		rig.WantIs(t, h.Release(), relock.ErrLost)
	})
}
