package contract_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A nested unlock waits for a silent server, and has the turn to speak for its
// session. A re-entry waits for that turn when the client is closed; nobody is
// left who would give it back.
// Fails without the fix: who waits for the turn is woken by Close.
func TestReentryThatWaitsForTheTurnEndsWithClose(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a", relock.Owner("me"))
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Lock(t.Context()))
		link.Hole()
		unlock := rig.Beside(l.Unlock)
		rig.StillWaits(t, unlock)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		reentry := rig.Beside(func() error { return l.Lock(ctx) })
		rig.StillWaits(t, reentry)
		closed := rig.Beside(c.Close)
		virtual.Sleep(time.Minute)
		rig.WantIs(t, rig.Returned(t, reentry), relock.ErrClosed)
		rig.Must(t, rig.Returned(t, closed))
		rig.Returned(t, unlock) //nolint:errcheck // of a closed client, whatever it says
	})
}

// The same turn, and Downgrade: it waited on after Close.
// Fails without the fix: a downgrade that waits for its turn ends with the client.
func TestDowngradeThatWaitsForTheTurnEndsWithClose(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		ctx := relock.WithOwner(t.Context(), "me")
		rw := c.NewRWLock("a")
		rig.Must(t, rw.Lock(ctx))
		rig.Must(t, rw.Lock(ctx))
		link.Hole()
		unlock := rig.Beside(rw.Unlock)
		rig.StillWaits(t, unlock)
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		downgrade := rig.Beside(func() error { return rw.Downgrade(ctx) })
		rig.StillWaits(t, downgrade)
		closed := rig.Beside(c.Close)
		virtual.Sleep(time.Minute)
		rig.WantIs(t, rig.Returned(t, downgrade), relock.ErrLost)
		rig.Must(t, rig.Returned(t, closed))
		rig.Returned(t, unlock) //nolint:errcheck // of a closed client, whatever it says
	})
}

// The same turn, and TryLock(0): one attempt, which waited for as long as the
// unlock did.
// Fails without the fix: one attempt waits for the turn no longer than for an answer.
func TestOneAttemptDoesNotWaitForTheTurnOfASilentServer(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked(relock.ReleaseTimeout(time.Minute))
		l := c.NewLock("a", relock.Owner("me"))
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Lock(t.Context()))
		heal := link.Hole()
		unlock := rig.Beside(l.Unlock)
		rig.StillWaits(t, unlock)
		began := time.Now()
		got, err := l.TryLock(t.Context(), 0)
		if took := time.Since(began); got || err == nil || took > 2*time.Second {
			t.Errorf("TryLock(0) = %v, %v after %v, want an error within the 2s of one request", got, err, took)
		}
		heal()
		rig.Must(t, <-unlock)
	})
}

// deaf returns a client whose inbox never comes up, and its call that waits for
// that: the lock is taken, and a waiter must be reachable.
func deaf(t *testing.T, x *rig.Lab) (c *relock.Client, call <-chan error) {
	t.Helper()
	rig.Must(t, x.Lock("a").Lock(t.Context()))
	c, link := x.Linked()
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if cmd.Is("subscribe") {
			return redistest.Lose
		}
		return redistest.Pass
	})
	call = rig.Beside(func() error { return c.NewLock("a").Lock(t.Context()) })
	virtual.Sleep(time.Second)
	rig.StillWaits(t, call)
	return c, call
}

// Shutdown, and Close, of a client one of whose calls waits for the inbox: the
// first did not end that wait, and so itself waited; the second ended it with an
// error that was not ErrClosed.
// Fails without the fix: the wait for the inbox is one of those that Shutdown ends.
func TestWaitForTheInboxEndsWithTheClient(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, call := deaf(t, x)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		rig.Must(t, c.Shutdown(ctx))
		rig.WantIs(t, rig.Returned(t, call), relock.ErrClosed)
	})
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, call := deaf(t, x)
		rig.Must(t, c.Close())
		rig.WantIs(t, rig.Returned(t, call), relock.ErrClosed)
	})
}

// A taken lock, and an inbox that is not up within the 200 ms of a TryLock: that
// the lock is taken is known, and yet it was told as an error.
// Fails without the fix: a wait that ends while the inbox comes up is a wait that has ended.
func TestTryLockOfATakenLockIsNoErrorThoughTheInboxIsNotUp(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _ := deaf(t, x)
		// By then an attempt to subscribe has failed. The first call asks, and the second stands in line.
		virtual.Sleep(5 * time.Second)
		for _, ctx := range []context.Context{relock.WithOwner(t.Context(), "me"), t.Context()} {
			if got, err := c.NewLock("a").TryLock(ctx, 200*time.Millisecond); got || err != nil {
				t.Errorf("TryLock = %v, %v, want false, nil", got, err)
			}
		}
		rig.Must(t, c.Close())
	})
}
