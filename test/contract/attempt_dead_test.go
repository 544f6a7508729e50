package contract_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A process has died that held the lock, with more calls in the queue than one script forgets.
// Fails when a single attempt takes the word of a script that has not forgotten all the dead: the lock was free.
func TestAnAttemptFindsFreeWhatOnlyTheDeadWaitFor(t *testing.T) {
	const many, ttl = 600, 2 * time.Second
	for kind, lock := range map[string]func(c *relock.Client) *relock.Lock{
		"plain":   func(c *relock.Client) *relock.Lock { return c.NewLock("l") },
		"fair":    func(c *relock.Client) *relock.Lock { return c.NewLock("l", relock.Fair()) },
		"rw":      func(c *relock.Client) *relock.Lock { return c.NewRWLock("l").WLocker() },
		"fair rw": func(c *relock.Client) *relock.Lock { return c.NewRWLock("l", relock.Fair()).RLocker() },
	} {
		t.Run(kind, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				dead := rig.Raw{T: t, Redis: x.Redis, ID: rig.NonceOf('d')}
				for i := range many {
					id := fmt.Sprintf("dead%018d", i)
					dead.Run("acquire", dead.Request(kind, id, "~"+id, "w", ttl, 1, 1, 0)...)
				}
				virtual.Sleep(ttl + time.Millisecond)
				l := lock(x.Client())
				got, err := l.TryLock(t.Context(), 0)
				if rig.Must(t, err); !got {
					t.Fatal("TryLock = false, and nobody holds or waits who lives")
				}
				rig.Must(t, l.Unlock())
				rig.WantBare(t, x.Redis, "l")
			})
		})
	}
}
