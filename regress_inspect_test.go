package relock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// loading makes the server answer that it is about to be there.
func loading(x *lab) {
	x.srv.FailNext(1_000_000, "LOADING Redis is loading the dataset in memory", func(args []string) bool {
		return args[0] == "evalsha" || args[0] == "eval"
	})
}

// Info is between two tries when its context ends, or the client is closed; the
// error was that of the last try.
// Fails without the fix: what ended the call is its error.
func TestInspectionThatIsCutShortSaysByWhat(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		loading(x)
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Microsecond)
		defer cancel()
		_, err := x.lock("a").Info(ctx)
		wantIs(t, err, context.DeadlineExceeded)
	})
	inLab(t, func(t *testing.T, x *lab) {
		loading(x)
		c := x.client()
		call := beside(func() error {
			_, err := c.NewLock("a").Info(t.Context())
			return err
		})
		time.Sleep(3 * time.Millisecond)
		stillWaits(t, call)
		noErr(t, c.Close())
		wantIs(t, hasReturned(t, call), relock.ErrClosed)
	})
}

// The reply to a ForceUnlock is lost, and its second try finds the lock free: it
// returned false, of a lock that it had freed.
// Fails without the fix: an unanswered try counts as one that may have worked.
func TestForceUnlockWhoseReplyWasLostSaysThatItRemoved(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		held := x.lock("a")
		noErr(t, held.Lock(t.Context()))
		c, link := x.linked()
		// The server knows the script, so that what goes unanswered is a run of it.
		noErr(t, x.rdb.ScriptLoad(t.Context(), script.MustLoad(lua.FS, "force").Source).Err())
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if runs(cmd, "force") {
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
		wantIs(t, held.Unlock(), relock.ErrLost)
	})
}

// The hash names a holder whose grant is not there, as when somebody deletes a
// field by hand: Info failed with a line of Lua.
// Fails without the fix: a holder without a grant is none.
func TestInfoOfAHolderWithoutAGrantTellsNone(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.NoWatchdog())
		noErr(t, l.Lock(x.by("me")))
		noErr(t, x.rdb.HDel(t.Context(), key.For("relock", "a").Hash, "o:me").Err())
		x.holders(l, "", 0)
		removed, err := l.ForceUnlock(t.Context())
		if removed || err != nil {
			t.Errorf("ForceUnlock = %v, %v, want false, nil", removed, err)
		}
	})
}
