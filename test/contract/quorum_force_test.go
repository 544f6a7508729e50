package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// forces ends the hold on one primary, as an operator does.
func (p *primaries) forces(primary int) {
	p.x.T.Helper()
	forced, err := p.x.ClientOver(p.all[primary].Client(p.x.T)).NewLock("a").ForceUnlock(p.x.T.Context())
	if !forced || err != nil {
		p.x.T.Errorf("ForceUnlock on primary %d: %v, %v", primary, forced, err)
	}
}

// The holder hangs: its client renews, and takes primaries again, and it releases nothing.
// Fails when a primary that was forced is taken again.
func TestQuorumHoldEndsOnceAMajorityWasForced(t *testing.T) {
	for what, ctx := range map[string]func(x *rig.Lab) context.Context{
		"of nobody":        func(x *rig.Lab) context.Context { return x.T.Context() },
		"of a named owner": func(x *rig.Lab) context.Context { return x.By("me") },
	} {
		t.Run(what, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				p := newPrimaries(x, 3)
				h, err := p.lock("a").Acquire(ctx(x))
				rig.Must(t, err)
				ends := h.Context(t.Context())
				synctest.Wait()
				p.forces(0)
				virtual.Sleep(5 * time.Minute) // the time between two forces does not matter
				rig.Must(t, h.Err())           // a minority is no loss
				p.forces(2)
				synctest.Wait()
				rig.WantIs(t, h.Err(), relock.ErrLost)
				rig.WantIs(t, context.Cause(ends), relock.ErrLost)
				next := p.lock("a")
				if got, err := next.TryLock(t.Context(), time.Second); !got || err != nil {
					t.Errorf("TryLock after a majority was forced: %v, %v", got, err)
				}
				rig.WantLater(t, h.Token(), next.Token())
				rig.WantIs(t, h.Release(), relock.ErrLost)
				virtual.Sleep(time.Minute)
				rig.Must(t, next.Unlock())
			})
		})
	}
}

// No message reaches the holder's inboxes. What the next renewal finds looks like lost data, and such a primary is taken
// again. Fails when the first primary is taken again before the holder has looked at the second.
func TestQuorumHoldEndsOnceAMajorityWasForcedTogetherThoughMessagesAreLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		q, links := p.process()
		h := take(t, q.NewLock("a"))
		synctest.Wait()
		for _, link := range links {
			link.HoleSubscribers()
		}
		p.forces(0)
		p.forces(2)
		virtual.Sleep(20 * time.Second)
		rig.WantIs(t, h.Err(), relock.ErrLost)
		next := p.lock("a")
		if got, err := next.TryLock(t.Context(), time.Second); !got || err != nil {
			t.Fatalf("TryLock after a majority was forced: %v, %v", got, err)
		}
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.Must(t, next.Unlock())
	})
}
