package contract_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// counted counts the questions of a link who holds.
func counted(link *redistest.Link) (n *int) {
	n = new(int)
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if rig.Runs(cmd, "info") && cmd.Is("evalsha") {
			*n++
		}
		return redistest.Pass
	})
	return n
}

func wantSays(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want one that says %q", what, err, part)
		}
	}
}

func TestErrorsSayWhoHoldsWhereThatIsAskedFor(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		a, _ := labelled(x, relock.Label("worker of A"))
		h := rig.MustAcquire(t, a.NewLock("a", relock.Owner("me")))
		virtual.Sleep(time.Second)
		asks, link := x.Linked(relock.WhoHolds())
		n, l := counted(link), asks.NewLock("a")
		held := `held by "me" of "worker of A" for `
		_, err := l.TryAcquire(t.Context(), 0)
		rig.WantIs(t, err, relock.ErrNotAcquired)
		wantSays(t, "one attempt", err, held+"1s, its lease ends in 29s")
		_, err = l.TryAcquire(t.Context(), 2*time.Second)
		wantSays(t, "a wait", err, held+"3s")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = l.Lock(ctx)
		rig.WantIs(t, err, context.DeadlineExceeded)
		if wantSays(t, "a context", err, held+"4s"); *n != 3 {
			t.Errorf("asked %d times, want three", *n)
		}
		if got, err := l.TryLock(t.Context(), time.Second); got || err != nil || *n != 3 {
			t.Errorf("TryLock = %v, %v, asked %d times, want no further question", got, err, *n)
		}
		rig.End(t, h)
		rests := a.NewLock("a", relock.AtLeast(time.Minute))
		rig.Must(t, rests.Lock(t.Context()))
		rig.Must(t, rests.Unlock())
		_, err = l.TryAcquire(t.Context(), 0)
		wantSays(t, "a rest", err, "taken for another 1m0s, without a holder")
		for range 3 {
			x.Take(x.Client().NewRWLock("rw").RLocker())
		}
		_, err = asks.NewRWLock("rw").WLocker().TryAcquire(t.Context(), 0)
		wantSays(t, "readers", err, ", and by 2 more")
	})
}

// A call that does not know whether the lock is taken does not ask a silent Redis once more who holds it.
func TestNobodyIsAskedWhoHoldsWhileRedisIsSilent(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked(relock.WhoHolds())
		rig.Must(t, c.NewLock("before").Do(t.Context(), func(context.Context) error { return nil }))
		link.Hole()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := c.NewLock("a").Lock(ctx)
		if rig.WantIs(t, err, relock.ErrUnavailable); time.Since(began) > 1050*time.Millisecond {
			t.Errorf("it took %v, want a second", time.Since(began))
		}
	})
}

// Who holds is no part of an error that has another reason.
func TestAClientThatIsShutDownAsksNobodyWhoHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		x.Take(x.Lock("a"))
		c, link := x.Linked(relock.WhoHolds())
		n := counted(link)
		waits := rig.Beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		rig.StillWaits(t, waits)
		rig.Must(t, c.Shutdown(t.Context()))
		if rig.WantIs(t, <-waits, relock.ErrClosed); *n != 0 {
			t.Errorf("asked %d times", *n)
		}
	})
}

// Who has not asked for it pays nothing, and nobody waits long for it.
func TestWhoHoldsCostsNobodyElse(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		rig.Must(t, x.Lock("a").Lock(x.By("me")))
		c, link := x.Linked()
		n := counted(link)
		if _, err := c.NewLock("a").TryAcquire(t.Context(), time.Second); err == nil || strings.Contains(err.Error(), "held by") || *n != 0 {
			t.Errorf("TryAcquire: %v, asked %d times", err, *n)
		}
		asks, link := x.Linked(relock.WhoHolds())
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "info") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		began := time.Now()
		_, err := asks.NewLock("a").TryAcquire(t.Context(), time.Second)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("it took %v, want 1.1 s at most", took)
		}
		rig.WantIs(t, err, relock.ErrNotAcquired)
	})
}

func TestWhatReturnsNoErrorAsksNobodyWhoHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		asks, link := x.Linked(relock.WhoHolds())
		rig.Must(t, x.Lock("a").Lock(t.Context()))
		nothing := func(context.Context) error { return nil }
		n, m := counted(link), relock.NewMulti(asks.NewLock("a"))
		for what, l := range map[string]locker{"one": asks.NewLock("a"), "several": m} {
			if had, err := l.TryLock(t.Context(), 0); had || err != nil {
				t.Errorf("TryLock of %s: %v, %v", what, had, err)
			}
			if ran, err := l.(tryDoer).TryDo(t.Context(), time.Second, nothing); ran || err != nil {
				t.Errorf("TryDo of %s: %v, %v", what, ran, err)
			}
		}
		if ran, err := asks.Once(t.Context(), "a", time.Hour, nothing); ran || err != nil {
			t.Errorf("Once: %v, %v", ran, err)
		}
		if *n != 0 {
			t.Errorf("asked %d times", *n)
		}
		_, err := m.TryAcquire(t.Context(), 0)
		wantSays(t, "several", err, "held by ")
	})
}

func TestAQuorumAsksNobodyWhoHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		take(t, p.lock("a"))
		synctest.Wait() // a primary that a majority did not wait for is taken as well
		q, links := p.process(relock.WhoHolds())
		var over time.Time // while it waits, a call asks a primary so whether it answers
		late := 0
		for _, link := range links {
			link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if rig.Runs(cmd, "info") && !time.Now().Before(over) {
					late++
				}
				return redistest.Pass
			})
		}
		_, err := q.NewLock("a").TryAcquire(t.Context(), 0)
		rig.WantIs(t, err, relock.ErrNotAcquired)
		over = time.Now().Add(1100 * time.Millisecond)
		_, err = q.NewLock("a").TryAcquire(t.Context(), 1100*time.Millisecond)
		rig.WantIs(t, err, relock.ErrNotAcquired)
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(1100*time.Millisecond))
		defer cancel()
		over, _ = ctx.Deadline()
		_, err = q.NewLock("a").Acquire(ctx)
		if rig.WantIs(t, err, context.DeadlineExceeded); late != 0 {
			t.Errorf("asked %d times", late)
		}
	})
}
