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

// outageAfter has the reply to the next of a script lost, and all that is sent after it until the
// returned function runs.
func outageAfter(link *redistest.Link, script string) (heal func()) {
	down := false
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		switch {
		case down:
			return redistest.Lose
		case rig.Runs(cmd, script):
			down = true
			return redistest.SwallowReply
		}
		return redistest.Pass
	})
	return func() { link.OnCommand(nil) }
}

// Its release was sent for as long as the lease could last, and the interval was spent by nobody.
func TestOnceThatFailedSpendsNothingThoughRedisIsAwayForLong(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		c, link := x.Linked()
		rig.Must(t, c.NewLock("warm").Do(t.Context(), func(context.Context) error { return nil }))
		heal := outageAfter(link, "acquire")
		nothing := func(context.Context) error { return nil }
		if ran, err := c.Once(t.Context(), "l", 24*time.Hour, nothing, relock.TTL(10*time.Second)); ran || err == nil {
			t.Fatalf("ran %v, error %v, want an error", ran, err)
		}
		virtual.Sleep(30 * time.Minute)
		heal()
		virtual.Sleep(2 * time.Second)
		if ran, err := x.Client().Once(t.Context(), "l", 24*time.Hour, nothing); !ran || err != nil {
			t.Errorf("after the outage: ran %v, error %v", ran, err)
		}
	})
}

// Fails when Shutdown waits for a rest that it cannot end.
func TestShutdownWaitsNoLongerForARestThanForALease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		c, link := x.Linked()
		outageAfter(link, "acquire")
		if had, err := c.NewLock("l", relock.AtLeast(time.Hour), relock.TTL(10*time.Second)).TryLock(t.Context(), 0); had || err == nil {
			t.Fatalf("had %v, error %v, want an error", had, err)
		}
		virtual.Sleep(time.Minute)
		began := x.Now()
		rig.Must(t, c.Shutdown(t.Context()))
		if took := x.Now() - began; took > 10*time.Second {
			t.Errorf("Shutdown took %v", took)
		}
	})
}
