package contract_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// A nested TryLock without a wait makes one attempt, as an outer one does.
func TestOneAttemptToEnterAgainIsNotRepeated(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.Owner("me"))
		rig.Must(t, l.Lock(t.Context()))
		x.Server.FailNext(1, "LOADING Redis is loading the dataset in memory", func(args []string) bool { return rig.ScriptSent(args) == "hold" })
		done, err := l.TryLock(t.Context(), 0)
		if rig.WantIs(t, err, relock.ErrUnavailable); done {
			t.Error("it holds")
		}
		rig.Must(t, l.Unlock())
	})
}

// The attempt finds that Redis has lost the lock. Nobody holds it, so it is not taken.
func TestOneAttemptThatFindsItsOwnersLossSaysSo(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.Owner("me"))
		rig.Must(t, l.Lock(t.Context()))
		x.Redis.FlushAll(t.Context())
		_, err := l.TryLock(t.Context(), 0)
		rig.WantIs(t, err, relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		x.Frees("a")
	})
}

// Close leaves to their leases what a Multi holds, as it does with the hold of a lock: the work may still go on.
func TestCloseLeavesTheLocksOfAMultiToTheirLeases(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		rig.Must(t, relock.NewMulti(c.NewLock("a"), c.NewLock("b")).Lock(t.Context()))
		rig.Must(t, c.Close())
		synctest.Wait()
		x.Refuses(x.Lock("a"))
		x.Refuses(x.Lock("b"))
		x.Until(x.Now() + 31*time.Second)
		x.Frees("a")
		x.Frees("b")
	})
}
