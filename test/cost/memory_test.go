package cost_test

import (
	"context"
	"math"
	"runtime"
	"strconv"
	"testing"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// Fails with a goroutine, a timer's or another, for each lock.
func TestHeldLocksHaveNoGoroutine(t *testing.T) {
	c, _, _ := costly(t)
	before := runtime.NumGoroutine()
	for i := range 300 {
		rig.Must(t, c.NewLock("held "+strconv.Itoa(i)).Lock(context.Background()))
	}
	if more := runtime.NumGoroutine() - before; more > 10 {
		t.Errorf("%d goroutines more for 300 held locks, want none", more)
	}
}

// With the handle, and the bytes of its name in it.
// Fails when a session keeps what only waiters need, or handles keep copies of their options.
func TestAHeldLockKeepsLittle(t *testing.T) {
	if rig.UnderRace {
		t.Skip("the race detector pads what is allocated")
	}
	const locks, most = 6000, 800
	c, _, _ := costly(t)
	held := make([]*relock.Lock, locks)
	before := heap()
	for i := range held {
		held[i] = c.NewLock("held/" + strconv.Itoa(i))
		rig.Must(t, held[i].Lock(context.Background()))
	}
	if got := (heap() - before) / locks; got > most || got < most/2 {
		t.Errorf("%d bytes for each held lock, want at most %d, and not much less", got, most)
	}
	runtime.KeepAlive(held)
}

// heap returns the bytes that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first may leave what has finalizers
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Fails when a lock makes a map, a timer or a context that it does not need, or a go-redis
// command that no hook is there to see.
func TestALockAndUnlockAllocateLittle(t *testing.T) {
	if rig.UnderRace {
		t.Skip("the race detector allocates")
	}
	c, _, _ := costly(t)
	l := c.NewLock("lean")
	pairs(t, l, 200)
	if got := testing.AllocsPerRun(500, func() { pairs(t, l, 1) }); got > 33 {
		t.Errorf("%v allocations for a lock and unlock, want at most 33", got)
	}
	if got := bytesOf(func() { pairs(t, l, 1000) }) / 1000; got > 2200 {
		t.Errorf("%d bytes for a lock and unlock, want at most 2200", got)
	}
	ctx := relock.WithOwner(context.Background(), "me")
	local := c.NewLock("local", relock.LocalReentry())
	rig.Must(t, local.Lock(ctx))
	nested := testing.AllocsPerRun(500, func() {
		rig.Must(t, local.Lock(ctx))
		rig.Must(t, local.Unlock())
	})
	if nested > 5 {
		t.Errorf("%v allocations for a local re-entry, want at most 5", nested)
	}
	rig.Must(t, local.Unlock())
}

// bytesOf returns how many bytes fn allocates.
func bytesOf(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Fails when what hooks are told is made anew each time: the lock's name is a part of its key.
func TestHooksOfALockAndUnlockAreToldWithLittle(t *testing.T) {
	if rig.UnderRace {
		t.Skip("the race detector allocates")
	}
	told := 0
	hooks := relock.Hooks{Acquired: func(context.Context, relock.Event) { told++ }, Released: func(relock.Event) { told++ }}
	allocates := func(opts ...relock.Option) float64 {
		c, _, _ := costly(t, opts...)
		l := c.NewLock("told")
		pairs(t, l, 200)
		least := math.Inf(1) // what goes on beside is counted as well
		for range 5 {
			least = min(least, testing.AllocsPerRun(20, func() { pairs(t, l, 100) })/100) // of one pair it gives whole numbers only
		}
		return least
	}
	if without, with := allocates(), allocates(relock.Trace(hooks)); with > without+2.5 || told == 0 {
		t.Errorf("%.2f allocations for a lock and unlock without hooks, %.2f with them, want the owner's name twice more", without, with)
	}
}
