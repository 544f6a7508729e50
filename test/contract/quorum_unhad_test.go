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

// One primary is had, the others are taken, and the machine sleeps for longer than the lease: the call fails.
// Fails when the name rests on that primary, although no call has held it.
func TestAQuorumThatLosesWhatItHadBeforeAMajorityLeavesNoRest(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		for i := 1; i < 3; i++ {
			rig.Must(t, p.alone(i, "a").Lock(t.Context()))
		}
		l := p.lock("a", relock.AtLeast(time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		call := rig.Beside(func() error { return l.Lock(ctx) })
		synctest.Wait()
		x.Suspend(31 * time.Second)
		virtual.Sleep(300 * time.Millisecond)
		cancel()
		rig.WantIs(t, rig.Returned(t, call), context.Canceled)
		virtual.Sleep(time.Second)
		if got, err := p.alone(0, "a").TryLock(t.Context(), 0); !got || err != nil {
			t.Errorf("TryLock = %v, %v; want that the name does not rest", got, err)
		}
	})
}

// Primaries that have lost their data are taken again, when the hold has lasted for longer than AtLeast.
// Fails when the name rests after it, as if it had been acquired then.
func TestAQuorumIsAcquiredOnceThoughPrimariesAreTakenAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		h := take(t, p.lock("a", relock.AtLeast(time.Minute)))
		virtual.Sleep(2 * time.Minute)
		for _, srv := range p.all[:2] {
			srv.FlushAll()
			virtual.Sleep(15 * time.Second)
			rig.Must(t, h.Err())
		}
		rig.Must(t, h.Release())
		synctest.Wait()
		if got, err := p.lock("a").TryLock(t.Context(), 0); !got || err != nil {
			t.Errorf("TryLock = %v, %v; want that the name does not rest", got, err)
		}
		h = take(t, p.lock("b", relock.AtLeast(time.Minute)))
		rig.Must(t, h.Release())
		synctest.Wait()
		if got, err := p.lock("b").TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock = %v, %v; want that the name rests", got, err)
		}
	})
}

// One primary is had and the others are taken when the clients are closed.
// Fails when that primary is left to its lease, and its name rests, although the call has failed.
func TestWhatAQuorumHadAsItsClientsCloseIsGivenBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		for i := 1; i < 3; i++ {
			rig.Must(t, p.alone(i, "a").Lock(t.Context()))
		}
		var clients []*relock.Client
		for _, srv := range p.all {
			clients = append(clients, x.ClientOver(srv.Client(t)))
		}
		q, err := relock.NewQuorum(clients...)
		rig.Must(t, err)
		l := q.NewLock("a", relock.AtLeast(time.Hour))
		call := rig.Beside(func() error { return l.Lock(t.Context()) })
		synctest.Wait()
		for _, c := range clients {
			rig.Must(t, c.Close())
		}
		rig.WantIs(t, rig.Returned(t, call), relock.ErrClosed)
		if got, err := p.alone(0, "a").TryLock(t.Context(), 0); !got || err != nil {
			t.Errorf("TryLock = %v, %v; want that the name does not rest", got, err)
		}
	})
}
