package relock_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// A nested unlock waits for a silent server, and has the turn to speak for its
// session. A re-entry waits for that turn when the client is closed; nobody is
// left who would give it back.
// Fails without the fix: who waits for the turn is woken by Close.
func TestReentryThatWaitsForTheTurnEndsWithClose(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		l := c.NewLock("a", relock.Owner("me"))
		noErr(t, l.Lock(t.Context()))
		noErr(t, l.Lock(t.Context()))
		link.Hole()
		unlock := beside(l.Unlock)
		stillWaits(t, unlock)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		reentry := beside(func() error { return l.Lock(ctx) })
		stillWaits(t, reentry)
		closed := beside(c.Close)
		time.Sleep(time.Minute)
		wantIs(t, hasReturned(t, reentry), relock.ErrClosed)
		noErr(t, hasReturned(t, closed))
		hasReturned(t, unlock) //nolint:errcheck // of a closed client, whatever it says
	})
}

// The same turn, and Downgrade: it waited on after Close.
// Fails without the fix: a downgrade that waits for its turn ends with the client.
func TestDowngradeThatWaitsForTheTurnEndsWithClose(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked()
		ctx := relock.WithOwner(t.Context(), "me")
		rw := c.NewRWLock("a")
		noErr(t, rw.Lock(ctx))
		noErr(t, rw.Lock(ctx))
		link.Hole()
		unlock := beside(rw.Unlock)
		stillWaits(t, unlock)
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		downgrade := beside(func() error { return rw.Downgrade(ctx) })
		stillWaits(t, downgrade)
		closed := beside(c.Close)
		time.Sleep(time.Minute)
		wantIs(t, hasReturned(t, downgrade), relock.ErrLost)
		noErr(t, hasReturned(t, closed))
		hasReturned(t, unlock) //nolint:errcheck // of a closed client, whatever it says
	})
}

// The same turn, and TryLock(0): one attempt, which waited for as long as the
// unlock did.
// Fails without the fix: one attempt waits for the turn no longer than for an answer.
func TestOneAttemptDoesNotWaitForTheTurnOfASilentServer(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, link := x.linked(relock.ReleaseTimeout(time.Minute))
		l := c.NewLock("a", relock.Owner("me"))
		noErr(t, l.Lock(t.Context()))
		noErr(t, l.Lock(t.Context()))
		heal := link.Hole()
		unlock := beside(l.Unlock)
		stillWaits(t, unlock)
		began := time.Now()
		got, err := l.TryLock(t.Context(), 0)
		if took := time.Since(began); got || err == nil || took > 2*time.Second {
			t.Errorf("TryLock(0) = %v, %v after %v, want an error within the 2s of one request", got, err, took)
		}
		heal()
		noErr(t, <-unlock)
	})
}

// deaf returns a client whose inbox never comes up, and its call that waits for
// that: the lock is taken, and a waiter must be reachable.
func deaf(t *testing.T, x *lab) (c *relock.Client, call <-chan error) {
	t.Helper()
	noErr(t, x.lock("a").Lock(t.Context()))
	c, link := x.linked()
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if cmd.Is("subscribe") {
			return redistest.Lose
		}
		return redistest.Pass
	})
	call = beside(func() error { return c.NewLock("a").Lock(t.Context()) })
	time.Sleep(time.Second)
	stillWaits(t, call)
	return c, call
}

// Shutdown, and Close, of a client one of whose calls waits for the inbox: the
// first did not end that wait, and so itself waited; the second ended it with an
// error that was not ErrClosed.
// Fails without the fix: the wait for the inbox is one of those that Shutdown ends.
func TestWaitForTheInboxEndsWithTheClient(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, call := deaf(t, x)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		noErr(t, c.Shutdown(ctx))
		wantIs(t, hasReturned(t, call), relock.ErrClosed)
	})
	inLab(t, func(t *testing.T, x *lab) {
		c, call := deaf(t, x)
		noErr(t, c.Close())
		wantIs(t, hasReturned(t, call), relock.ErrClosed)
	})
}

// A taken lock, and an inbox that is not up within the 200 ms of a TryLock: that
// the lock is taken is known, and yet it was told as an error.
// Fails without the fix: a wait that ends while the inbox comes up is a wait that has ended.
func TestTryLockOfATakenLockIsNoErrorThoughTheInboxIsNotUp(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c, _ := deaf(t, x)
		if got, err := c.NewLock("a").TryLock(relock.WithOwner(t.Context(), "me"), 200*time.Millisecond); got || err != nil {
			t.Errorf("TryLock = %v, %v, want false, nil", got, err)
		}
		noErr(t, c.Close())
	})
}
