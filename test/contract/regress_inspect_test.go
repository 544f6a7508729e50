package contract_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/lua"
)

// loading makes the server answer that it is about to be there.
func loading(x *rig.Lab) {
	x.Server.FailNext(1_000_000, "LOADING Redis is loading the dataset in memory", func(args []string) bool {
		return args[0] == "evalsha" || args[0] == "eval"
	})
}

// Info is between two tries when its context ends, or the client is closed; the
// error was that of the last try.
// Fails without the fix: what ended the call is its error.
func TestInspectionThatIsCutShortSaysByWhat(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loading(x)
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Microsecond)
		defer cancel()
		_, err := x.Lock("a").Info(ctx)
		rig.WantIs(t, err, context.DeadlineExceeded)
	})
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		loading(x)
		c := x.Client()
		call := rig.Beside(func() error {
			_, err := c.NewLock("a").Info(t.Context())
			return err
		})
		virtual.Sleep(3 * time.Millisecond)
		rig.StillWaits(t, call)
		rig.Must(t, c.Close())
		rig.WantIs(t, rig.Returned(t, call), relock.ErrClosed)
	})
}

// Redis refuses connections until ctx ends, during a pause or a dial.
// Fails without the fix: what was the matter with Redis is told beside the end of ctx.
func TestInspectionThatIsCutShortSaysWhatWasTheMatterWithRedis(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		defer link.Cut()()
		l := c.NewLock("a")
		for what, ask := range map[string]func(ctx context.Context) error{
			"Info":         func(ctx context.Context) error { _, err := l.Info(ctx); return err },
			"Waiters":      func(ctx context.Context) error { _, err := l.Waiters(ctx); return err },
			"ForceUnlock":  func(ctx context.Context) error { _, err := l.ForceUnlock(ctx); return err },
			"Cond.Waiters": func(ctx context.Context) error { _, err := l.NewCond("c").Waiters(ctx); return err },
			"Locks":        func(ctx context.Context) error { _, err := locksEnd(c, ctx, "", func() {}); return err },
			"Leader":       func(ctx context.Context) error { _, err := c.NewElection("e").Leader(ctx); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Microsecond)
			err := ask(ctx)
			cancel()
			if rig.WantIs(t, err, context.DeadlineExceeded); !strings.Contains(fmt.Sprint(err), "; until then: redis could not be asked: ") {
				t.Errorf("%s: %v; want what was the matter until then", what, err)
			}
		}
	})
}

// The reply to a ForceUnlock is lost, and its second try finds the lock free: it
// returned false, of a lock that it had freed.
// Fails without the fix: an unanswered try counts as one that may have worked.
func TestForceUnlockWhoseReplyWasLostSaysThatItRemoved(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		held := x.Lock("a")
		rig.Must(t, held.Lock(t.Context()))
		c, link := x.Linked()
		// The server knows the script, so that what goes unanswered is a run of it.
		rig.Must(t, x.Redis.ScriptLoad(t.Context(), script.MustLoad(lua.FS, "force").Source).Err())
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "force") {
				link.OnCommand(nil)
				return redistest.SwallowReply
			}
			return redistest.Pass
		})
		removed, err := c.NewLock("a").ForceUnlock(t.Context())
		if !removed || err != nil {
			t.Errorf("ForceUnlock = %v, %v, want true, nil", removed, err)
		}
		synctest.Wait()
		rig.WantIs(t, held.Unlock(), relock.ErrLost)
	})
}

// The hash names a holder whose grant is not there, as when somebody deletes a
// field by hand: Info failed with a line of Lua.
// Fails without the fix: a holder without a grant is none.
func TestInfoOfAHolderWithoutAGrantTellsNone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.NoWatchdog())
		rig.Must(t, l.Lock(x.By("me")))
		rig.Must(t, x.Redis.HDel(t.Context(), key.For("relock", "a").Hash, "o:me").Err())
		x.Holders(l, "", 0)
		removed, err := l.ForceUnlock(t.Context())
		if removed || err != nil {
			t.Errorf("ForceUnlock = %v, %v, want false, nil", removed, err)
		}
	})
}
