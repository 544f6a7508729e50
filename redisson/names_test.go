package redisson_test

import (
	"testing"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// TestANameWhoseKeysWouldLieInSeveralSlotsIsRefused: Redisson puts a name without an opening
// brace into braces for all keys but the hash, and a Cluster takes the text up to the first
// closing one.
// Fails when a closing brace alone is let through, or a hash tag is refused.
func TestANameWhoseKeysWouldLieInSeveralSlotsIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		for _, name := range []string{"a}b", "a}", "}", "}{", "a{", "a{b", "{}", "a{}", "a{}{b}", "{}}"} {
			rig.WantIs(t, c.NewLock(name).Lock(t.Context()), relock.ErrInvalidName)
			rig.WantIs(t, c.NewRWLock(name).RLock(t.Context()), relock.ErrInvalidName)
		}
		for _, name := range []string{"a", "a:b", "{a}", "{a}:b", "x:{a}}", "}{a}", "{a}{", "{a{b}"} {
			l := c.NewLock(name)
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
		}
		bare(t, x)
	})
}
