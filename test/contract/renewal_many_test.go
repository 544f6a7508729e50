package contract_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// renewedTogether holds n locks for d, and returns how many commands have renewed several of them. With refuse, the
// server answers that to each.
func renewedTogether(t *testing.T, n int, d time.Duration, refuse string) (commands int) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		ofMany := func(args []string) bool { return rig.Runs(redistest.Command{Args: args}, "hold") && args[2] != "1" }
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if ofMany(cmd.Args) {
				commands++
			}
			return redistest.Pass
		})
		var holds []*relock.Hold
		for i := range n {
			holds = append(holds, rig.MustAcquire(t, c.NewLock(fmt.Sprint("job ", i))))
		}
		if refuse != "" {
			x.Server.FailNext(1_000, refuse, ofMany)
		}
		virtual.Sleep(d)
		for _, h := range holds {
			rig.Must(t, h.Release())
		}
	})
	return commands
}

// Fails when a server that refuses a command of several locks is sent one again at each renewal.
func TestWhoRefusesToRenewManyIsAskedForEach(t *testing.T) {
	if n := renewedTogether(t, 12, 5*time.Minute, "CROSSSLOT Keys in request don't hash to the same slot"); n != 1 {
		t.Errorf("%d commands of several locks, want the one that was refused", n)
	}
}

// Fails when the hook hears of locks that are renewed by a command each, and not of those that one command renews.
func TestTheHookHearsOfEachLockThatIsRenewedTogether(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var mu sync.Mutex
		renewed := make(map[string]int)
		c := x.Client(relock.Trace(relock.Hooks{Renewed: func(e relock.Event) {
			mu.Lock()
			defer mu.Unlock()
			renewed[e.Name]++
		}}))
		for i := range 12 {
			rig.MustAcquire(t, c.NewLock(fmt.Sprint("job ", i)))
		}
		virtual.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(renewed) != 12 {
			t.Errorf("the hook heard of %v, want 12 locks", renewed)
		}
	})
}

// A command of many has to be sorted out again if one of them is lost, so few are not worth it.
func TestEightAndMoreAreRenewedTogether(t *testing.T) {
	if n := renewedTogether(t, 7, 11*time.Second, ""); n != 0 {
		t.Errorf("%d commands renew several of seven locks, want none", n)
	}
	if n := renewedTogether(t, 8, 11*time.Second, ""); n == 0 {
		t.Error("eight locks are renewed by a command each")
	}
}
