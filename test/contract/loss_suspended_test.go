package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// questions are those that a holder may ask, each with the answer of who has lost the lock.
var questions = map[string]func(t *testing.T, l *relock.Lock, h *relock.Hold, ctx context.Context){
	"Err": func(t *testing.T, _ *relock.Lock, h *relock.Hold, _ context.Context) {
		rig.WantIs(t, h.Err(), relock.ErrLost)
	},
	"context": func(t *testing.T, _ *relock.Lock, _ *relock.Hold, ctx context.Context) {
		rig.WantIs(t, ctx.Err(), context.Canceled)
	},
	"Cause": func(t *testing.T, _ *relock.Lock, _ *relock.Hold, ctx context.Context) {
		rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
	},
	"Release": func(t *testing.T, _ *relock.Lock, h *relock.Hold, _ context.Context) {
		rig.WantIs(t, h.Release(), relock.ErrLost)
	},
	"Unlock": func(t *testing.T, l *relock.Lock, _ *relock.Hold, _ context.Context) {
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	},
	"re-entry": func(t *testing.T, l *relock.Lock, _ *relock.Hold, ctx context.Context) {
		rig.WantIs(t, l.Lock(context.WithoutCancel(ctx)), relock.ErrLost)
	},
	"HoldCount":    func(t *testing.T, l *relock.Lock, _ *relock.Hold, _ context.Context) { wantHolds(t, l, 0) },
	"TrustedUntil": func(t *testing.T, _ *relock.Lock, h *relock.Hold, _ context.Context) { wantZero(t, h.TrustedUntil()) },
}

// TestSuspendedHolderIsLostAtTheFirstQuestion: the machine slept through its
// lease. No timer has fired yet, and the clock decides.
func TestSuspendedHolderIsLostAtTheFirstQuestion(t *testing.T) {
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				l := x.Lock("a")
				h := acquire(t, l, x.By("me"))
				ctx := h.Context(x.By("me"))
				lost := h.Lost()
				virtual.Sleep(1007 * time.Millisecond) // the watchdog's sleep is not over at this instant
				x.Suspend(28 * time.Second)
				rig.Must(t, h.Err())
				x.Suspend(time.Second)
				ask(t, l, h, ctx)
				if !rig.IsShut(lost) || !rig.IsShut(ctx.Done()) {
					t.Errorf("after %s: Lost %v, context %v, want both closed", name, rig.IsShut(lost), rig.IsShut(ctx.Done()))
				}
			})
		})
	}
}

// No timer has fired yet, and the first question is that to the context.
// Fails when Err of the context does not ask the clock.
func TestSuspendedQuorumHoldIsLostAtTheFirstLookAtItsContext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := take(t, newPrimaries(x, 3).lock("a"))
		ctx := h.Context(t.Context())
		virtual.Sleep(1007 * time.Millisecond) // the watchdog's sleep is not over at this instant
		x.Suspend(28 * time.Second)
		rig.Must(t, ctx.Err())
		x.Suspend(time.Second)
		rig.WantIs(t, ctx.Err(), context.Canceled)
		if !rig.IsShut(ctx.Done()) {
			t.Error("Err has told the loss, and Done is open")
		}
		rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
		rig.WantIs(t, h.Release(), relock.ErrLost)
	})
}

// Fails when the machine's sleep is not taken off: who plans by that time works on when
// somebody else holds.
func TestSuspensionShortensTheTimeThatIsTold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := rig.MustAcquire(t, x.Lock("a", relock.NoWatchdog()))
		before := h.TrustedUntil()
		x.Suspend(20 * time.Second)
		rig.Must(t, h.Err())
		if after := h.TrustedUntil(); before.Sub(after) != 20*time.Second {
			t.Errorf("trusted until %v, after a sleep of 20 s until %v", before, after)
		}
		rig.End(t, h)
	})
}

func wantHolds(t testing.TB, l *relock.Lock, want int) {
	t.Helper()
	if got := l.HoldCount(); got != want {
		t.Errorf("HoldCount = %d, want %d", got, want)
	}
}

func wantZero(t testing.TB, got time.Time) {
	t.Helper()
	if !got.IsZero() {
		t.Errorf("trusted until %v, want the zero time", got)
	}
}

// TestSuspendedHolderNoticesByItself, soon after the machine wakes up, though
// nobody asks.
func TestSuspendedHolderNoticesByItself(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.NoWatchdog())
		h := acquire(t, l, t.Context())
		lost := h.Lost()
		virtual.Sleep(time.Second)
		x.Suspend(29 * time.Second)
		began := time.Now()
		<-lost
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("noticed %v after the machine woke up", took)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// TestGrantThatWasSleptThroughIsNoResult: the machine sleeps while the answer
// is under way, for longer than the lease.
func TestGrantThatWasSleptThroughIsNoResult(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a")
		slept := false
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if !slept && rig.Runs(cmd, "acquire") {
				slept = true
				x.Suspend(time.Minute)
			}
			return redistest.Pass
		})
		rig.Must(t, l.Lock(t.Context()))
		synctest.Wait()
		if !slept || l.HoldCount() != 1 {
			t.Errorf("slept %v, %d live holds, want one that was asked for anew", slept, l.HoldCount())
		}
		rig.Must(t, l.Unlock())
		x.Frees("a")
	})
}
