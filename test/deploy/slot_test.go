package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// slotLease is long enough for the nodes: with each slot that moves they wait for a disk.
const slotLease = 2 * time.Second

func TestLockKeepsToOneSlotAndMovesWithIt(t *testing.T) {
	t.Parallel()
	c := redistest.StartSteadyCluster(t)
	for _, name := range []string{"job", "{tenant}:job", "a{b}c{d}", "{", "}", "{}", "{}x", "x{", "x}{y", "{{a}}", "%7B", "日本", "a b"} {
		keys := key.For("relock", name)
		if hash, queue := c.Slot(keys.Hash), c.Slot(keys.Queue); hash != queue {
			t.Errorf("name %q: %s is in slot %d, %s in %d", name, keys.Hash, hash, keys.Queue, queue)
		}
	}
	if own, tagged := c.Slot("tenant"), c.Slot(key.For("relock", "{tenant}:job").Hash); own != tagged {
		t.Errorf("a name with the tag {tenant} is in slot %d, the tag in %d", tagged, own)
	}
	t.Run("migration", func(t *testing.T) { migrateUnderLoad(t, c) })
	t.Run("read/write", func(t *testing.T) { migrateReadWrite(t, c) })
	for _, first := range []string{"hash", "queue"} {
		t.Run(first+" first", func(t *testing.T) { migrateStepwise(t, c, first) })
		t.Run("conditions, "+first+" first", func(t *testing.T) { migrateConditions(t, c, first) })
		t.Run("conditions on sharded channels, "+first+" first", func(t *testing.T) { migrateConditions(t, c, first, relock.ShardedPubSub()) })
		t.Run("permits, "+first+" first", func(t *testing.T) { migratePermits(t, c, first) })
	}
}

// migrateUnderLoad moves the slot of locks in use to and fro.
func migrateUnderLoad(t *testing.T, c *redistest.Cluster) {
	var names []string
	for i := range 6 {
		names = append(names, fmt.Sprint("{moving} ", i))
	}
	load := drive(t, func(t testing.TB) redisClient { return c.Client(t) }, names...)
	defer load.disperse()
	for range 4 {
		m := c.Migrate(c.Slot("moving"))
		m.Begin()
		began := load.grants.Load()
		within(t, goOn, time.Now(), func() string {
			m.MoveKeys()
			if load.grants.Load() < began+20 {
				return "nobody gets a lock of the slot that migrates"
			}
			return ""
		})
		m.End()
		moved := time.Now()
		within(t, goOn, moved, func() string {
			if names := load.quiet(moved); len(names) > 0 {
				return fmt.Sprint("nobody has got ", names)
			}
			return ""
		})
	}
}

// migrateStepwise moves one of the two keys of a lock that is held and waited
// for, and the other one more than a lease later.
func migrateStepwise(t *testing.T, c *redistest.Cluster, first string) {
	const ttl = slotLease
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	name := "stepwise, " + first
	keys := key.For("relock", name)
	a := rig.Open(t, c.Client(t)).NewLock(name, relock.TTL(ttl), relock.Owner("a"))
	b := rig.Open(t, c.Client(t)).NewLock(name, relock.TTL(ttl))
	held, err := a.Acquire(ctx)
	rig.Must(t, err)
	waits := rig.Beside(func() error { return b.Lock(ctx) })
	rig.Queued(t, a, 1)
	m := c.Migrate(c.Slot(keys.Hash))
	m.Begin()
	split := map[string]string{"hash": keys.Hash, "queue": keys.Queue}[first]
	m.MoveKey(split)
	apart := time.NewTimer(ttl * 3 / 2)
	<-apart.C
	if err := held.Err(); err != nil {
		t.Fatalf("the hold is lost while its slot migrates: %v", err)
	}
	nested, err := a.Acquire(ctx)
	rig.Must(t, err)
	rig.Must(t, nested.Release())
	select {
	case err := <-waits:
		t.Fatalf("the waiter holds beside the holder, %v", err)
	default:
	}
	released := rig.Beside(held.Release)
	m.End()
	if err := <-released; err != nil && !errors.Is(err, relock.ErrUnconfirmed) {
		t.Error(err)
	}
	rig.Must(t, <-waits)
	rig.WantLater(t, held.Token(), b.Token())
	rig.Must(t, b.Unlock())
}

// migrateReadWrite asks for a read/write lock whose keys are apart: for the first reader,
// who needs one key, and for the second, who has to wait; and for a hold of one, which is
// not lost.
func migrateReadWrite(t *testing.T, c *redistest.Cluster) {
	const ttl = slotLease
	client := rig.Open(t, c.Client(t))
	written, free := client.NewRWLock("{rw} written", relock.TTL(ttl)), client.NewRWLock("{rw} free", relock.TTL(ttl))
	rig.Must(t, free.RLock(t.Context()))
	rig.Must(t, free.RUnlock())
	h, err := written.WLocker().Acquire(t.Context())
	rig.Must(t, err)
	m := c.Migrate(c.Slot("rw"))
	m.Begin()
	m.MoveKey(key.For("relock", "{rw} free").Hash)
	rig.Must(t, free.RLock(t.Context()))
	second := rig.Open(t, c.Client(t)).NewRWLock("{rw} free", relock.TTL(ttl))
	if ok, err := second.TryRLock(t.Context(), 2*ttl); ok || err == nil {
		t.Errorf("a second reader of a lock whose keys are apart: %v, %v", ok, err)
	}
	rig.Must(t, free.RUnlock())
	rig.Must(t, h.Err())
	m.End()
	rig.Must(t, h.Release())
	rig.Must(t, free.RLock(t.Context()))
	rig.Must(t, free.RUnlock())
}
