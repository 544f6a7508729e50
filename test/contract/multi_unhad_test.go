package contract_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The client is closed while a Multi that has one lock waits for the next.
// Fails when the first is left to its lease, and its name rests, although the call has failed.
func TestWhatAMultiHadAsItsClientClosesIsGivenBack(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"rests": {relock.AtLeast(time.Hour)}, "plain": nil} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				rig.Must(t, x.Lock("b").Lock(t.Context()))
				c := x.Client()
				m := relock.NewMulti(c.NewLock("a", opts...), c.NewLock("b"))
				call := rig.Beside(func() error { return m.Lock(t.Context()) })
				rig.StillWaits(t, call)
				x.Refuses(x.Lock("a"))
				rig.Must(t, c.Close())
				rig.WantIs(t, rig.Returned(t, call), relock.ErrClosed)
				x.Frees("a")
			})
		})
	}
}

// The first lock is lost during the hook that is told of it, so the Multi begins again.
// Fails when it then waits for the rest of a name that no call has had.
func TestAMultiWaitsForNoRestOfWhatItLostDuringAHook(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		slow := 10 * time.Second
		c := x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) {
			virtual.Sleep(slow)
			slow = 0
		}}))
		m := relock.NewMulti(c.NewLock("a", relock.AtLeast(time.Hour), relock.NoWatchdog(), relock.TTL(5*time.Second)), c.NewLock("b"))
		if got, err := m.TryLock(t.Context(), time.Minute); !got || err != nil {
			t.Errorf("TryLock = %v, %v, want true", got, err)
		}
	})
}
