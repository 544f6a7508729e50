package relock_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
)

// onLog calls a function for every record.
type onLog struct {
	slog.Handler
	told func()
}

func (h onLog) Enabled(context.Context, slog.Level) bool  { return true }
func (h onLog) Handle(context.Context, slog.Record) error { h.told(); return nil }

// A renewal fails, which is logged: a handler that blocks, or that asks the lock,
// stopped every call on that lock.
// Fails without the fix: nothing is logged under a mutex.
func TestNothingIsLoggedUnderAMutex(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		var l *relock.Lock
		free := make(chan bool, 100)
		handler := onLog{slog.DiscardHandler, func() { free <- l.Unlocked() }}
		l = x.client(relock.Logger(slog.New(handler))).NewLock("a", relock.TTL(time.Second))
		noErr(t, l.Lock(t.Context()))
		x.srv.FailNext(1, "LOADING", func(args []string) bool { return args[0] == "evalsha" })
		time.Sleep(900 * time.Millisecond)
		heal := x.srv.Partition()
		time.Sleep(2 * time.Second)
		heal()
		wantIs(t, l.Unlock(), relock.ErrLost)
		synctest.Wait() // the loss is told on a goroutine of its own
		if len(free) < 3 {
			t.Errorf("%d records, want one for each failure and one for the loss", len(free))
		}
		for range len(free) {
			if !<-free {
				t.Error("logged under a mutex")
			}
		}
	})
}

// wantLineMoves lets a call that has to wait die in its Waiting hook: in the line
// of the process, in Redis' queue, or before it has a place there. Whoever comes
// after it must get the lock, and nothing of the dead call may stay.
func wantLineMoves(t *testing.T, prepare func(x *lab, c *relock.Client) (held *relock.Lock)) {
	t.Helper()
	inLab(t, func(t *testing.T, x *lab) {
		dies := true
		c := x.client(relock.Trace(relock.Hooks{Waiting: func(context.Context, relock.Event) {
			if dies {
				dies = false
				panic("hook")
			}
		}}))
		held := prepare(x, c)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the hook's panic went nowhere")
				}
			}()
			_ = c.NewLock("a").Lock(t.Context())
		}()
		noErr(t, held.Unlock())
		l := c.NewLock("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		noErr(t, l.Lock(ctx))
		noErr(t, l.Unlock())
		synctest.Wait()
		if left := relock.Remains(c); left != "" {
			t.Error(left)
		}
	})
}

// The lock is held by the same process: the hold was handed to the dead call.
// Fails without the fix: a call leaves the line however it ends.
func TestPanicOfTheWaitingHookInLineStopsNobody(t *testing.T) {
	wantLineMoves(t, func(x *lab, c *relock.Client) *relock.Lock {
		l := c.NewLock("a")
		noErr(x.t, l.Lock(x.t.Context()))
		return l
	})
}

// The lock is held elsewhere, and the call is in Redis' queue: it was granted the
// lock, which then was renewed for nobody.
// Fails without the fix: a session is given up however the call that waits for it ends.
func TestPanicOfTheWaitingHookInTheQueueStopsNobody(t *testing.T) {
	wantLineMoves(t, func(x *lab, c *relock.Client) *relock.Lock {
		warmUp := c.NewLock("warm")
		noErr(x.t, warmUp.Lock(x.t.Context()))
		noErr(x.t, warmUp.Unlock())
		synctest.Wait() // the inbox is up
		l := x.lock("a")
		noErr(x.t, l.Lock(x.t.Context()))
		return l
	})
}

// The same before the inbox is up: the call had the claim of its process, for
// which all later ones stood in line.
// Fails without the fix: a session is given up however the request for it ends.
func TestPanicOfTheWaitingHookBeforeTheQueueStopsNobody(t *testing.T) {
	wantLineMoves(t, func(x *lab, _ *relock.Client) *relock.Lock {
		l := x.lock("a")
		noErr(x.t, l.Lock(x.t.Context()))
		return l
	})
}
