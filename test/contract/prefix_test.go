package contract_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// everyKind are the kinds of lock.
var everyKind = map[string]func(c *relock.Client) *relock.Lock{
	"plain":     func(c *relock.Client) *relock.Lock { return c.NewLock("a") },
	"fair":      func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Fair()) },
	"read":      func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").RLocker() },
	"write":     func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() },
	"semaphore": func(c *relock.Client) *relock.Lock { return c.NewSemaphore("a", 1) },
}

// underPrefix fails the test if a key is there that does not begin with the prefix.
func underPrefix(x *rig.Lab, prefix string) {
	x.T.Helper()
	for _, key := range x.Server.Direct().Keys() {
		if !strings.HasPrefix(key, prefix) {
			x.T.Errorf("key %q is not under the prefix %q", key, prefix)
		}
	}
}

// found counts the locks that a client finds.
func found(t *testing.T, c *relock.Client) (n int) {
	t.Helper()
	for info, err := range c.Locks(t.Context(), "") {
		rig.Must(t, err)
		if info.Name != "a" {
			t.Errorf("Locks found %q, want a", info.Name)
		}
		n++
	}
	return n
}

// Fails when a call of one kind, or one way to look, leaves out the prefix.
func TestClientsOfOtherPrefixesSeeNothingOfALock(t *testing.T) {
	for kind, of := range everyKind {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, same, other := x.Client(relock.KeyPrefix("tenant")), x.Client(relock.KeyPrefix("tenant")), x.Client(relock.KeyPrefix("tenant2"))
				h := rig.MustAcquire(t, of(c))
				waiter := x.Begin(x.Client(relock.KeyPrefix("tenant")).NewRWLock("b").WLocker())
				rig.End(t, waiter.Holds())
				underPrefix(x, "tenant:")
				if info := x.Info(of(same)); len(info.Holders) != 1 {
					t.Errorf("under the same prefix Info = %+v, want the holder", info)
				}
				if info := x.Info(of(other)); len(info.Holders) != 0 || info.Kind != "" {
					t.Errorf("under another prefix Info = %+v, want nothing", info)
				}
				if n := found(t, same); n != 1 {
					t.Errorf("under the same prefix Locks finds %d", n)
				}
				if n := found(t, other); n != 0 {
					t.Errorf("under another prefix Locks finds %d", n)
				}
				if removed, err := of(other).ForceUnlock(t.Context()); removed || err != nil {
					t.Errorf("under another prefix ForceUnlock = %v, %v", removed, err)
				}
				rig.Must(t, h.Err())
				theirs := rig.MustAcquire(t, of(other))
				rig.End(t, theirs)
				if removed, err := of(same).ForceUnlock(t.Context()); !removed || err != nil {
					t.Errorf("under the same prefix ForceUnlock = %v, %v", removed, err)
				}
				_ = h.Release()
			})
		})
	}
}

// Fails when one of what is built on locks leaves out the prefix.
func TestWhatIsBuiltOnLocksIsUnderThePrefix(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, other := x.Client(relock.KeyPrefix("tenant")), x.Client(relock.KeyPrefix("tenant2"))
		for _, one := range []*relock.Client{c, other} { // each once: neither has run before
			if ran, err := one.Once(t.Context(), "once", time.Hour, func(context.Context) error { return nil }); !ran || err != nil {
				t.Errorf("Once = %v, %v, want true", ran, err)
			}
		}
		h := rig.MustAcquire(t, c.NewLock("a"))
		ticket, err := h.Detach(t.Context(), time.Minute)
		rig.Must(t, err)
		_, err = other.Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrInvalidOption)
		resumed, err := c.Resume(t.Context(), ticket)
		rig.Must(t, err)
		rig.End(t, resumed)

		here, there := c.NewLock("l"), other.NewLock("l")
		rig.Must(t, here.Lock(t.Context()))
		s := x.Sleeps(t.Context(), here.NewCond("c"), 0)
		rig.Must(t, there.Lock(t.Context()))
		rig.Must(t, there.NewCond("c").Signal(t.Context()))
		rig.Must(t, there.Unlock())
		s.Waits()
		if all, err := there.NewCond("c").Waiters(t.Context()); len(all) != 0 || err != nil {
			t.Errorf("under another prefix %d wait on the condition, %v", len(all), err)
		}
		s.Stop()
		s.Ended(context.Canceled)
		rig.Must(t, here.Unlock())
		underPrefix(x, "tenant")
	})
}
