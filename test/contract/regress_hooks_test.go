package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// wantLineMoves lets a call that has to wait die in its Waiting hook: in the line
// of the process, in Redis' queue, or before it has a place there. Whoever comes
// after it must get the lock, and nothing of the dead call may stay.
func wantLineMoves(t *testing.T, prepare func(x *rig.Lab, c *relock.Client) (held *relock.Lock)) {
	t.Helper()
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		dies := true
		c := x.Client(relock.Trace(relock.Hooks{Waiting: func(context.Context, relock.Event) {
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
		rig.Must(t, held.Unlock())
		l := c.NewLock("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rig.Must(t, l.Lock(ctx))
		rig.Must(t, l.Unlock())
		synctest.Wait()
		if left := rig.Remains(c); left != "" {
			t.Error(left)
		}
	})
}

// The lock is held by the same process: the hold was handed to the dead call.
// Fails without the fix: a call leaves the line however it ends.
func TestPanicOfTheWaitingHookInLineStopsNobody(t *testing.T) {
	wantLineMoves(t, func(x *rig.Lab, c *relock.Client) *relock.Lock {
		l := c.NewLock("a")
		rig.Must(x.T, l.Lock(x.T.Context()))
		return l
	})
}

// The lock is held elsewhere, and the call is in Redis' queue: it was granted the
// lock, which then was renewed for nobody.
// Fails without the fix: a session is given up however the call that waits for it ends.
func TestPanicOfTheWaitingHookInTheQueueStopsNobody(t *testing.T) {
	wantLineMoves(t, func(x *rig.Lab, c *relock.Client) *relock.Lock {
		warmUp := c.NewLock("warm")
		rig.Must(x.T, warmUp.Lock(x.T.Context()))
		rig.Must(x.T, warmUp.Unlock())
		synctest.Wait() // the inbox is up
		l := x.Lock("a")
		rig.Must(x.T, l.Lock(x.T.Context()))
		return l
	})
}

// The same before the inbox is up: the call had the claim of its process, for
// which all later ones stood in line.
// Fails without the fix: a session is given up however the request for it ends.
func TestPanicOfTheWaitingHookBeforeTheQueueStopsNobody(t *testing.T) {
	wantLineMoves(t, func(x *rig.Lab, _ *relock.Client) *relock.Lock {
		l := x.Lock("a")
		rig.Must(x.T, l.Lock(x.T.Context()))
		return l
	})
}
