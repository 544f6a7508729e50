package real_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

const pauseTTL = time.Second

// questions are what a holder may ask first after it was frozen, and how each
// says that the hold is lost.
var questions = map[string]func(ctx context.Context, l *relock.Lock, h *relock.Hold) bool{
	"HoldCount": func(_ context.Context, l *relock.Lock, _ *relock.Hold) bool { return l.HoldCount() == 0 },
	"Unlock": func(_ context.Context, l *relock.Lock, _ *relock.Hold) bool {
		return errors.Is(l.Unlock(), relock.ErrLost)
	},
	"Release": func(_ context.Context, _ *relock.Lock, h *relock.Hold) bool {
		return errors.Is(h.Release(), relock.ErrLost)
	},
	"Err": func(_ context.Context, _ *relock.Lock, h *relock.Hold) bool {
		return errors.Is(h.Err(), relock.ErrLost)
	},
	"TrustedUntil": func(_ context.Context, _ *relock.Lock, h *relock.Hold) bool { return h.TrustedUntil().IsZero() },
	"Context.Err":  func(ctx context.Context, _ *relock.Lock, _ *relock.Hold) bool { return ctx.Err() != nil },
	"Cause": func(ctx context.Context, _ *relock.Lock, _ *relock.Hold) bool {
		return errors.Is(context.Cause(ctx), relock.ErrLost)
	},
}

// ask waits, without ever giving up its processor, for a jump of the clock by a
// whole lease, and puts the question before anybody else has run. Whatever the
// jump came from, no lease can have survived it. Asked for "Lost" it waits for
// that channel instead, and says how long that took.
func (a *agent) ask(o order) response {
	a.mu.Lock()
	l, h := a.locks[o.Lock], a.holds[o.Lock]
	a.mu.Unlock()
	ctx := h.Context(context.Background())
	lost := h.Lost()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := time.Now() // before the report, upon which the pause comes
	a.report(o, response{Begun: true})
	for last := now; now.Sub(last) < o.TTL; now = time.Now() {
		last = now
	}
	if o.Ask == "Lost" {
		<-lost
		return response{Took: time.Since(now)}
	}
	if !questions[o.Ask](ctx, l, h) {
		return failure(fmt.Errorf("%s does not say that the hold is lost", o.Ask))
	}
	return response{}
}

// TestFirstQuestionAfterAPauseSaysLost freezes processes past the lease of what
// they hold, each with another question on its lips.
func TestFirstQuestionAfterAPauseSaysLost(t *testing.T) {
	srv := redistest.Real(t)
	for range rig.Rounds(1, 20) {
		for question := range questions {
			t.Run(question, func(t *testing.T) {
				t.Parallel()
				frozen(t, srv, question)
			})
		}
	}
}

// TestLostClosesSoonAfterAPause takes the best of some pauses: how soon a
// process runs again is the machine's affair.
func TestLostClosesSoonAfterAPause(t *testing.T) {
	srv := redistest.Real(t)
	best := time.Hour
	for range 5 {
		best = min(best, frozen(t, srv, "Lost").Took)
		if best <= 100*time.Millisecond {
			return
		}
	}
	t.Errorf("Lost closed %v after the pause at best, want at most 100ms", best)
}

// frozen stops a process that holds a lock until somebody else has it, and
// returns what it answers then.
func frozen(t *testing.T, srv *redistest.RealServer, question string) response {
	t.Helper()
	holder := spawn(t, srv.Addr(), "GOMAXPROCS=1") // nothing runs beside the question
	name := t.Name()
	holder.do(order{Do: "lock", Lock: name, TTL: pauseTTL})
	reports := holder.begin(order{Do: "ask", Lock: name, TTL: pauseTTL, Ask: question})
	if r := holder.hear(reports); !r.Begun {
		t.Fatalf("asked before the pause: %+v", r)
	}
	holder.signal(syscall.SIGSTOP)
	paused := time.NewTimer(pauseTTL + pauseTTL/4)
	defer paused.Stop()
	next := rig.Open(t, srv.Client(t)).NewLock(name)
	rig.Must(t, next.Lock(t.Context()))
	<-paused.C // the jump has to be a whole lease, which a renewal may have shortened
	holder.signal(syscall.SIGCONT)
	r := holder.hear(reports)
	if r.Err != "" {
		t.Error(r.Err)
	}
	rig.Must(t, next.Unlock())
	return r
}
