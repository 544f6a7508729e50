package redisson_test

import (
	"strings"
	"testing"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/redisson"
)

// TestANameWhoseKeysWouldLieInSeveralSlotsIsRefused: Redisson puts a name without an opening
// brace into braces for all keys but the hash, and a Cluster takes the text up to the first
// closing one.
// Fails when a closing brace alone is let through, or a hash tag is refused, and when a name has no bounds.
func TestANameWhoseKeysWouldLieInSeveralSlotsIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		for _, name := range []string{
			"a}b", "a}", "}", "}{", "a{", "a{b", "{}", "a{}", "a{}{b}", "{}}", strings.Repeat("a", 513), "a\xff",
		} {
			rig.WantIs(t, c.NewLock(name).Lock(t.Context()), relock.ErrInvalidName)
			rig.WantIs(t, c.NewRWLock(name).RLock(t.Context()), relock.ErrInvalidName)
		}
		for _, name := range []string{
			"a", "a:b", "{a}", "{a}:b", "x:{a}}", "}{a}", "{a}{", "{a{b}", strings.Repeat("é", 256),
		} {
			l := c.NewLock(name)
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
		}
		bare(t, x)
	})
}

// Fails when an owner has other bounds than a name, by the option or by its context.
func TestAnOwnerOfRedissonHasUpTo512BytesOfUTF8(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		for _, id := range []string{strings.Repeat("é", 256) + "a", "a\xff"} {
			_, byOption := c.NewLock("a", redisson.Owner(id)).TryLock(t.Context(), 0)
			_, byContext := c.NewLock("a").TryLock(x.By(id), 0)
			rig.WantIs(t, byOption, relock.ErrInvalidOption)
			rig.WantIs(t, byContext, relock.ErrInvalidOption)
		}
		longest := strings.Repeat("é", 256)
		l := c.NewLock("b", redisson.Owner(longest))
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Lock(x.By(longest)))
		rig.Must(t, l.Unlock())
		rig.Must(t, l.Unlock())
	})
}
