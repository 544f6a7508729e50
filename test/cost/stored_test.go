package cost_test

import (
	"testing"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// TestALockKeepsLittleInRedis, held and afterwards.
// Fails when a record of an anonymous hold, or of a named one with a short name, is longer
// than what Redis keeps as one string: the hash is a table from then on.
func TestALockKeepsLittleInRedis(t *testing.T) {
	c, eye, _ := costly(t)
	used := func(l *relock.Lock) (bytes int64) {
		keys := key.For("relock", l.Name())
		for _, k := range []string{keys.Hash, keys.Queue} {
			bytes += eye.MemoryUsage(t.Context(), k).Val()
		}
		return bytes
	}
	for what, l := range map[string]*relock.Lock{
		"anonymous": c.NewLock("order-12345"), "named": c.NewLock("order-12346", relock.Owner("run-17")),
		"reading": c.NewRWLock("order-12347").RLocker(),
	} {
		rig.Must(t, l.Lock(t.Context()))
		held := used(l)
		rig.Must(t, l.Unlock())
		idle := used(l)
		t.Logf("%s: %d bytes held, %d idle", what, held, idle)
		if held > 300 || idle > 150 {
			t.Errorf("%s: %d bytes held, %d idle, want 300 and 150", what, held, idle)
		}
	}
}
