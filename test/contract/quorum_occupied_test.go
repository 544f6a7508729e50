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

// loseQuorum takes l for owner and has it lost, by a majority of its primaries.
func loseQuorum(x *rig.Lab, p *primaries, l *relock.QuorumLock, owner string) {
	x.T.Helper()
	ctx := x.T.Context()
	if owner != "" {
		ctx = x.By(owner)
	}
	rig.Must(x.T, l.Lock(ctx))
	removeQuorum(x, p, l.Name())
}

// removeQuorum has whoever holds lose the name, and comes back when it is known.
func removeQuorum(x *rig.Lab, p *primaries, name string) {
	x.T.Helper()
	for _, srv := range p.all {
		_, err := x.ClientOver(srv.Client(x.T)).NewLock(name).ForceUnlock(x.T.Context())
		rig.Must(x.T, err)
	}
	synctest.Wait()
}

// A hold is lost that nobody has unlocked yet, and another call of the handle takes the
// lock: the Unlock of each ended the other's.
// Fails without the fix: a lost hold of a QuorumLock occupies its handle, as that of a Lock does.
func TestLostQuorumHoldOccupiesItsHandle(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		l := p.lock("a", relock.NoWatchdog())
		loseQuorum(x, p, l, "")
		took, err := l.TryLock(t.Context(), 0)
		if rig.WantIs(t, err, relock.ErrLost); took {
			t.Error("taken beside a lost hold")
		}
		_, err = l.TryLock(t.Context(), time.Minute)
		rig.WantIs(t, err, relock.ErrLost)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rig.WantIs(t, l.Lock(ctx), context.DeadlineExceeded)

		next := rig.Beside(func() error { return l.Lock(t.Context()) })
		virtual.Sleep(time.Hour)
		rig.StillWaits(t, next)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, next))
		rig.Must(t, l.Unlock())
	})
}

// The call waits for the lock when the hold is lost, and would be granted it.
func TestQuorumGrantForAnOccupiedHandleIsGivenBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		l, elsewhere := p.lock("a", relock.NoWatchdog()), p.lock("a")
		rig.Must(t, l.Lock(t.Context()))
		next := rig.Beside(func() error { return l.Lock(t.Context()) })
		virtual.Sleep(time.Second)
		removeQuorum(x, p, "a")
		virtual.Sleep(time.Second)
		rig.StillWaits(t, next)
		h := take(t, elsewhere)
		rig.Must(t, h.Release())
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, rig.Returned(t, next))
		if n := l.HoldCount(); n != 1 {
			t.Errorf("%d holds", n)
		}
		rig.Must(t, l.Unlock())
	})
}

func TestLostQuorumHoldOfTheSameOwnerIsToBeUnlockedFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		l := p.lock("a", relock.NoWatchdog())
		loseQuorum(x, p, l, "me")
		began := x.Now()
		rig.WantIs(t, l.Lock(x.By("me")), relock.ErrLost)
		if x.Now() != began {
			t.Error("it waits for itself")
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, l.Lock(x.By("me")))
		rig.Must(t, l.Unlock())
	})
}

// Fails when a call waits for the Unlock of a lost hold though its clients are closed.
func TestOccupiedQuorumWithClosedClientsIsClosed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		clients := make([]*relock.Client, len(p.all))
		for i, srv := range p.all {
			clients[i] = x.ClientOver(srv.Client(t))
		}
		q, err := relock.NewQuorum(clients...)
		rig.Must(t, err)
		l := q.NewLock("a", relock.NoWatchdog())
		loseQuorum(x, p, l, "")
		waits := rig.Beside(func() error { return l.Lock(t.Context()) })
		rig.StillWaits(t, waits)
		for _, c := range clients[:2] {
			rig.Must(t, c.Close())
		}
		virtual.Sleep(time.Second)
		rig.WantIs(t, rig.Returned(t, waits), relock.ErrClosed)
		rig.WantIs(t, l.Lock(t.Context()), relock.ErrClosed)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	})
}
