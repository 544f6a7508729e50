package contract_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// quorumGrantedBeside has a QuorumLock held by one call when its primaries lose their data, and
// granted to another call of the handle before the first hold's renewal.
func quorumGrantedBeside(t *testing.T, f func(x *rig.Lab, l, other *relock.QuorumLock, second rig.Going)) {
	t.Helper()
	for _, owners := range [][2]string{{"", ""}, {"one", "two"}} {
		t.Run(owners[0], func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				p := newPrimaries(x, 3)
				l, other := p.lock("a"), p.lock("a")
				lock := func(owner string) func() error {
					ctx := t.Context()
					if owner != "" {
						ctx = x.By(owner)
					}
					return func() error { return l.Lock(ctx) }
				}
				rig.Must(t, lock(owners[0])())
				virtual.Sleep(5 * time.Second)
				second := rig.Beside(lock(owners[1]))
				virtual.Sleep(6 * time.Second) // the first hold has been renewed at 10 s
				for _, srv := range p.all {
					rig.Must(t, srv.Client(t).FlushAll(t.Context()).Err())
				}
				virtual.Sleep(7 * time.Second)
				f(x, l, other, second)
			})
		})
	}
}

func TestAQuorumLockHasNoSecondHoldBeforeTheFirstIsUnlocked(t *testing.T) {
	quorumGrantedBeside(t, func(x *rig.Lab, l, other *relock.QuorumLock, second rig.Going) {
		rig.SecondHoldWaits(x, l, other, second)
	})
}

func TestUnlockOfALostQuorumHoldLeavesTheNextHoldOfItsHandle(t *testing.T) {
	quorumGrantedBeside(t, func(x *rig.Lab, l, other *relock.QuorumLock, second rig.Going) {
		rig.LostUnlockSparesTheNext(x, l, other, second)
	})
}

// A stalledContext does not say between two instants whether it has ended, as if its caller had been suspended.
type stalledContext struct {
	context.Context
	from, until time.Time
}

func (c stalledContext) Err() error {
	if now := time.Now(); now.After(c.from) && now.Before(c.until) {
		virtual.Sleep(c.until.Sub(now))
	}
	return c.Context.Err()
}

// The first call has a majority when it stalls. The primaries lose their data, and grant the lock to the second call.
// Fails when the first call returns then, beside the hold of the second.
func TestAQuorumCallThatStallsWithItsMajorityHoldsNothingBesideALaterOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		q, links := p.process()
		l, began := q.NewLock("a"), time.Now()
		for _, link := range links {
			link.Latency(10 * time.Millisecond)
		}
		stalled := stalledContext{t.Context(), began.Add(time.Millisecond), began.Add(18 * time.Second)}
		first := rig.Beside(func() error { return l.Lock(stalled) })
		virtual.Sleep(5 * time.Second)
		second := rig.Beside(func() error { return l.Lock(t.Context()) })
		virtual.Sleep(6 * time.Second) // what the first has is renewed at 10 s
		for _, srv := range p.all {
			rig.Must(t, srv.Client(t).FlushAll(t.Context()).Err())
		}
		virtual.Sleep(6 * time.Second)
		rig.Must(t, rig.Returned(t, second))
		virtual.Sleep(90 * time.Second)
		rig.StillWaits(t, first)
		rig.Must(t, l.Unlock())
		rig.Must(t, <-first)
		rig.Must(t, l.Unlock())
	})
}
